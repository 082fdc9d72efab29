"""Waiting for what threads and processes come to in their own time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], object]) -> None:
    """Wait for the condition to hold, at most a minute."""
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it never came to that")


def together(count: int, ask: Callable[[int], T]) -> list[T]:
    """What so many threads get that ask at the same time, each with its number."""
    start = threading.Barrier(count)

    def asking(number: int) -> T:
        start.wait()
        return ask(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(asking, range(count)))
