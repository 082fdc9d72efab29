"""What is worked out of a model's heads in the background: once for all sessions, and kept on disk."""

import atexit

import streamlit as st

from gptviz import Run
from gptviz.analysis.head_general import General, general
from gptviz.ui import runs
from gptviz.ui.measuring.jobs import Job, Jobs, Progress
from gptviz.ui.models.cache import model_cache
from gptviz.ui.settings import cache_bytes

SETTING, DEFAULT_MEGABYTES = "GPTVIZ_MEASURED_CACHE_MB", 64


@st.cache_resource(max_entries=1, show_spinner=False)
def jobs() -> Jobs:
    """The process's jobs; MB of results in the environment variable GPTVIZ_MEASURED_CACHE_MB."""
    made = Jobs(cache_bytes(SETTING, DEFAULT_MEGABYTES))
    atexit.register(made.close)
    model_cache().when_dropped(lambda model: made.forget(lambda key: _model_of(key) == model))
    return made


def general_job(run: Run) -> Job[General]:
    """What all heads of this run's model do in general; its text does not matter, its edits do."""
    lm = runs.model(run)

    def work(progress: Progress) -> General:
        return general(lm, progress)

    return jobs().get(_key("general", run), work)


def _key(what: str, run: Run, *rest: object) -> tuple[object, ...]:
    return (what, run.model, run.edits, *rest)


def _model_of(key: object) -> object:
    return key[1] if isinstance(key, tuple) else None
