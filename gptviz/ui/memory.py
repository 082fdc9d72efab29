"""Give memory that is no longer used back to the system; and how much memory there is.

C's allocator gives back only what lies at the end of one of its arenas. A pass over a long text frees
hundreds of MB between what stays: of a server that had read eight of them a third was such memory
(benchmarks/sessions.py --long 8).
"""

import ctypes
import mmap
import os
import sys
from pathlib import Path

GROWN = 32 * 2**20  # bytes more than after the last time: returning costs some 10 ms

# glibc has it
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
_left = 0


ASSUMED = 8 * 2**30  # bytes of a machine whose system does not say how many it has
# version 2, and 1
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def of_the_machine() -> int:
    """The bytes of memory that this process may fill: the machine's, or less where its container says so."""
    limits = [_physical()]
    for limit in LIMITS:
        try:
            text = Path(limit).read_text().strip()
        except OSError:  # another system, or not in a container
            continue
        if text.isdigit():  # else "max"
            limits.append(int(text))
    return min(limits)


class _WindowsMemory(ctypes.Structure):
    """What `GlobalMemoryStatusEx` fills in: MEMORYSTATUSEX of Windows' sysinfoapi.h."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("physical", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    )


def _physical() -> int:
    """The bytes of memory that the machine has."""
    if hasattr(os, "sysconf"):  # a Unix
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    windows = getattr(ctypes, "windll", None)
    memory = _WindowsMemory(length=ctypes.sizeof(_WindowsMemory))
    if windows is not None and windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(memory)):
        return memory.physical
    return ASSUMED


def megabytes(divisor: int, most: int) -> int:
    """The default of a cache: this part of the machine's memory, at most `most` megabytes."""
    return min(most, of_the_machine() // divisor // 2**20)


def resident() -> int:
    """Bytes of this process in memory (Linux only)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def give_back() -> None:
    """Give unused memory back to the system where the process has grown; only glibc can."""
    global _left
    if _trim is not None and resident() > _left + GROWN:
        _trim(0)
        _left = resident()
