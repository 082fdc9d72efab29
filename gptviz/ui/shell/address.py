"""The browser's address: read it, write it, and know when it was the back button that changed it."""

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_history_navigation() -> bool:
    """Whether this run is because of the browser's back and forward buttons; then the address wins."""
    # Streamlit has no public name for it
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_fragment_run() -> bool:
    """Whether only a part of the page runs: what page() writes into the address is then not written."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def write(params: Mapping[str, str]) -> None:
    """Make the address say these things: one step in the browser's history, none if it says them already.

    A parameter that is there already is overwritten and not deleted: deleting would be a second step.
    """
    changed = {name: value for name, value in params.items() if st.query_params.get(name) != value}
    if changed:
        st.query_params.update(changed)
