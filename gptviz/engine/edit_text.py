"""The text form of an edit, and the numbers in it: read, written, and refused in a sentence."""

import re
from collections.abc import Iterable

from gptviz.engine.index import whole_number

EVERY = "*"  # as a block: each of them
GRAMMAR = "site[.block[.head+head]][@position+position]=value, such as z.4.3=zero or resid_pre.2@5=mean"

_PARTS = re.compile(
    r"(?P<site>[^.@=]*)(?:\.(?P<block>[^.@=]*)(?:\.(?P<heads>[^.@=]*))?)?(?:@(?P<positions>[^@=]*))?"
    r"=(?P<value>[^=]*)"
)
_WHOLE = re.compile(r"-?[0-9]{1,9}")

Parts = tuple[str, int | str | None, str, list[int] | None, list[int] | None]


def parts_of(text: str) -> Parts:
    """Site, block, value, heads, positions, as they are written; a blank counts as a +. Raises ValueError."""
    found = _PARTS.fullmatch(text.strip())
    if found is None:
        raise ValueError("it does not have the form of one")
    block = found["block"]
    return (
        found["site"],
        block if block is None or block == EVERY else _whole("block", block),
        found["value"].replace(" ", "+"),
        _split("head", found["heads"]),
        _split("position", found["positions"]),
    )


def indices(what: str, given: Iterable[int]) -> tuple[int, ...]:
    """Whole numbers, each once and in order. Raises ValueError for what is none, and for no number."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{what} is {given!r}; give a list of whole numbers, or None for all of them")
    found = set()
    for one in given:
        if (number := whole_number(one)) is None:
            raise ValueError(f"{what} has {one!r}, which is no whole number")
        found.add(number)
    if not found:
        raise ValueError(f"{what} is empty: nothing would be replaced; name at least one, or None for all")
    return tuple(sorted(found))


def check_range(what: str, given: Iterable[int] | None, low: int, high: int) -> None:
    """Raise a ValueError for the first that is not from `low` to below `high`."""
    wrong = [i for i in given or () if not low <= i < high]
    if wrong:
        raise ValueError(f"there is no {what} {wrong[0]!r}; they go from {low} to {high - 1}")


def _split(what: str, text: str | None) -> list[int] | None:
    return None if text is None else [_whole(what, part) for part in re.split(r"[+ ]", text)]


def _whole(what: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no {what}, which is a whole number")
    return int(text)
