"""How surprised the model was by each token of the prompt: chips.

Pointing at a chip writes its sentence; a click selects the token before it, where it was expected.
"""

from collections.abc import Sequence

from gptviz.ui.components.kernel import Component, On, Rows, among, shared_characters
from gptviz.ui.components.saved import Saved

_component = Component("surprise")


def surprise_chips(
    chips: Rows,
    expected: int,
    legend: dict[str, str],
    on_select: On,
    *,
    raws: Sequence[bytes] = (),
    key: str = "surprise",
    saved: Saved | None = None,
) -> None:
    """Draw `figures.next_token.surprise_rows`; `expected` is the position whose token the bars above predict.

    `on_select(position)` runs before the rerun that a click causes, with the position before the chip's.
    `raws` are the tokens' bytes: those that share a character stand under it.
    """
    data = {
        "chips": list(chips),
        "groups": shared_characters(raws),
        "expected": expected,
        "legend": legend,
    }
    events = {"position": (among(range(1, len(chips))), lambda position: on_select(position - 1))}
    if _component(key, data, events, saved):
        import streamlit as st

        # the selected token belongs to the whole page, not to the fragment that this may be in
        st.rerun()
