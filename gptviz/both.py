"""Both: a value of the run on the screen and, if the model is changed, the same value without the change.

A page shows a run: a model with its edits, on a text. If there are edits, the same text is also run by the
model without them, the unchanged (plain) model, and each number of the page is worked out for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from gptviz.digits import fixed, percent, significant
from gptviz.text import as_html

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class Both(Generic[T]):
    """A pair of values: `now` of the run on the screen, `was` of the unchanged model.

    `was` is None if nothing is changed, so that there is one run only. So None cannot be a value itself.
    """

    now: T
    was: T | None = None

    @property
    def all(self) -> tuple[T, ...]:
        """The one or two values, the unchanged one first."""
        if self.was is None:
            return (self.now,)
        return (self.was, self.now)

    def map(self, function: Callable[[T], S]) -> "Both[S]":
        """Apply a function to each value. It must not return None, which would mean: nothing is changed."""
        if self.was is None:
            return Both(function(self.now))
        return Both(function(self.now), function(self.was))

    @property
    def moved(self) -> bool:
        """Whether there are two values, and they differ: numbers by more than rounding."""
        return self.was is not None and not alike(self.now, self.was)

    def _repr_html_(self) -> str:
        if self.was is None:
            return as_html.of(self.now)
        return as_html.table({"unchanged": self.was, "changed": self.now})

    def __format__(self, digits: str) -> str:
        """Write the values for a sentence: "0.988", or "0.988 (unchanged 1.02)" if the change shows.

        `digits` is the number of significant digits ("3", also if empty), of decimals (".2"), or "%" for a
        share in percent. A text is written as it is.
        """
        current, unchanged = self._seen(digits)
        if unchanged is None:
            return current
        return f"{current} (unchanged {unchanged})"

    def arrow(self, digits: str = "") -> str:
        """Write what a change did: "1.02 → 0.988", or "0.988" alone if the change does not show.

        `digits` are those of `__format__`.
        """
        current, unchanged = self._seen(digits)
        if unchanged is None:
            return current
        return f"{unchanged} → {current}"

    def _seen(self, digits: str) -> tuple[str, str | None]:
        """The value now, as it is written, and the unchanged one, or None where nobody sees a change."""
        current = _written(self.now, digits)
        if self.was is None or not self.moved:
            return current, None
        unchanged = _written(self.was, digits)
        if unchanged == current:  # they differ only in digits that are not shown
            return current, None
        return current, unchanged


def alike(a: Any, b: Any) -> bool:
    """Whether two values have the same shape and are equal, numbers up to rounding.

    Numbers are those of bool, int and float types, alone, in an array or in a table's column; two NaN are
    equal. All else is compared exactly, such as texts.
    """
    left = np.asarray(a)
    right = np.asarray(b)
    if left.shape != right.shape:
        return False
    if {left.dtype.kind, right.dtype.kind} <= set("fiub"):  # float, int, unsigned int, bool
        return bool(np.allclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(a, pd.DataFrame) and isinstance(b, pd.DataFrame):  # with a column of texts, say
        return all(_alike_columns(a.iloc[:, i], b.iloc[:, i]) for i in range(a.shape[1]))
    return np.array_equal(left, right)


def _alike_columns(a: pd.Series, b: pd.Series) -> bool:
    """Whether two columns of as many rows are equal; missing values are equal to each other."""
    if all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in (a.dtype, b.dtype)):
        return alike(a.to_numpy(), b.to_numpy())
    return bool(a.reset_index(drop=True).equals(b.reset_index(drop=True)))


def _written(value: Any, digits: str) -> str:
    """One value as `Both.__format__` writes it."""
    if isinstance(value, str):
        return value
    if digits == "%":
        return percent(float(value))
    if digits.startswith("."):
        return fixed(float(value), int(digits[1:]))
    return significant(float(value), int(digits or 3))
