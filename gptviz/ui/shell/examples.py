"""Prompts that are worth a look with the bundled model."""

from functools import partial

import streamlit as st

from gptviz.ui.shell import state

EXAMPLES = {
    "A copied passage": state.DEFAULT_TEXT,
    "A name comes back": "Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr.",
    "A quotation closes": '"Where are you going?" said the boy. "Where are you going',
    "He and she": "The king loved his daughter, but she did not love",
    "Counting": "Chapter I. Chapter II. Chapter III. Chapter",
    "Once upon a time": "Once upon a time there was a",
}


def example_row(*labels: str) -> None:
    """These examples (all, if none is named) as buttons."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_examples"):
        st.caption("Try:", width="content")
        for number, (label, text) in enumerate(EXAMPLES.items()):
            if not labels or label in labels:
                st.button(
                    label,
                    key=f"example_{number}",
                    type="primary" if text == state.TEXT.value else "secondary",
                    on_click=partial(state.change, text=text, token=None),
                )
