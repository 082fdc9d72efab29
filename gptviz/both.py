"""Both: what one function gives of the run on the screen and, if something is changed, of the plain model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from gptviz.digits import fixed, percent, significant
from gptviz.text import as_html

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Both(Generic[T]):
    """`now` is of the run on the screen; `was` of the unchanged model, None where nothing is changed."""

    now: T
    was: T | None = None

    @property
    def all(self) -> tuple[T, ...]:
        """Those that there are, the unchanged one first."""
        if self.was is None:
            return (self.now,)
        return (self.was, self.now)

    def map(self, function: Callable[[T], S]) -> "Both[S]":
        """Apply a function to both values."""
        return Both(function(self.now), None if self.was is None else function(self.was))

    @property
    def moved(self) -> bool:
        """Whether the two differ, by more than rounding for numbers."""
        return self.was is not None and not alike(self.now, self.was)

    def _repr_html_(self) -> str:
        if self.was is None:
            return as_html.of(self.now)
        return as_html.table({"unchanged": self.was, "changed": self.now})

    def __format__(self, digits: str) -> str:
        """In a sentence: "0.988", and of a changed run "0.988 (unchanged 1.02)".

        `digits` is how many mean something ("3"), how many decimals (".2") or "%"; a text has none.
        """
        now, *_ = written = [_written(value, digits) for value in (self.now, *self.all)]
        if self.moved and now != written[1]:
            return f"{now} (unchanged {written[1]})"
        return now


def alike(a: Any, b: Any) -> bool:
    """Whether two values are equal, up to rounding for numbers (arrays, tables, floats)."""
    a = np.asarray(a)
    b = np.asarray(b)
    if a.shape != b.shape or not {a.dtype.kind, b.dtype.kind} <= set("fiub"):
        return np.array_equal(a, b)
    return bool(np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True))


def _written(value: Any, digits: str) -> str:
    if isinstance(value, str):
        return value
    if digits == "%":
        return percent(float(value))
    if digits.startswith("."):
        return fixed(float(value), int(digits[1:]))
    return significant(float(value), int(digits or 3))
