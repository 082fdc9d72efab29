"""The one parser of whole numbers: those that count something (a block, a head, a position), and others.

And of words of which there are only some, of lists, and of objects of one kind.
"""

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def whole_number(value: object) -> int | None:
    """A whole number of Python's, NumPy's or torch's as an int; None for all else, True and False too."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # of a tensor of many numbers
        return None


def whole(what: str, value: object, least: int) -> int:
    """`value` as an int. ValueError, which names `what`, where it is not a whole number from `least` on."""
    number = whole_number(value)
    if number is None or number < least:
        raise ValueError(f"{what} is {value!r}; it must be a whole number of {least} or more")
    return number


def index_of(what: str, given: object, count: int | None) -> int:
    """`given` counted from 0: a whole number of Python's, NumPy's or torch's, negative from the end.

    Without a `count` it is only checked to be a whole number. ValueError otherwise: it says what there is.
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


def below(what: str, given: object, count: int) -> int:
    """The same of a number that is never counted from the end: from 0 to below `count`."""
    number = whole_number(given)
    if number is None or not 0 <= number < count:
        raise ValueError(f"there is no {what} {given!r}; they go from 0 to {count - 1}")
    return number


def one_of(what: str, given: str, words: Iterable[str]) -> str:
    """`given`, where it is one of these words. ValueError, which names `what` and lists them, where not."""
    if given not in (known := list(words)):
        raise ValueError(f"{what} is {given!r}; it must be one of {', '.join(known)}")
    return given


def of_kind(what: str, given: object, kind: type[Kind], do: str) -> Kind:
    """`given`, where it is one. ValueError, which names `what` and says what to `do`, where not."""
    if not isinstance(given, kind):
        raise ValueError(f"{what} is {given!r}; {do}")
    return given


def listed(what: str, given: object, do: str) -> list[Any]:
    """`given` as a list. A string is none, nor is a tensor of one number. ValueError as `of_kind`."""
    if isinstance(given, str | bytes | bytearray) or getattr(given, "ndim", 1) == 0:
        raise ValueError(f"{what} is {given!r}; {do}")
    return list(of_kind(what, given, Iterable, do))  # type: ignore[type-abstract]
