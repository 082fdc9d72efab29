"""What a bundled model cannot do, said where a text asks for it, with a button to a model that can."""

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.names import names_kept_apart, persons
from gptviz.models.catalog import catalog
from gptviz.models.loading import BUNDLED
from gptviz.ui.buttons import button
from gptviz.ui.models.choice import Choice
from gptviz.ui.shell import state

LONG_TOKENS = 40  # from here on what it writes is more than a sentence or two

READ = {
    "mini": "mini has read 262 English books and nothing else.",
    "mini-world": "mini-world has read 262 English books and plain passages about a small world.",
}
KEPT_APART = 0.75  # of the sentences with two names: from here on a model knows which is meant


def limit(lm: LanguageModel, text: str, written: int = 0) -> str | None:
    """A sentence about what is too hard for a bundled model in a text; None if nothing is.

    `written` is how many tokens the model has written after it.
    """
    strange = next(
        (c for c in text if c.isalpha() and not c.isascii() and len(lm.encode(c, begin=False)) > 1),
        None,
    )
    if strange is not None:
        return f"It has no token for `{strange}`. It reads the letter byte by byte, and can only guess what follows."
    names = persons(text)
    if len(names) > 1:
        right, total = names_kept_apart(lm)
        if right < KEPT_APART * total:
            return (
                f"With two names, such as `{names[0]}` and `{names[1]}`, it knows who is meant in only "
                f"{right} of {total} test sentences."
            )
    if written >= LONG_TOKENS:
        return (
            "It imitates the style of its books well, but loses the plot after a sentence or two."
        )
    return None


def limits(key: str, lm: LanguageModel, text: str, written: int = 0) -> None:
    """Draw that sentence if the key is a bundled model's, with a button to a GPT-2 that is on disk."""
    sentence = None
    name = key.split("|")[0]
    if name in BUNDLED:
        sentence = limit(lm, text, written)
    if sentence is None:
        return
    gpt2s = (entry for entry in catalog() if "gpt2" in entry.name)  # TinyStories have read less
    other = next((entry.name for entry in gpt2s if entry.folder() is not None), None)
    advice = (
        " GPT-2 has read more. To use it, click the model's name on the left, then *More models …*."
    )
    if other:
        advice = ""
    key = f"limit_{bool(written)}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"gv_{key}"):
        st.caption(f"{READ[name]} {sentence}{advice}", width="content")
        if other:
            button(f"Read it with {other}", f"other_{key}", state.choose_model, Choice(other))
