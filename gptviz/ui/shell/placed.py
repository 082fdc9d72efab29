"""A widget that a person and the program both move: a slider over something that grows.

A browser that has not yet drawn what the program put into a widget sends the old value with its next request,
as if the person had chosen it. So where the program moves a widget, it is a new one; what the old one still
says is not heard.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

_PLACED = "{}_placed"  # in the session: how often the program moved the widget, and what it shows
_TOUCHED = "{}_touched"  # what the person last chose


def placed(
    draw: Callable[..., Any],
    label: str,
    name: str,
    shows: object,
    choose: Callable[[Any], None] | None = None,
    **options: Any,
) -> Any:
    """Draw the widget `name`, which `shows` this: the last one, unless the program moved it; what it gives.

    `choose` is called with what a person gives it.
    """
    count, before = st.session_state.get(_PLACED.format(name), (0, shows))
    count += shows != before
    st.session_state[_PLACED.format(name)] = (count, shows)
    key = _key(name, count)
    return draw(label, key=key, on_change=_moved, args=(name, key, choose), **options)


def _moved(name: str, key: str, choose: Callable[[Any], None] | None) -> None:
    """The widget's callback: take down what the person gave it, and `choose` it."""
    count, _ = st.session_state[_PLACED.format(name)]
    if key == _key(name, count):
        value = st.session_state[_TOUCHED.format(name)] = st.session_state[key]
        st.session_state[_PLACED.format(name)] = (count, value)
        if choose is not None:
            choose(value)


def touched(name: str, usual: Any) -> Any:
    """The value that the visitor last gave the widget `name`, or `usual` while it is untouched."""
    return st.session_state.get(_TOUCHED.format(name), usual)


def _key(name: str, count: int) -> str:
    if count:
        return f"{name}_{count}"
    return name
