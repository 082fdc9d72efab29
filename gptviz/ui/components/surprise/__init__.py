"""How surprised the model was by each token of the prompt: chips.

Pointing at a chip writes its sentence; a click selects the token before it, where it was expected.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode, palette
from gptviz.tokenizer import show_token
from gptviz.ui.components.groups import shared_characters
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved, stem

_component = component("surprise", position=among("positions"))


def surprise_chips(
    chips: Sequence[dict[str, Any]],
    expected: int,
    legend: dict[str, str],
    mode: Mode,
    on_select: Callable[[int], Any],
    *,
    raws: Sequence[bytes] = (),
    key: str = "surprise",
    saved: Saved | None = None,
) -> None:
    """Draw `figures.surprise.surprise_rows`; `expected` is the position whose token the bars above predict.

    `on_select(position)` runs before the rerun that a click causes, with the position before the chip's.
    `raws` are the tokens' bytes: those that share a character stand under it.
    """
    sent = _component(
        key,
        {
            "chips": list(chips),
            "groups": shared_characters(raws),
            "expected": expected,
            "legend": legend,
        },
        mode=mode,
        saved=saved or Saved(stem("surprise")),
        limits={"positions": range(1, len(chips))},
        on={"position": lambda position: on_select(position - 1)},
    )
    if sent:
        st.rerun()  # the selected token belongs to the whole page, not to the fragment that this may be in


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Five tokens, two of them parts of a character; the third is the one that the page is about.

    Each has what the unchanged model was surprised by.
    """
    raws = [b"The", b" cat", b" \xc3", b"\xa9", b" sat"]
    colors = [color for _, color in palette(mode).attention]
    rows: list[dict[str, Any]] = [
        {
            "token": show_token(raw),
            "bits": None if i == 0 else 1.5 * i,
            "rank": None if i == 0 else 10**i,
            "bits_text": "–" if i == 0 else f"{1.5 * i:.1f}",
            "color": colors[min(i, 1)],
            "ghost": None if i == 0 else {"bits": 0.5 * i, "text": f"{0.5 * i:.1f}", "color": colors[0]},
            "sentence": "is the first." if i == 0 else f"came with {1.5 * i:.1f} bits of surprise." * i,
        }
        for i, raw in enumerate(raws)
    ]
    legend = {"from": colors[0], "to": colors[2], "low": "0 bits", "high": "13 bits", "rest": "Point at one."}
    legend["ghost"] = "changed above, unchanged below"
    surprise_chips(
        rows, 2, legend, mode, lambda position: sent("position", position), raws=raws, key="surprise_example"
    )
