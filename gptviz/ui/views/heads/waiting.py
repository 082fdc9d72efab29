"""What is worked out in the background: its progress, a way to stop it, the page again when it is done."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.ui.measuring import Job

EVERY_SECONDS = 1.5  # between two looks at work that goes on

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
    going = job.active

    @st.fragment(run_every=EVERY_SECONDS if going else None)
    def watching() -> None:
        now = find()
        if now.active != going:
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_progress"):
            if going:
                st.button("Stop", key=f"{key}_stop", on_click=_stop, args=(find,))
                st.progress(now.done / now.of if now.of else 0.0, says(now.done, now.of))
            else:
                st.caption(stopped, width="content")
                st.button("Go on", key=f"{key}_start", on_click=_start, args=(find,))

    watching()
    return None


def _stop(find: Find) -> None:
    find().stop()


def _start(find: Find) -> None:
    find().start()
