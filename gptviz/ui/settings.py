"""Settings of the server, in environment variables."""

import os


def cache_bytes(setting: str, default: int) -> int:
    """An environment variable in MB as bytes. Raises ValueError, naming it, if it is no whole number."""
    value = os.environ.get(setting, str(default))
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{setting} is {value!r}; it must be a whole number of megabytes, such as {default}")
    return int(value) * 2**20
