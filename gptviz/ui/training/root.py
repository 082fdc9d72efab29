"""The folder that holds a server's training runs, and goes with it, however it goes."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a Unix: there, what a killed server leaves stays until somebody empties the folder
    fcntl = None  # type: ignore[assignment]

PREFIX, LOCK = "gptviz-training-", "server.lock"


def new_root() -> tuple[Path, IO[bytes]]:
    """A new folder, for this user's eyes only, and the open file by which others see that we are here.

    Folders of servers that are gone, which only a killed one leaves, are removed first.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left(old / LOCK):
            shutil.rmtree(old, ignore_errors=True)
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = (root / f"{LOCK}.partial").open("wb")  # gets its name when it is locked
    if fcntl is not None:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.replace(root / f"{LOCK}.partial", root / LOCK)
    return root, held


def _is_left(lock: Path) -> bool:
    """Whether nobody holds the lock any more: the system lets go of it when a process ends."""
    if fcntl is None:
        return False
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or it is not there, or not ours to read
        return False
    return True
