"""A part of the page that costs nothing until it is opened."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st


@contextmanager
def panel(title: str, icon: str, key: str) -> Iterator[bool]:
    """What is drawn inside stands in an expander; whether that is open, which it is not at first."""
    box = st.expander(title, icon=icon, on_change="rerun", key=key)
    with box:
        yield bool(box.open)
