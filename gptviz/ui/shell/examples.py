"""Prompts that are worth a look with the bundled model."""

from dataclasses import dataclass

import streamlit as st

from gptviz.ui.shell import state


@dataclass(frozen=True)
class Example:
    label: str
    text: str


EXAMPLES = (
    Example("A copied passage", state.DEFAULT_TEXT),
    Example("A name comes back", "Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr."),
    Example("A quotation closes", '"Where are you going?" said the boy. "Where are you going'),
    Example("He and she", "The king loved his daughter, but she did not love"),
    Example("Counting", "Chapter I. Chapter II. Chapter III. Chapter"),
    Example("Once upon a time", "Once upon a time there was a"),
)


def example_row(*labels: str) -> None:
    """These examples (all, if none is named) as buttons."""
    offered = [(i, example) for i, example in enumerate(EXAMPLES) if not labels or example.label in labels]
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_examples"):
        st.caption("Try:", width="content")
        for number, example in offered:
            st.button(
                example.label,
                key=f"example_{number}",
                type="primary" if example.text == state.TEXT.value else "secondary",
                on_click=_choose,
                args=(example.text,),
            )


def _choose(text: str) -> None:
    state.change(text=text, token=None)
