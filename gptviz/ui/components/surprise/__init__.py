"""How surprised the model was by each token of the prompt: chips, a st.components.v2 component.

Pointing at a chip writes its sentence; a click selects the token before it, where it was expected.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
import torch

from gptviz.analysis.next_token import surprises
from gptviz.figures.theme import Mode, palette
from gptviz.forward import FORWARD_LOCK
from gptviz.ui.components.kernel import saving_component
from gptviz.ui.shell.page import Scene

_component = saving_component("surprise")


def prompt_surprises(scene: Scene) -> pd.DataFrame:
    """`analysis.next_token.surprises` of the prompt: the output head at every position, once per text."""
    ids = tuple(token.id for token in scene.tokens)
    return _surprises(scene.key, ids, scene.trace["final"], scene.lm.model.out_head.weight.detach())


@st.cache_data(max_entries=64, show_spinner="Reading how surprising each token was …")
def _surprises(model: str, ids: tuple[int, ...], _final: torch.Tensor, _head: torch.Tensor) -> pd.DataFrame:
    with FORWARD_LOCK:  # with GPT-2's vocabulary as much work as several forward passes
        return surprises(_final, _head, ids)


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
