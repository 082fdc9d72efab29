"""A folder for what a server keeps for its visitors, removed with the server, however that ends."""

import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path
from typing import IO

try:
    import fcntl
except (
    ImportError
):  # not a Unix: there, what a killed server leaves stays until somebody empties the folder
    fcntl = None  # type: ignore[assignment]

TRAININGS = "gptviz-training-"
UPLOADS = "gptviz-upload-"
WORKS = "gptviz-work-"
LOCK = "server.lock"


class OwnedFolder:
    """A folder that only this user can read, made when it is first used: a disk may be full."""

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._made: tuple[Path, IO[bytes]] | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """The folder, with a locked file that shows other processes that it is in use. Raises OSError."""
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
    """The open lock file of the folder, which gets its name when it is locked."""
    if fcntl is None:  # there are no locks, and Windows renames no file that is open
        return (root / LOCK).open("wb")
    lock_file = (root / f"{LOCK}.partial").open("wb")
    fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.replace(root / f"{LOCK}.partial", root / LOCK)
    return lock_file


def sweep(prefix: str) -> None:
    """Remove the folders of our own user's servers that are gone, which only a killed one leaves."""
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_left(old):
            shutil.rmtree(old, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Whether this is a folder of this user's whose lock no process holds, as when its server has ended.

    Other users may put anything beside it: no link is followed, and nothing is waited for, such as a FIFO.
    """
    if fcntl is None:
        return False
    opened_folder = None
    lock = None
    try:
        opened_folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if os.fstat(opened_folder).st_uid != os.geteuid():
            return False
        lock = os.open(LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened_folder)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or it is not there, no folder, or not ours to read
        return False
    finally:
        for opened in (lock, opened_folder):
            if opened is not None:
                os.close(opened)
    return True
