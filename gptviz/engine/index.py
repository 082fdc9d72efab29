"""The one parser of a number that counts something: a block, a head, a position."""

import operator


def index_of(what: str, given: object, count: int | None) -> int:
    """`given` counted from 0: a whole number of Python's, NumPy's or torch's, negative from the end.

    Without a `count` it is only checked to be a whole number. ValueError otherwise: it says what there is.
    """
    try:
        number = None if isinstance(given, bool) else operator.index(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # what torch says of a tensor of many numbers names none of ours
        number = None
    if number is None or (count is not None and not -count <= number < count):
        there_are = "give a whole number" if count is None else f"they go from 0 to {count - 1}"
        raise ValueError(f"there is no {what} {given!r}; {there_are}")
    return number if count is None else number % count
