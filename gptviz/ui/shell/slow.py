"""What takes long: it waits for a click, shows how far it is, and can be stopped."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import LanguageModel, Run
from gptviz.engine.sample_means import reading, sample_means
from gptviz.jobs import Job
from gptviz.ui import jobs, runs
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.slots import give_back
from gptviz.ui.waiting import SOON, said_of
from gptviz.ui.words import escaped

T = TypeVar("T")

TICK = 0.25  # seconds between two looks; a job that is quicker has no bar
OVER = ("done", "failed")
AT_ONCE = 8  # jobs of one list that stand in the queue
UNASKED = 4 * 10**10  # tokens times parameters of the blocks: about two seconds


def is_asked_for(lm: LanguageModel, n_tokens: int, passes: int) -> bool:
    """True if this many passes over this many tokens take so long that they wait for a click."""
    blocks = sum(p.numel() for p in lm.model.trf_blocks.parameters())
    return n_tokens * passes * blocks > UNASKED


def is_wanted(param: Param[str | None], lm: LanguageModel, n_tokens: int, passes: int) -> bool:
    """True if this many passes are to be made: quick ones unasked, slow ones if `param` is "on".

    If it is "off", somebody has stopped them.
    """
    chosen = param.within(("on", "off"))
    return chosen == "on" or (chosen is None and not is_asked_for(lm, n_tokens, passes))


def worked(
    run: Run,
    function: Callable[..., T],
    *args: Any,
    says: Callable[[int, int], str],
    key: str | None = None,
    stop: Callable[[], Any] | None = None,
    **options: Any,
) -> T:
    """Have the server work out `function(lm, *args, **options, progress=...)` for a run's model.

    Gives its result. There is a bar while it waits or is worked on: `says` is what stands on it. A click
    interrupts the script where the bar moves; with `stop`, the callback of a button `key`, there is
    one for it: the page must then not ask again. Ends the script, with a sentence in the bar's
    place, where the job fails or cannot be begun.
    """
    (value,) = all_worked(run, function, [args], says, key, stop, **options)
    return value


def all_worked(
    run: Run,
    function: Callable[..., T],
    given: Sequence[tuple[Any, ...]],
    says: Callable[[int, int], str],
    key: str | None = None,
    stop: Callable[[], Any] | None = None,
    **options: Any,
) -> list[T]:
    """The results of `several`, for who needs all of them. Ends the script where one is not there."""
    every = several(run, function, given, says, key, stop, **options)
    for job in every:
        if job.refused:
            st.warning(f"This cannot be computed: {escaped(str(job.error))}.")
            end_page()
    return [job.value for job in every]


def several(
    run: Run,
    function: Callable[..., T],
    given: Sequence[tuple[Any, ...]],
    says: Callable[[int, int], str],
    key: str | None = None,
    stop: Callable[[], Any] | None = None,
    **options: Any,
) -> list[Job[T]]:
    """The same of many arguments, a job each, when all are over. The bar is that of all.

    Each is done, or `refused`: then its `value` raises ValueError. Where one failed in any other way the
    script ends with a sentence in the bar's place, and a button that tries again.
    """
    every: list[Job[T]] = []
    place = st.empty()
    drawn = None
    began = time.monotonic()
    while (active := [job for job in every if job.state not in OVER]) or len(every) < len(given):
        for args in given[len(every) : len(every) + AT_ONCE - len(active)]:
            job = jobs.ask(run, function, *args, **options)
            if job.state == "failed" and not job.refused:  # it may be done now
                job.start(jobs.visitor())
            every.append(job)
        for job in active:
            if not job.active:  # it was stopped: nobody looked for so long, on a busy server
                job.start(jobs.visitor())
            job.look(jobs.visitor(), SOON)
        give_back()
        if not active or (active[0].join(TICK) and time.monotonic() - began < TICK):
            continue
        drawn = drawn or _bar(place, key, stop)
        parts = [job.progress if job.active else (1, 1) for job in every]
        if len(given) == 1:
            done, of = parts[0]
        else:
            done = int(sum(job_done / max(1, job_of) for job_done, job_of in parts))
            of = len(given)
        first = next((job for job in active if job.state == "working"), active[0])
        # a click interrupts here
        drawn.progress(min(1.0, done / max(1, of)), said_of(first, says(done, of)))
    place.empty()
    failed = [job for job in every if job.state == "failed" and not job.refused]
    if failed:
        with place.container():
            not_done(failed[0])
        end_page()
    return every


def not_done(job: Job[Any], key: str = "work", again: Callable[[], Any] | None = None) -> None:
    """Draw why a job failed, and the button *Try again*: its click runs `again`, and the page once more."""
    st.warning(f"This could not be computed: {escaped(str(job.error))}.")
    st.button("Try again", key=f"{key}_again", icon=":material/refresh:", on_click=again)


def _bar(place: DeltaGenerator, key: str | None, stop: Callable[[], Any] | None) -> DeltaGenerator:
    with place.container(horizontal=True, vertical_alignment="center"):
        if stop is not None:
            st.button("Stop", key=key, type="primary", on_click=stop)
        return st.progress(0.0)


def read_sample(run: Run, key: str, stop: Callable[[], Any]) -> None:
    """A bar and a button `key` until a model's mean over the sample is known; nothing where it is.

    Ends the run with a sentence for a model that cannot read the sample.
    """
    lm = runs.model(run.model)
    try:
        read = reading(lm)
    except ValueError as error:
        st.warning(f"{escaped(lm.name)}: {escaped(str(error))}.")
        end_page()
    if read.means is None:
        said = "Averaging over a sample of text, once for this model: {} of {} windows".format
        read.means = worked(run.plain, sample_means, says=said, key=key, stop=stop)
