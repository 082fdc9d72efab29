"""What is worked out in the background: its progress, a way to stop it, the page again when it is done.

A job belongs to all sessions that wait for it. Who presses Stop, or opens another head, no longer does: for
them it is stopped, and where nobody else waits, it is.
"""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from gptviz.jobs import Job, Task
from gptviz.ui.jobs import visitor
from gptviz.ui.shell.slow import not_done
from gptviz.ui.waiting import said_of

R = TypeVar("R")

EVERY_SECONDS = 1.5  # between two looks at work that goes on
_LEFT = "measuring_left"  # in the session: the jobs that it does not wait for, by their names


def wait_for(key: str, find: Callable[[], Job[R]], what: str, stopped: str) -> R | None:
    """The job's result, or None and in its place how far it is.

    `find` gives the job, and starts it where nobody has: it is called again at every look, so that nothing
    of it stays in a session. `what` stands on the bar, `stopped` is said when somebody ended it.
    """
    job = find()
    if job.state == "done":
        return job.result
    if job.state == "failed":
        not_done(job, key, lambda: take_up(find()))
        return None
    if job.state == "stopped" and job.task not in _left():  # by somebody else, who alone waited for it then
        job.start(visitor())
    going = waited_for(job)

    @st.fragment(run_every=EVERY_SECONDS if going else None)
    def watching() -> None:
        now = find()
        if waited_for(now) != going or now.state == "done":
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_progress"):
            if going:
                st.button("Stop", key=f"{key}_stop", on_click=lambda: leave(find()))
                done, of = now.progress
                st.progress(done / of if of else 0.0, said_of(now, f"{what}: {done} of {of}"))
            else:
                st.caption(stopped, width="content")
                st.button("Go on", key=f"{key}_start", on_click=lambda: take_up(find()))

    watching()
    return None


def waited_for(job: Job[R]) -> bool:
    """True if a job goes on and this session waits for it; the queue is told that it still does.

    False once the visitor has left it.
    """
    if not job.active or job.task in _left():
        return False
    job.look(visitor())
    return True


def leave(job: Job[R]) -> None:
    """This session waits for it no longer."""
    _left().add(job.task)
    job.leave(visitor())


def take_up(job: Job[R]) -> None:
    """This session waits for it: it goes on, or begins anew."""
    _left().discard(job.task)
    job.look(visitor())
    job.start(visitor())


def _left() -> set[Task]:
    return st.session_state.setdefault(_LEFT, set())
