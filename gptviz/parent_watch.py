"""End a process that a server started together with the server, whichever way that ends."""

import atexit
import os
import shutil
import threading
from pathlib import Path

TRIES = 1000  # to remove a folder into which the work writes meanwhile

_removing = threading.Lock()
atexit.register(_removing.acquire)  # a work that fails because its files are gone ends when all are


def end_with_the_server(folder: Path) -> None:
    """Start a thread that waits for the end of standard input, then removes the folder and ends the process.

    The other end of standard input is held by the server only.
    """
    threading.Thread(target=_wait, args=(folder,), daemon=True).start()


def _wait(folder: Path) -> None:
    # not sys.stdin: its lock would stop a process that comes to its own end
    while os.read(0, 4096):
        continue  # nothing is said on it
    _removing.acquire()
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
    os._exit(1)
