"""Windows that slide over a text: a row a window, under the tokens that it holds.

A token has its position's colour in every window, so that one sees it come again. The selected window is
open: its inputs, and below them its targets, the same tokens from one place further on. Where there are too
many tokens to write them, a window is a bar.
"""

from collections.abc import Sequence

from gptviz.ui.components.kernel import COLOURS, Component, On, among
from gptviz.ui.components.saved import Saved

_component = Component("windows")

# tokens that are written out side by side; the picture scrolls in itself where it must
READABLE = 48


def draw_windows(
    tokens: Sequence[str],
    first: int,
    starts: Sequence[tuple[int, int]],
    length: int,
    selected: int,
    on_select: On,
    *,
    dropped: int | None = None,
    key: str = "windows",
    saved: Saved | None = None,
) -> None:
    """Draw windows of `length` inputs; `on_select(window)` runs before the rerun that a click causes.

    `tokens` are those of the text from position `first` on, as the screen shows them, and reach to the last
    target. `starts` are (number, first position) of each window; those from number `dropped` on are in no
    batch. ValueError where a window or a target of it lies outside the tokens.
    """
    end = first + len(tokens)
    outside = [number for number, start in starts if start < first or start + length + 1 > end]
    if outside:
        raise ValueError(
            f"window {outside[0]} is not inside the tokens, positions {first} to {end - 1}"
        )
    rows = [
        {"window": number, "start": start, "dropped": dropped is not None and number >= dropped}
        for number, start in starts
    ]
    shown = None
    if len(tokens) <= READABLE:
        shown = list(tokens)
    data = {"tokens": shown, "count": len(tokens), "first": first, "rows": rows, "length": length}
    data |= {"selected": selected, "colours": COLOURS}
    _component(key, data, {"window": (among({number for number, _ in starts}), on_select)}, saved)
