"""The prompt cut by several tokenizers, with the choices that belong to it."""

import streamlit as st

from gptviz.analysis.tokens import chapter, compare
from gptviz.tokenizer import encoding_names, get_encoding
from gptviz.ui.components.tokenizer_rows import tokenizer_rows
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene

OFFLINE = ("mini", "gpt2")
ALICE, PROMPT = "a chapter of Alice", "this prompt"
FIT = Param("tok_fit", str, ALICE, if_there)
MORE: Param[str | None] = Param("tok_more", str, None, if_there)
PARAMS = (FIT, MORE)


@st.fragment
def comparison(scene: Scene, text: str) -> None:
    """mini, gpt2, words, characters and bytes, and one more of tiktoken's if it can be reached."""
    encoding = scene.lm.tokenizer
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        FIT.within((ALICE, PROMPT))
        source = FIT.widget(
            st.segmented_control,
            "Words and characters are learnt from",
            options=[ALICE, PROMPT],
            required=True,
        )
        others = [name for name in encoding_names() if name not in OFFLINE]
        MORE.within(others)
        more = MORE.widget(
            st.selectbox,
            "One more, from OpenAI's server",
            options=others,
            index=None,
            placeholder="none",
            width=230,
        )
    known = []
    for name in dict.fromkeys([*OFFLINE, encoding.name, *([more] if more else [])]):
        problem = None if name == encoding.name else _problem(name)
        if problem:
            st.warning(problem)
        else:
            known.append(encoding if name == encoding.name else get_encoding(name))
    learnt_from = text if source == PROMPT else chapter()
    tokenizer_rows(
        compare(text, known, learnt_from, scene.special),
        scene.mode,
        saved=scene.saved("tokenizers", "The same text, cut by other tokenizers"),
    )
    st.caption(
        "Few tokens, or a small vocabulary: never both. A word that a word tokenizer has not seen is lost in "
        "`[UNK]`, and a character tokenizer has no id for a new character. Byte pair encoding starts from "
        "all 256 bytes, so it can write anything, and gives what is frequent a token of its own."
    )


@st.cache_data(ttl=60, max_entries=20, show_spinner="Fetching the tokenizer …")
def _problem(name: str) -> str | None:
    """Why the encoding cannot be had, or None; asked again after a minute, not at every click."""
    try:
        get_encoding(name)
    except ValueError as error:
        return str(error)
    return None
