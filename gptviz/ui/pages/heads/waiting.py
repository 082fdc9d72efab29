"""What is worked out in the background: its progress, a way to stop it, the page again when it is done.

A job belongs to all sessions that wait for it. Who presses Stop, or opens another head, no longer does: for
them it is stopped, and where nobody else waits, it is.
"""

import math
from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from gptviz.ui.measuring.jobs import Job
from gptviz.ui.runs import session

R = TypeVar("R")

EVERY_SECONDS = 1.5  # between two looks at work that goes on
_LEFT = "measuring_left"  # in the session: the jobs that it does not wait for, by their names


def wait_for(key: str, find: Callable[[], Job[R]], what: str, stopped: str) -> R | None:
    """The job's result, or None and in its place how far it is.

    `find` gives the job, and starts it where nobody has: it is called again at every look, so that nothing
    of the work stays in a session. `what` stands on the bar, `stopped` is said when somebody ended it.
    """
    job = find()
    if job.state == "done":
        return job.result
    if job.state == "failed":
        st.warning(job.error or "")
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
                st.button("Stop", key=f"{key}_stop", on_click=lambda: leave(find()))
                said = "Waits its turn: other work goes on in the background."
                if now.state != "waiting":
                    said = f"{what}: {now.done} of {now.of}{_more(now.seconds_left)}"
                st.progress(now.done / now.of if now.of else 0.0, said)
            else:
                st.caption(stopped, width="content")
                st.button("Go on", key=f"{key}_start", on_click=lambda: take_up(find()))

    watching()
    return None


def waited_for(job: Job[R]) -> bool:
    """Whether a job goes on and this session waits for it: then this is a look at it."""
    if not job.active or job.key in _left():
        return False
    job.look(session() or "")
    return True


def leave(job: Job[R]) -> None:
    """This session waits for it no longer."""
    _left().add(job.key)
    job.leave(session() or "")


def take_up(job: Job[R]) -> None:
    """This session waits for it: it goes on, or begins anew."""
    _left().discard(job.key)
    job.look(session() or "")
    job.start()


def _left() -> set[Hashable]:
    found: set[Hashable] = st.session_state.setdefault(_LEFT, set())
    return found


def _more(seconds: float | None) -> str:
    """About how long it still takes, where that is worth saying."""
    if seconds is None or seconds < 5:
        return ""
    if seconds < 90:
        return f" (about {5 * math.ceil(seconds / 5)} s more)"
    return f" (about {math.ceil(seconds / 60)} min more)"
