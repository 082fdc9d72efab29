"""The axis of tokens, the same in every picture: each by its name while there is room, then positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

READABLE = 40  # tokens along half a page; above it positions are written


def token_ticks(
    shown: Sequence[str],
    most: int = READABLE,
    positions: Sequence[int] | None = None,
    title: str = "position",
    places: int = 0,
) -> dict[str, Any]:
    """Ticks of an axis whose places are 0, 1, ...; `shown` are the tokens, escaped for HTML.

    `positions` are their numbers, of what the `title` says, where these are others. The axis has room for
    `places` tokens where there are fewer.
    """
    n = len(shown)
    if n <= most:
        turned = max(n, places) > 5 and max(map(len, shown)) > 2
        return {"tickvals": np.arange(n), "ticktext": list(shown), "tickangle": -60 if turned else 0}
    marked = np.arange(0, n, 10 if n <= 128 else 32 if n <= 512 else 128)
    numbers = marked.tolist() if positions is None else [positions[i] for i in marked.tolist()]
    named = {"ticktext": [str(number) for number in numbers], "title": {"text": title}}
    return {"tickvals": marked, "tickangle": 0} | named


def token_categories(
    shown: Sequence[str], most: int = READABLE, positions: Sequence[int] | None = None
) -> dict[str, Any]:
    """The same of an axis whose places are the categories "0", "1", ...: a hover then says the token."""
    axis = {"type": "category", "labelalias": {str(i): token for i, token in enumerate(shown)}}
    ticks = token_ticks(shown, most, positions)
    if len(shown) <= most:
        return axis | {"tickangle": ticks["tickangle"]}
    return axis | ticks | {"tickvals": [str(i) for i in ticks["tickvals"].tolist()]}


def window(position: int, n_tokens: int, size: int) -> slice:
    """Return which tokens of a long text a picture holds: all, or `size` of them around a position."""
    start = max(0, min(position - size // 2, n_tokens - size))
    return slice(start, min(n_tokens, start + size))
