"""Prompts that are worth a look with the bundled model, and what to look for in each."""

from dataclasses import dataclass

import streamlit as st

from gptviz.ui.shell import state


@dataclass(frozen=True)
class Example:
    label: str
    text: str
    watch: str  # a sentence or two


EXAMPLES = (
    Example(
        "A copied passage",
        state.DEFAULT_TEXT,
        "The sentence begins again: some heads look back to what came next the first time.",
    ),
    Example(
        "A name comes back",
        "Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr.",
        "No book has this name: the model can only take it from your text, and it does, with a ·Z.",
    ),
    Example(
        "A quotation closes",
        '"Where are you going?" said the boy. "Where are you going',
        'The most probable token, ?", ends the question and closes the quotation at once.',
    ),
    Example(
        "He and she",
        "The king loved his daughter, but she did not love",
        "The model bets on ·him and on ·her before anything else: it keeps track of who there is.",
    ),
    Example(
        "Counting",
        "Chapter I. Chapter II. Chapter III. Chapter",
        "The list is obvious to us. Watch how sure the model is of an ·I, and what it makes of it.",
    ),
    Example(
        "Once upon a time",
        "Once upon a time there was a",
        "Many stories begin like this: many tokens are possible, and none is sure.",
    ),
)


def example_row(*labels: str) -> None:
    """These examples (all, if none is named) as buttons, and below them what to watch in the prompt's own.

    What there is to watch was seen in the bundled model, and is said of no other, nor of a changed one.
    """
    offered = [(i, example) for i, example in enumerate(EXAMPLES) if not labels or example.label in labels]
    prompt = state.current()
    changed = bool(state.EDITS.value) and not state.EDITS_OFF.value
    bundled = prompt.model.name == state.DEFAULT_MODEL.name and not changed
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_examples"):
        st.caption("Try:", width="content")
        for number, example in offered:
            st.button(
                example.label,
                key=f"example_{number}",
                type="primary" if example.text == prompt.text else "secondary",
                help=example.watch if bundled else None,
                on_click=_choose,
                args=(example.text,),
            )
    for _, example in offered:
        if bundled and example.text == prompt.text:
            st.markdown(f"**What to watch:** {example.watch}")


def _choose(text: str) -> None:
    state.change(text=text, token=None)
