"""Settings of the server, in environment variables."""

import os


def cache_bytes(setting: str, default: int) -> int:
    """An environment variable in MB as bytes. Raises ValueError, naming it, if it is no whole number."""
    value = os.environ.get(setting, str(default))
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{setting} is {value!r}; it must be a whole number of megabytes, such as {default}")
    return int(value) * 2**20


def count(setting: str, default: int) -> int:
    """An environment variable as a number of things, at least 1. Raises ValueError, naming it."""
    value = os.environ.get(setting, str(default))
    if not (value.isascii() and value.isdigit() and int(value)):
        raise ValueError(f"{setting} is {value!r}; it must be a whole number from 1 on, such as {default}")
    return int(value)
