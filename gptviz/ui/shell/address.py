"""A page's own choices in the address: ?block=3&head=4&key=7.

Streamlit's bind="query-params" writes down what a person changes in a widget, and not what code changes
(a click on a thumbnail that sets the widget's value). Choices that can be made both ways go through
here: the widget has the key and no `bind`, `page()` is told of it.
"""

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

Choices = Mapping[str, type[int] | type[str]]  # session key, which is the parameter's name -> its type


def is_history_navigation() -> bool:
    """Whether this run is because of the browser's back and forward buttons; then the address wins."""
    # Streamlit has no public name for it
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def read(choices: Choices) -> None:
    """Take the choices from the address into the session: at first, and when the browser goes back.

    What makes no sense there is as if it were not there: None, the page's default.
    """
    back = is_history_navigation()
    for key, kind in choices.items():
        if back or (key not in st.session_state and key in st.query_params):
            st.session_state[key] = parse(st.query_params.get(key, ""), kind)


def parse(text: str, kind: type[int] | type[str]) -> int | str | None:
    """A parameter's value, or None for an empty one and for what is no small whole number."""
    if kind is str:
        return text or None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def written(choices: Choices) -> dict[str, str]:
    """The parameters as the session has them, without those that are chosen nowhere.

    A choice that was taken back stays as an empty parameter: to delete it would be another step in the
    browser's history.
    """
    values = {key: st.session_state.get(key) for key in choices}
    return {
        key: "" if value is None else str(value)
        for key, value in values.items()
        if value is not None or key in st.query_params
    }


def write(params: Mapping[str, str]) -> None:
    """Make the address say these things: one step in the browser's history, none if it says them already."""
    changed = {name: value for name, value in params.items() if st.query_params.get(name) != value}
    if changed:
        st.query_params.update(changed)
