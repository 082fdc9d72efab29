"""Numbers as the cells of a worksheet, and the scale of their colours."""

from collections.abc import Callable

import torch

from gptviz.ui.components.worksheet import Cell
from gptviz.ui.views.attention_by_hand import words


def given(says: str, value: float, reach: float, write: Callable[[float], str] = words.short) -> Cell:
    """A number that may be typed anew; the field has all its digits."""
    return Cell(write(value), value / reach / 2 + 0.5, says, words.short(value, 6))


def signed(says: str, value: float, reach: float) -> Cell:
    """A number that was worked out, on the signed scale from -reach to reach."""
    return Cell(words.four(value), value / reach / 2 + 0.5, says)


def reach(values: torch.Tensor) -> float:
    """The scale's end: twice the largest number, so that the numbers stay readable on their colours."""
    return 2 * float(values.abs().max()) or 1.0


def numbers(count: int) -> list[str]:
    """The labels of `count` columns."""
    return [str(i) for i in range(count)]
