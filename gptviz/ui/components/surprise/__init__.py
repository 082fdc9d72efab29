"""How surprised the model was by each token of the prompt: chips, a st.components.v2 component.

Pointing at a chip writes its sentence; a click selects the token before it, where it was expected.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.kernel import saving_component

_component = saving_component("surprise")


def surprise_chips(
    chips: Sequence[dict[str, Any]],
    expected: int,
    legend: dict[str, str],
    mode: Mode,
    on_select: Callable[[int], Any],
    *,
    key: str = "surprise",
) -> None:
    """Draw `figures.surprise.surprise_rows`; `expected` is the position whose token the bars above predict.

    `on_select(position)` runs before the rerun that a click causes, with the position before the chip's.
    """
    colors = palette(mode)

    def clicked() -> None:
        position = st.session_state[key].position
        if isinstance(position, int) and 0 < position < len(chips):  # a late click may follow a shorter text
            on_select(position - 1)

    result = _component(
        key=key,
        data={
            "chips": list(chips),
            "expected": expected,
            "legend": legend,
            "colors": {name: getattr(colors, name) for name in ("ink", "quiet", "accent", "panel")},
        },
        on_position_change=clicked,
    )
    if result.position is not None:
        st.rerun()  # the selected token belongs to the whole page, not to the fragment that this may be in
