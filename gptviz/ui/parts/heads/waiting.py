"""Work in the background: its progress, a way to stop it, and a rerun of the page when it is done.

A job belongs to all sessions that wait for it. A visitor who presses Stop, or opens another head, no longer
waits for it; it stops when nobody does.
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
    """Return the job's result; without one, draw its progress and return None.

    `find` gives the job and starts it if need be. It is called again at every look, so that the session
    keeps nothing of it. `what` stands on the bar; `stopped` is said when the visitor ended the job.
    """
    job = find()
    if job.state == "done":
        return job.result
    if job.state == "failed":
        not_done(job, key, lambda: take_up(find()))
        return None
    # by somebody else, who alone waited for it then
    if job.state == "stopped" and job.task not in _left():
        job.start(visitor())
    goes_on = waited_for(job)

    @st.fragment(run_every=EVERY_SECONDS if goes_on else None)
    def watching() -> None:
        current = find()
        if waited_for(current) != goes_on or current.state == "done":
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_progress"):
            if goes_on:
                st.button("Stop", key=f"{key}_stop", on_click=lambda: leave(find()))
                done, total = current.progress
                st.progress(
                    done / total if total else 0.0, said_of(current, f"{what}: {done} of {total}")
                )
            else:
                st.caption(stopped, width="content")
                st.button("Go on", key=f"{key}_start", on_click=lambda: take_up(find()))

    watching()
    return None


def waited_for(job: Job[R]) -> bool:
    """True if a job goes on and this session waits for it; tell the queue that it does.

    False once the visitor has left it.
    """
    if not job.active or job.task in _left():
        return False
    job.look(visitor())
    return True


def leave(job: Job[R]) -> None:
    """Stop waiting for this job in this session."""
    _left().add(job.task)
    job.leave(visitor())


def take_up(job: Job[R]) -> None:
    """Wait for this job in this session: it goes on, or begins anew."""
    _left().discard(job.task)
    job.look(visitor())
    job.start(visitor())


def _left() -> set[Task]:
    return st.session_state.setdefault(_LEFT, set())
