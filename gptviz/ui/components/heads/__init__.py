"""The grid of all heads as a component: a thumbnail a head, a click opens it.

One indexed PNG holds all of them, and every thumbnail is a button that shows its part of it: sharp at
any size, reachable by keyboard, and named for a screen reader. Nothing is fetched from anywhere.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

from gptviz.figures.head_grid import Thumbnail
from gptviz.ui.components.kernel import Component, among, parts
from gptviz.ui.components.saved import Saved

_component = Component("heads")


def head_grid(
    picture: bytes,
    side: int,
    roles: Sequence[Sequence[Thumbnail]],
    chosen: tuple[int, int] | None,
    on_pick: Callable[[int, int], Any],
    *,
    key: str = "heads",
    saved: Saved | None = None,
) -> None:
    """Draw the grid; `on_pick(block, head)` runs before the rerun that a click causes.

    `picture` and `side` come from `gptviz.figures.head_grid.thumbnails`; `roles` has a row a block;
    `chosen` is the ringed (block, head), None for none.
    """
    n_blocks = len(roles)
    n_heads = len(roles[0])
    block, head = chosen or (None, None)
    largest = max(max(head["write"] for head in row) for row in roles) or 1.0
    data: dict[str, Any] = {
        "picture": as_data(picture),
        "side": side,
        "blocks": n_blocks,
        "heads": n_heads,
    }
    data |= {"roles": roles, "largest_write": largest, "block": block, "head": head}
    events = {"head": parts(on_pick, block=among(range(n_blocks)), head=among(range(n_heads)))}
    _component(key, data, events, saved)


def as_data(picture: bytes) -> str:
    """A PNG as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()
