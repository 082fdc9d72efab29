"""Settings of the server, in environment variables."""

import os
from collections.abc import Iterator

# what may be set, and what it must be: megabytes, a count from 1 or a number from 0 on, a switch, or anything
MEGABYTES = "MB"
COUNT = "count"
NUMBER = "number"
SWITCH = "switch"
ANY = "any"
_OF_KIND = {
    ANY: "CACHE_DIR DATABASE DEVICE GUIDES KERNELS RAY",
    SWITCH: "ALLOW_PATHS LOG METRICS",
    MEGABYTES: "MEASURED_CACHE_MB MODEL_CACHE_MB READ_MEMORY_MB TRACE_CACHE_MB TRAINING_DISK_MB UPLOADS_MB",
    COUNT: "READS_AT_ONCE READ_CPU_SECONDS READ_SECONDS TRAININGS_AT_ONCE TRAININGS_WAITING WORKS_OF_ONE "
    "WORKS_WAITING",
    NUMBER: "WORKERS",
}
SETTINGS = {f"GPTVIZ_{name}": kind for kind, names in _OF_KIND.items() for name in names.split()}


def wrong() -> Iterator[str]:
    """The faults of the environment's GPTVIZ_ settings, a sentence each."""
    for name in sorted(name for name in os.environ if name.startswith("GPTVIZ_")):
        kind = SETTINGS.get(name)
        try:
            if kind is None:
                yield f"{name} is not a setting; docs/models.md lists all of them"
            elif kind == SWITCH and os.environ[name] not in ("", "0", "1"):
                yield f"{name} is {os.environ[name]!r}; it must be 1, or not set"
            elif kind == MEGABYTES:
                cache_bytes(name, 1024)
            elif kind == COUNT:
                count(name, 8)
            elif kind == NUMBER:
                number(name, 2, 0, "a whole number, such as")
        except ValueError as error:
            yield f"{error}"


def cache_bytes(setting: str, default: int) -> int:
    """An environment variable in MB as bytes. Raises ValueError, naming it, if it is no whole number."""
    return number(setting, default, 0, "a whole number of megabytes, such as") * 2**20


def count(setting: str, default: int) -> int:
    """An environment variable as a number of things, at least 1. Raises ValueError, naming it."""
    return number(setting, default, 1, "a whole number from 1 on, such as")


def number(setting: str, default: int, least: int, what: str) -> int:
    """An environment variable as a whole number, at least so much. Raises ValueError, naming it."""
    value = os.environ.get(setting, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) >= least):
        raise ValueError(
            f"{setting} is {value!r}; it must be {what} {default}, of at most 9 digits"
        )
    return int(value)
