"""Links from a place of the machine's picture to the page about it, and from a page to its place there."""

from typing import Any

import streamlit as st

from gptviz.analysis.places import Place
from gptviz.ui.shell import state
from gptviz.ui.shell.params import Param

# "block.4.head.3": see gptviz.analysis.places; without one the first page shows a guess being made
AT = Param("at", str, "")
WHOLE = "machine"  # the machine as a whole, which places call ""
GUESS = "guess"  # how the picture asks for the way back from there

# kind of place -> the page about it
_PAGES = {
    "embedding": "embeddings",
    "block": "residual_stream",
    "attention": "attention",
    "head": "attention",
    "cell": "attention",
    "feed_forward": "feed_forward",
    "unit": "feed_forward",
    "out_head": "next_token",
    "logit": "why",
} | dict.fromkeys(("norm1", "norm2", "final_norm"), "layernorm")

# page -> its place, with what is selected there
_PLACES = {
    "embeddings": "embedding",
    "layernorm": "{norm}",
    "attention": "block.{block}.head.{head}",
    "feed_forward": "block.{block}.feed_forward",
    "residual_stream": "block.{block}",
    "next_token": "out_head",
    "generate": "out_head",
    "why": "out_head",
    "heads": "block.{block}.head.{head}",
}


def page_about(place: Place) -> tuple[str, dict[str, Any]] | None:
    """The page about a place, and the choices that open it there; None for the machine as a whole."""
    if place.kind not in _PAGES:
        return None
    if place.kind == "final_norm":
        norm = "final"
    else:
        norm = f"block {place.block} · {place.kind}"
    chosen = {
        "block": (place.block, "block" in place.at),
        "head": (place.head, "head." in place.at),
        "token": (place.query, place.kind == "cell"),
        "key": (place.key, place.kind == "cell"),
        "ff_unit": (place.unit, place.kind == "unit"),
        "ln_norm": (norm, "norm" in place.kind),
        "target": (place.id, place.kind == "logit"),
    }
    return _PAGES[place.kind], {name: value for name, (value, applies) in chosen.items() if applies}


def place_of(page: str) -> str:
    """The address of the place that a page has in hand."""
    block = state.BLOCK.value
    head = state.HEAD.value
    norm = st.session_state.get("ln_norm", "block 0 · norm1")
    return _PLACES.get(page, "").format(
        block="last" if block is None else block,
        head="strongest" if head is None else head,
        norm="final_norm"
        if norm == "final"
        else norm.replace("block ", "block.").replace(" · ", "."),
    )


def arrive() -> None:
    """Take the place from the address, if a link to another place was clicked."""
    text = st.query_params.get(AT.name)
    if text == "":
        # the sidebar's link to the page that is open: Streamlit reads it, and leaves the browser's address
        st.query_params[AT.name] = ""
    if text is not None and text != st.session_state.get(_SAID):
        AT.set(AT.parse(text))


def stored() -> None:
    """Note that the address now says what is in hand."""
    st.session_state[_SAID] = AT.value


_SAID = "gptviz_at_said"  # in the session: what the address said, or was to say, in the run before
