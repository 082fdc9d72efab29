"""The browser's address: read it, write it, and know when it was the back button that changed it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import ScriptRunContext, StopException, get_script_run_ctx

_PAGE = "address_page"  # in the session, until the page has run: it was asked for


def is_history_navigation() -> bool:
    """True if the browser's back or forward button made the page run; then the address wins."""
    # Streamlit has no public name for it
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_fragment_run() -> bool:
    """True if only a part of the page runs: page() then writes nothing into the address."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def page() -> str:
    """The page that runs, as Streamlit tells it from the others in the names that it gives to widgets."""
    context = get_script_run_ctx()
    if context is not None:
        return context.page_script_hash
    return ""


def as_the_app() -> AbstractContextManager[None]:
    """Draw inside this block as part of the app: it stays when another page is opened.

    The sidebar is drawn so, and keeps the place that it was scrolled to.
    """
    return _drawn_by(lambda context: context.pages_manager.main_script_hash)


def as_the_page() -> AbstractContextManager[None]:
    """Draw inside this block as part of the page: it goes with it, though `app.py` draws it."""
    return _drawn_by(lambda context: context.page_script_hash)


def _drawn_by(script: Callable[[ScriptRunContext], str]) -> AbstractContextManager[None]:
    context = get_script_run_ctx()
    if context is None:
        return nullcontext()
    return context.run_with_active_hash(script(context))


def end_page() -> NoReturn:
    """End the page's script, which has nothing more to show. After st.stop() `app.py` could draw nothing."""
    raise StopException


def ask_for_the_page() -> None:
    """For callbacks: the whole page is to run again, whatever fragment the click is in.

    What a button returns cannot say so: where its callback leaves it disabled, or not drawn, that is nothing.
    """
    st.session_state[_PAGE] = True


def run_the_page_if_asked_for() -> None:
    """In a fragment run, run the whole page if a callback has asked for it."""
    if st.session_state.pop(_PAGE, False) and is_fragment_run():
        st.rerun()


def write(params: Mapping[str, str]) -> None:
    """Make the address say these things: one step in the browser's history, none if it says them already.

    A parameter that is there already is overwritten and not deleted: deleting would be a second step.
    """
    changed = {name: value for name, value in params.items() if st.query_params.get(name) != value}
    if changed:
        st.query_params.update(changed)
