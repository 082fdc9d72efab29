"""The chosen key: which of the tokens that the selected one looks at is looked at more closely."""

from collections.abc import Callable

import streamlit as st
import torch

from gptviz.ui.sheet import Param, Scene, if_there

KEY: Param[int | None] = Param("key", int, None, if_there)
_QUERY = "attention_key_query"  # in the session: the query that the chosen key was chosen for


def key_input(scene: Scene, weights: torch.Tensor) -> int:
    """The key that somebody chose for this query, else the one that gets most of its row (T,)."""
    size = len(scene.tokens)
    strongest = int(torch.nan_to_num(weights, nan=-1).argmax())
    if st.session_state.setdefault(_QUERY, scene.position) != scene.position:
        KEY.set(None)  # it was chosen for another query
    st.session_state[_QUERY] = scene.position
    about = "Empty: the key that gets most of the query's attention."
    return KEY.index("Key", size, strongest, f"{strongest}, the strongest", width=210, help=about)


def picker(scene: Scene) -> Callable[[int | None, int | None], None]:
    """Make the callback of a click in a picture: it selects the query everywhere, and the key here.

    It stands in a module, since what a session keeps of a script is all that the script has in hand.
    """

    def pick(query: int | None, key: int | None) -> None:
        if query is not None:
            scene.select(query)
            st.session_state[_QUERY] = query
            KEY.set(None)
        if key is not None:
            KEY.set(key)

    return pick
