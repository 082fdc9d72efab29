"""Checks of arguments: whole numbers, indices, words out of a list, lists, and objects of one class.

Each function returns the argument in its plain form, or raises a ValueError whose message names the argument
and says what is allowed.
"""

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def whole_number(value: object) -> int | None:
    """A whole number of Python, NumPy or torch as an int; None for anything else, also for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # of a tensor of many numbers
        return None


def whole(what: str, value: object, least: int) -> int:
    """`value` as an int. Raises ValueError, which names `what`, unless it is whole and at least `least`."""
    number = whole_number(value)
    if number is None or number < least:
        raise ValueError(f"{what} is {value!r}; it must be a whole number of {least} or more")
    return number


def index_of(what: str, given: object, count: int | None) -> int:
    """An index from 0 to below `count`; negative numbers count from the end, as in a list.

    With None for `count`, any whole number is returned as it is. Raises ValueError, which names `what` and
    says how many there are, for anything else.
    """
    number = whole_number(given)
    if number is None or (count is not None and not -count <= number < count):
        if count is None:
            there_are = "give a whole number"
        else:
            there_are = f"they go from 0 to {count - 1}"
        raise ValueError(f"there is no {what} {given!r}; {there_are}")
    if count is None:
        return number
    return number % count


def check_below(what: str, given: object, count: int) -> int:
    """Check that `given` is a whole number from 0 to `count` - 1, and return it as an int.

    ValueError otherwise. Unlike `index_of` it takes no number that is counted from the end.
    """
    number = whole_number(given)
    if number is None or not 0 <= number < count:
        raise ValueError(f"there is no {what} {given!r}; they go from 0 to {count - 1}")
    return number


def one_of(what: str, given: str, words: Iterable[str]) -> str:
    """Return `given` if it is one of `words`; else raise a ValueError that names `what` and lists them."""
    if given not in (known := list(words)):
        raise ValueError(f"{what} is {given!r}; it must be one of {', '.join(known)}")
    return given


def of_kind(what: str, given: object, kind: type[Kind], do: str) -> Kind:
    """Return `given` if it is a `kind`; else raise a ValueError that names `what` and says what to `do`."""
    if not isinstance(given, kind):
        raise ValueError(f"{what} is {given!r}; {do}")
    return given


def listed(what: str, given: object, do: str) -> list[Any]:
    """Return `given` as a list; raise ValueError as `of_kind` does, also for a string or a 0-d tensor."""
    if isinstance(given, str | bytes | bytearray) or getattr(given, "ndim", 1) == 0:
        raise ValueError(f"{what} is {given!r}; {do}")
    return list(of_kind(what, given, Iterable, do))  # type: ignore[type-abstract]
