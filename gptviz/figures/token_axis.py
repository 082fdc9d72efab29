"""The axis of tokens, the same in every picture: each by its name while there is room, then positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

READABLE = 40  # tokens along half a page; above it positions are written


def token_ticks(shown: Sequence[str], most: int = READABLE) -> dict[str, Any]:
    """Ticks of an axis whose places are 0, 1, ...; `shown` are the tokens, escaped for HTML."""
    n = len(shown)
    if n <= most:
        return {"tickvals": np.arange(n), "ticktext": list(shown), "tickangle": -60 if n > 5 else 0}
    return {"tickvals": np.arange(0, n, _step(n)), "title": {"text": "position"}, "tickangle": 0}


def token_categories(shown: Sequence[str], most: int = READABLE) -> dict[str, Any]:
    """The same of an axis whose places are the categories "0", "1", ...: a hover then says the token."""
    n = len(shown)
    axis = {"type": "category", "labelalias": {str(i): token for i, token in enumerate(shown)}}
    if n <= most:
        return axis | {"tickangle": -60 if n > 5 else 0}
    places = [str(i) for i in range(0, n, _step(n))]
    return axis | {"tickvals": places, "ticktext": places, "tickangle": 0, "title": {"text": "position"}}


def _step(n: int) -> int:
    return 10 if n <= 128 else 32 if n <= 512 else 128


def window(position: int, n_tokens: int, size: int) -> slice:
    """Which tokens of a long text a picture holds: all, or `size` of them around a position."""
    start = max(0, min(position - size // 2, n_tokens - size))
    return slice(start, min(n_tokens, start + size))
