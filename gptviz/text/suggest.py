"""The name that was meant, where there is none of the name that was given."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 60  # characters of what was given that are compared: a text is no name


def did_you_mean(given: object, names: Iterable[str]) -> str:
    """A question to put behind a name that is none of `names`: " (did you mean attn?)"; "" if none is."""
    if not isinstance(given, str) or len(given) > LONGEST:
        return ""
    by_spelling = {plain(name): name for name in names}
    near = get_close_matches(plain(given), by_spelling, n=1)
    if not near:
        return ""
    return f" (did you mean {by_spelling[near[0]]}?)"


def plain(name: str) -> str:
    """A name without what is often written otherwise: "Next token" and "next-token" are "next_token"."""
    return name.lower().replace("-", "_").replace(" ", "_")
