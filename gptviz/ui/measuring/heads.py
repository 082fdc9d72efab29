"""What is worked out of a model's heads in the background: once for all sessions, and kept on disk.

Of the bundled model it ships with it, and is there at once.
"""

import atexit
from collections.abc import Iterable, Mapping
from functools import partial
from weakref import WeakKeyDictionary

import streamlit as st

from gptviz import Run
from gptviz.analysis.head_general import General, general, known_general
from gptviz.analysis.head_trial import Claim, Trial, known_trials, trial
from gptviz.engine.progress import Progress
from gptviz.model import GPTModel
from gptviz.ui import runs
from gptviz.ui.measuring.jobs import WAITING, Job, Jobs
from gptviz.ui.models.cache import model_cache
from gptviz.ui.models.choice import DEFAULT_MODEL
from gptviz.ui.settings import cache_bytes, count

SETTING, DEFAULT_MEGABYTES = "GPTVIZ_MEASURED_CACHE_MB", 64
MOST_WAITING = 32  # each is seconds of work with the bundled model, and minutes with a large one


@st.cache_resource(max_entries=1, show_spinner=False)
def jobs() -> Jobs:
    """The process's jobs; MB of results in the environment variable GPTVIZ_MEASURED_CACHE_MB."""
    made = Jobs(cache_bytes(SETTING, DEFAULT_MEGABYTES), most_waiting=count(WAITING, MOST_WAITING))
    atexit.register(made.close)
    model_cache().when_dropped(
        lambda model: made.forget(lambda key: isinstance(key, tuple) and key[1] == model)
    )
    return made


def general_job(run: Run) -> Job[General]:
    """What all heads of this run's model do in general; its text does not matter, its edits do."""
    lm = runs.model(run)
    return jobs().get(_key("general", run), partial(general, lm), _at_once(run)[0])


def trial_job(run: Run, block: int, head: int, label: str) -> Job[Trial]:
    """Whether a label of a head holds. What all heads do in general is worked out first, if not known."""
    lm, known = runs.model(run), jobs().find(_key("general", run))

    def work(progress: Progress) -> Trial:
        heads = known.result if known is not None and known.result is not None else general(lm, progress)
        return trial(lm, block, head, label, progress, heads)

    key = _key("trial", run, block, head, label)
    return jobs().get(key, work, _at_once(run)[1].get((block, head, label)))


def known_trials_of(run: Run, claims: Iterable[Claim]) -> dict[tuple[int, int], Trial]:
    """The trials of these labels that were held and are remembered, or ship: by block and head."""
    ships, remembered = _at_once(run)[1], jobs()
    found = {}
    for claim in claims:
        job = remembered.find(_key("trial", run, *claim))
        held = ships.get(claim) if job is None else job.result
        if held is not None:
            found[claim[:2]] = held
    return found


Known = tuple[General | None, Mapping[Claim, Trial]]
_known: WeakKeyDictionary[GPTModel, Known] = WeakKeyDictionary()


def _at_once(run: Run) -> Known:
    """What is known of the bundled model as it is: looked up once, by its weights' hash."""
    lm = runs.model(run)
    if lm.name != DEFAULT_MODEL or lm.edits:
        return None, {}
    if lm.model not in _known:
        _known[lm.model] = known_general(lm), known_trials(lm)
    return _known[lm.model]


def _key(what: str, run: Run, *rest: object) -> tuple[object, ...]:
    return (what, run.model, run.edits, *rest)
