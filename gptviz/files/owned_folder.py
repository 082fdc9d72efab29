"""The folder that holds what a server keeps for its visitors, and goes with it, however it goes."""

import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # not a Unix: there, what a killed server leaves stays until somebody empties the folder
    fcntl = None  # type: ignore[assignment]

TRAININGS = "gptviz-training-"
UPLOADS = "gptviz-upload-"
WORKS = "gptviz-work-"
LOCK = "server.lock"


class Root:
    """A folder for this user's eyes only, made when something is first put into it: a disk may be full."""

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._made: tuple[Path, IO[bytes]] | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The folder, with a locked file by which others see that we are here. Raises OSError."""
        with self._lock:
            if self._made is None:
                sweep(self._prefix)
                root = Path(tempfile.mkdtemp(prefix=self._prefix))
                self._made = root, _locked(root)
            return self._made[0]

    def clear(self) -> None:
        """Remove it with all that is in it, and let go of it."""
        with self._lock:
            if self._made is not None:
                if fcntl is None:  # Windows removes no file that is open
                    self._made[1].close()
                shutil.rmtree(self._made[0], ignore_errors=True)
                self._made[1].close()
                self._made = None


def _locked(root: Path) -> IO[bytes]:
    """Our lock's file in the folder, open; it gets its name when it is locked."""
    if fcntl is None:  # there are no locks, and Windows renames no file that is open
        return (root / LOCK).open("wb")
    held = (root / f"{LOCK}.partial").open("wb")
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.replace(root / f"{LOCK}.partial", root / LOCK)
    return held


def sweep(prefix: str) -> None:
    """Remove the folders of our own user's servers that are gone, which only a killed one leaves."""
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_left(old):
            shutil.rmtree(old, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Whether this is a folder of our own whose lock nobody holds, as when its process has ended.

    Others may put what they like beside it: no link is followed, and nothing is waited for, such as a FIFO.
    """
    if fcntl is None:
        return False
    here = None
    lock = None
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if os.fstat(here).st_uid != os.geteuid():
            return False
        lock = os.open(LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or it is not there, no folder, or not ours to read
        return False
    finally:
        for held in (lock, here):
            if held is not None:
                os.close(held)
    return True
