"""A token's residual stream as a path: what every block adds, arrow by arrow, from the corner to the end.

It draws itself once, a step at a time; a click ends that, and chooses the block of an arrow. Where the reader
wants no motion all of it is there at once. What is said of each step is written in `figures/stream.py`.
"""

from collections.abc import Mapping
from typing import Any

from gptviz.ui.components.kernel import Component, On, among
from gptviz.ui.components.saved import Saved

_component = Component("path")


def draw_path(
    key: str,
    drawn: Mapping[str, Any],
    block: int,
    alt: str,
    on_block: On,
    *,
    saved: Saved | None = None,
) -> None:
    """Draw what `figures.stream.path_drawn` gives; `block` is the chosen one, `alt` says what is seen.

    `on_block(block)` runs before the rerun that a click on an arrow of this block causes.
    """
    blocks = range(len(drawn["steps"]) // 2)
    data = {**drawn, "block": block, "alt": alt}
    _component(key, data, {"block": (among(blocks), on_block)}, saved)
