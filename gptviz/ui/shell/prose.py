"""Sentences on a page, with the field's words explained where they first stand."""

from typing import Literal

import streamlit as st

from gptviz.ui.glossary import explain


def prose(markdown: str, *terms: str, width: Literal["stretch", "content"] | int = "stretch") -> None:
    """Draw Markdown; the first occurrence of each of these terms of the glossary explains itself."""
    st.markdown(explain(markdown, *terms), unsafe_allow_html=True, width=width)
