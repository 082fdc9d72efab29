"""Waiting for what threads and processes come to in their own time."""

import threading
from collections.abc import Callable


def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail after a minute."""
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it never came to that")
