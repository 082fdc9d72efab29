"""The grid of all heads as a component: a thumbnail a head, a click opens it.

One indexed PNG holds all of them, and every thumbnail is a button that shows its part of it: sharp at
any size, reachable by keyboard, and named for a screen reader. Nothing is fetched from anywhere.
"""

import base64
import io
from collections.abc import Callable, Sequence
from typing import Any, NotRequired, TypedDict

from PIL import Image, ImageColor

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.kernel import among, component, record
from gptviz.ui.components.saved import Saved, stem

_component = component("heads", head=record(block=among("blocks"), head=among("heads")))


class Thumbnail(TypedDict):
    """What the grid says of a head: a word or two, a sentence without subject, how much it writes.

    Where something is changed in the model: whether this head itself is (it is hatched), and how far its
    pattern moved, from 0 to 1 (it is tinted).
    """

    kind: str
    label: str
    says: str
    write: float
    changed: NotRequired[bool]
    moved: NotRequired[float]


def head_grid(
    picture: bytes,
    side: int,
    roles: Sequence[Sequence[Thumbnail]],
    chosen: tuple[int, int],
    mode: Mode,
    on_pick: Callable[[int, int], Any],
    *,
    key: str = "heads",
    saved: Saved | None = None,
) -> None:
    """Draw the grid; `on_pick(block, head)` runs before the rerun that a click causes.

    `picture` and `side` come from `gptviz.figures.head_grid.thumbnails`; `roles` has a row a block;
    `chosen` is the ringed (block, head).
    """
    n_blocks, n_heads = len(roles), len(roles[0])
    _component(
        key,
        {
            "picture": "data:image/png;base64," + base64.b64encode(picture).decode(),
            "side": side,
            "blocks": n_blocks,
            "heads": n_heads,
            "roles": roles,
            "largest_write": max(max(head["write"] for head in row) for row in roles) or 1.0,
            "block": chosen[0],
            "head": chosen[1],
        },
        mode=mode,
        saved=saved or Saved(stem("all", "heads")),
        limits={"blocks": range(n_blocks), "heads": range(n_heads)},
        on={"head": lambda head: on_pick(head["block"], head["head"])},
    )


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Two blocks of three heads, and twelve of twelve; each picture a diagonal on paper. One is changed."""
    for name, n_blocks, n_heads in (("heads_example", 2, 3), ("heads_many", 12, 12)):
        roles: list[list[Thumbnail]] = [
            [
                {"kind": "mixed", "label": "mixed", "says": "Looks at many. " * (1 + i % 3), "write": 1.0 + i}
                for i in range(n_heads)
            ]
            for _ in range(n_blocks)
        ]
        side, colors = 6, palette(mode)
        picture = Image.new("RGB", (side * n_heads, side * n_blocks), colors.paper)
        for x in range(picture.width):
            for y in range(x % side, picture.height, side):
                picture.putpixel((x, y), ImageColor.getrgb(colors.output))
        file = io.BytesIO()
        picture.save(file, format="PNG")

        roles[0][1] |= {"changed": True, "moved": 0.0}
        for row in roles[1:]:
            for head, thumbnail in enumerate(row):
                thumbnail["moved"] = head / n_heads

        def pick(block: int, head: int) -> None:
            sent("head", {"block": block, "head": head})

        head_grid(file.getvalue(), side, roles, (1, 2), mode, pick, key=name)
