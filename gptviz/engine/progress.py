"""The callback with which long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[int, int], object]  # so much is done, of so much


def ignore_progress(done: int, of: int) -> None:
    """Ignore the progress: a callback for callers that do not need it."""
