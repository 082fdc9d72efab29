"""Keep what a run has drawn when the browser asks for the next one at the moment at which it ends.

A run draws in a thread of its own, and Streamlit sends on from the server's loop what it has drawn. If a
request for a part of the page finds a run that has ended and of which something still waits to be sent,
Streamlit begins a new run, and drops what waits: the answer to a click is lost for good if a part that runs
every two seconds asks just then. Here such a request waits until that is sent.
"""

from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

_begin = AppSession._create_scriptrunner


def _begin_when_all_is_sent(session: AppSession, asked: RerunData) -> None:
    """Begin a run, behind what the run before has left in the server's loop."""
    if session._scriptrunner is None:
        _begin(session, asked)
    else:
        session._event_loop.call_soon(_ask_again, session, asked)


def _ask_again(session: AppSession, asked: RerunData) -> None:
    """Hand the request to a run that another request has begun by now, or begin one."""
    if session._state == AppSessionState.SHUTDOWN_REQUESTED:
        return
    runner = session._scriptrunner
    if runner is None or not runner.request_rerun(asked):
        _begin(session, asked)


def keep_what_was_drawn() -> None:
    """Have every session of this server do so. Streamlit has no setting for it."""
    AppSession._create_scriptrunner = _begin_when_all_is_sent  # type: ignore[method-assign, assignment]
