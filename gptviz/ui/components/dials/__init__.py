"""RoPE as clocks: a query's hand and a key's in some pairs of dimensions, while the two walk along a text.

The hands go on by themselves, in the browser alone, until a click or a hand at the slider stops them; where
the reader wants no motion they stand still. What is said of the pairs is said here, in Python.
"""

import math
from collections.abc import Mapping
from typing import Any

from gptviz.digits import significant
from gptviz.ui.components.kernel import Component, On, among
from gptviz.ui.components.saved import Saved

_component = Component("dials")


def pair_said(pair: int, speed: float, distance: int) -> dict[str, Any]:
    """What is drawn of a pair that turns by `speed` radians a token, the two tokens `distance` apart."""
    once_round = 2 * math.pi / speed
    if once_round < 100:
        tokens = significant(once_round)
    else:
        tokens = f"{once_round:,.0f}"
    between = distance * speed
    return {
        "pair": pair,
        "speed": speed,
        "name": f"pair {pair}",
        "round": f"once round: {tokens} tokens",
        "between": f"between: {significant(between)} rad",
        "alt": f"pair {pair}: the query is turned by {significant(between)} radians more than the key",
    }


def dials(
    frequencies: Mapping[int, float],
    distance: int,
    at: int,
    last: int,
    on_at: On,
    *,
    moves: bool = True,
    key: str = "position_dials",
    saved: Saved | None = None,
) -> None:
    """Draw a dial for each of `frequencies`, a pair's number and the radians by which it turns a token.

    The query stands at position `at`, the key `distance` before it; `last` is the last position there is.
    `on_at(at)` runs before the rerun that a hand at the slider causes. With `moves` the two begin to walk by
    themselves.
    """
    data = {
        "pairs": [pair_said(pair, speed, distance) for pair, speed in frequencies.items()],
        "distance": distance,
        "at": at,
        "last": last,
        "moves": moves,
    }
    _component(key, data, {"at": (among(range(distance, last + 1)), on_at)}, saved)
