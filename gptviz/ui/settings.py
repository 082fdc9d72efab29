"""Settings of the server, in environment variables."""

import os


def cache_bytes(setting: str, default: int) -> int:
    """An environment variable in MB as bytes. Raises ValueError, naming it, if it is no whole number."""
    return _number(setting, default, 0, "a whole number of megabytes, such as") * 2**20


def count(setting: str, default: int) -> int:
    """An environment variable as a number of things, at least 1. Raises ValueError, naming it."""
    return _number(setting, default, 1, "a whole number from 1 on, such as")


def _number(setting: str, default: int, least: int, what: str) -> int:
    value = os.environ.get(setting, str(default))
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise ValueError(f"{setting} is {value!r}; it must be {what} {default}")
    return int(value)
