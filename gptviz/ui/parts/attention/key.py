"""The chosen key: one of the tokens that the selected one looks at, which is shown in detail."""

from collections.abc import Callable

import streamlit as st
import torch

from gptviz.ui.sheet import Param, Scene, if_there

KEY: Param[int | None] = Param("key", int, None, if_there)
_QUERY = "attention_key_query"  # in the session: the query that the chosen key was chosen for


def chosen(scene: Scene, weights: torch.Tensor) -> int:
    """Return the key that is chosen for this query, else the largest of its row (T,)."""
    if st.session_state.setdefault(_QUERY, scene.position) != scene.position:
        KEY.set(None)  # it was chosen for another query
    st.session_state[_QUERY] = scene.position
    key = KEY.within(len(scene.tokens))
    if key is None:
        return _strongest(weights)
    return key


def key_input(scene: Scene, weights: torch.Tensor) -> int:
    """Draw the choice of a key; return the one that is `chosen`."""
    chosen(scene, weights)
    size = len(scene.tokens)
    strongest = _strongest(weights)
    hint = "Leave empty for the key with the largest weight."
    return KEY.index("Key", size, strongest, f"{strongest}, the strongest", width=210, help=hint)


def _strongest(weights: torch.Tensor) -> int:
    return int(torch.nan_to_num(weights, nan=-1).argmax())


def picker(scene: Scene) -> Callable[[int | None, int | None], None]:
    """Make the callback of a click in a picture: it selects the query everywhere, and the key here.

    It stands in a module: a session that keeps a function of a script keeps all that the script holds.
    """

    def pick(query: int | None, key: int | None) -> None:
        if query is not None:
            scene.select(query)
            st.session_state[_QUERY] = query
            KEY.set(None)
        if key is not None:
            KEY.set(key)

    return pick
