"""What is worked out in the background: its progress, a way to stop it, the page again when it is done.

A job belongs to all sessions that wait for it. Who presses Stop, or opens another head, no longer does: for
him it is stopped, and where nobody else waits, it is.
"""

from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from gptviz.ui.measuring import Job
from gptviz.ui.runs import session
from gptviz.ui.views.heads import words

EVERY_SECONDS = 1.5  # between two looks at work that goes on
_LEFT = "measuring_left"  # in the session: the jobs that it does not wait for, by their names

Find = Callable[[], Job[Any]]
Says = Callable[[int, int], str]  # passes done, of how many -> a sentence


def wait_for(key: str, find: Find, says: Says, stopped: str) -> Any:
    """The job's result, or None and in its place how far it is.

    `find` gives the job, and starts it where nobody has: it is called again at every look, so that nothing
    of the work stays in a session. `stopped` is what is said when somebody ended it.
    """
    job = find()
    if job.state == "done":
        return job.result
    if job.state == "failed":
        st.warning(job.error)
        return None
    if job.state == "stopped" and job.key not in _left():  # by somebody else, who alone waited for it then
        job.start()
    going = waited_for(job)

    @st.fragment(run_every=EVERY_SECONDS if going else None)
    def watching() -> None:
        now = find()
        if waited_for(now) != going or now.state == "done":
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_progress"):
            if going:
                st.button("Stop", key=f"{key}_stop", on_click=_stop, args=(find,))
                said = words.WAITING if now.state == "waiting" else says(now.done, now.of)
                said += words.left(now.seconds_left)
                st.progress(now.done / now.of if now.of else 0.0, said)
            else:
                st.caption(stopped, width="content")
                st.button("Go on", key=f"{key}_start", on_click=_start, args=(find,))

    watching()
    return None


def waited_for(job: Job[Any]) -> bool:
    """Whether a job goes on and this session waits for it: then this is a look at it."""
    if not job.active or job.key in _left():
        return False
    job.look(_me())
    return True


def leave(job: Job[Any]) -> None:
    """This session waits for it no longer."""
    _left().add(job.key)
    job.leave(_me())


def take_up(job: Job[Any]) -> None:
    """This session waits for it: it goes on, or begins anew."""
    _left().discard(job.key)
    job.look(_me())
    job.start()


def _left() -> set[Hashable]:
    found: set[Hashable] = st.session_state.setdefault(_LEFT, set())
    return found


def _me() -> str:
    return session() or ""


def _stop(find: Find) -> None:
    leave(find())


def _start(find: Find) -> None:
    take_up(find())
