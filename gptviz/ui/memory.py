"""Memory that nobody uses any more goes back to the system.

C's allocator gives back only what lies at the end of one of its arenas. A pass over a long text frees
hundreds of MB between what stays: of a server that had read eight of them a third was such memory
(benchmarks/sessions.py --long 8).
"""

import ctypes
import resource
import sys
from pathlib import Path

GROWN = 32 * 2**20  # bytes more than after the last time: returning costs some 10 ms

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc has it
_left = 0


def resident() -> int:
    """Bytes of this process that lie in memory; Linux says it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def give_back() -> None:
    """Return what nobody uses to the system where the process has grown; elsewhere than glibc, nothing."""
    global _left
    if _trim is not None and resident() > _left + GROWN:
        _trim(0)
        _left = resident()
