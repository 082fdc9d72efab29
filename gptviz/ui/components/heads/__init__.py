"""The sheet of all heads as a component: a thumbnail a head, a click opens it.

One indexed PNG holds all of them, and every thumbnail is a button that shows its part of it: sharp at
any size, reachable by keyboard, and named for a screen reader. Nothing is fetched from anywhere.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import streamlit as st

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.kernel import saving_component

_component = saving_component("heads")


class Thumbnail(TypedDict):
    """What the sheet says of a head: a word or two, a sentence without subject, how much it writes."""

    kind: str
    label: str
    says: str
    write: float


def sheet(
    picture: bytes,
    side: int,
    roles: Sequence[Sequence[Thumbnail]],
    chosen: tuple[int, int],
    mode: Mode,
    on_pick: Callable[[int, int], Any],
    key: str = "sheet",
) -> None:
    """Draw the sheet; `on_pick(block, head)` runs before the rerun that a click causes.

    `picture` and `side` come from `gptviz.figures.sheet.thumbnails`; `roles` has a row a block;
    `chosen` is the ringed (block, head).
    """
    colors = palette(mode)
    n_blocks, n_heads = len(roles), len(roles[0])

    def picked() -> None:
        value = st.session_state[key].head
        block, head = _whole(value, "block"), _whole(value, "head")
        if 0 <= block < n_blocks and 0 <= head < n_heads:  # a late click may follow a smaller model
            on_pick(block, head)

    _component(
        key=key,
        data={
            "picture": "data:image/png;base64," + base64.b64encode(picture).decode(),
            "stamp": hashlib.blake2b(picture + repr(roles).encode(), digest_size=8).hexdigest(),
            "side": side,
            "blocks": n_blocks,
            "heads": n_heads,
            "roles": roles,
            "largest_write": max(max(head["write"] for head in row) for row in roles) or 1.0,
            "block": chosen[0],
            "head": chosen[1],
            "colors": {"ink": colors.ink, "paper": colors.paper, "output": colors.output},
        },
        on_head_change=picked,
    )


def _whole(value: Any, name: str) -> int:
    """A number out of what the browser sent, -1 for anything else."""
    number = value.get(name) if isinstance(value, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else -1
