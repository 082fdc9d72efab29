"""So many pages are drawn at a time: the first is there before the last begins.

All at once they would take turns pass by pass, and all be there at the end (benchmarks/sessions.py).

This is a semaphore and no queue of jobs: a script has its slot for a tenth of a second, nobody is told a
place, and who has waited for two seconds begins all the same.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gptviz.ui import memory

PATIENCE = 2.0  # seconds after which a page begins all the same: the others may be slow ones

_free = threading.BoundedSemaphore(os.cpu_count() or 1)
_mine = threading.local()


@contextmanager
def slot() -> Iterator[None]:
    """Wait until there is a slot for this script; it is given back at the end, or by `give_back`."""
    _mine.held = _free.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        give_back()
        memory.give_back()


def give_back() -> None:
    """Let another script begin: this one waits for something, or is over."""
    if getattr(_mine, "held", False):
        _mine.held = False
        _free.release()
