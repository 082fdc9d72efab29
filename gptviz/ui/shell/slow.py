"""What takes long: it waits for a click, shows how far it is, and can be stopped."""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.engine.progress import Progress
from gptviz.engine.sample_means import reading, sample_means
from gptviz.ui import runs
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.params import Param
from gptviz.ui.words import duration

T = TypeVar("T")

LONG = 3.0  # seconds after which a bar says how many are left
UNASKED = 4 * 10**10  # tokens times parameters of the blocks: about two seconds


def is_asked_for(lm: LanguageModel, n_tokens: int, passes: int) -> bool:
    """Whether so many passes take so long that they wait for a click."""
    blocks = sum(p.numel() for p in lm.model.trf_blocks.parameters())
    return n_tokens * passes * blocks > UNASKED


def is_wanted(param: Param[str | None], lm: LanguageModel, n_tokens: int, passes: int) -> bool:
    """Whether so many passes are to be made: by themselves where they are quick, else where `param` is "on".

    Where it is "off" somebody has stopped them.
    """
    chosen = param.within(("on", "off"))
    return chosen == "on" or (chosen is None and not is_asked_for(lm, n_tokens, passes))


def watched(
    name: Hashable,
    run: Run,
    work: Callable[[Progress], T],
    says: Callable[[int, int], str],
    key: str | None = None,
    stop: Callable[[], Any] | None = None,
) -> T:
    """What `work` gives for a run, under this name from memory where it is known; else with a bar meanwhile.

    For `says`, `key` and `stop` see `bar`.
    """

    def shown() -> T:
        with bar(says, key, stop) as progress:
            return work(progress)

    return runs.runs().derived(name, run, shown)


@contextmanager
def bar(
    says: Callable[[int, int], str], key: str | None = None, stop: Callable[[], Any] | None = None
) -> Iterator[Progress]:
    """A bar while something goes on: `says` is what stands on it, after a while with the time that is left.

    A click interrupts the script where the bar moves; with `stop`, the callback of a button `key`, there is
    one for it: the page must then not ask again.
    """
    place, began = st.empty(), time.monotonic()
    with place.container(horizontal=True, vertical_alignment="center"):
        if stop is not None:
            st.button("Stop", key=key, type="primary", on_click=stop)
        drawn = st.progress(0.0)

    def progress(done: int, of: int) -> None:
        passed = time.monotonic() - began
        left = f", {duration(passed * (of - done) / done)} left" if passed > LONG and 0 < done < of else ""
        drawn.progress(done / of, says(done, of) + left)  # a click interrupts the script here

    yield progress
    place.empty()


def read_sample(lm: LanguageModel, key: str, stop: Callable[[], Any]) -> None:
    """A bar and a button `key` until a model's mean over the sample is known; nothing where it is.

    Ends the run with a sentence for a model that cannot read the sample.
    """
    try:
        known = reading(lm).means is not None
    except ValueError as error:
        st.warning(f"{lm.name}: {error}.")
        end_page()
    if not known:
        said = "The mean over the sample of text, once for this model: {} of {} windows read".format
        with bar(said, key, stop) as progress:
            sample_means(lm, progress)
