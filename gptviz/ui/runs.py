"""What sessions share of the model's passes: traces, and all that is derived from them, by their Run.

A `Run` says which pass is meant: model, ids, edits. `get(run, keep)` gives its Trace, which works
out what it does not hold; where a text begins as another one did, its trace goes on from there. A function
under `@per_run` is worked out once for a run and its other arguments. Both live in one cache, bounded by
bytes; nothing in `ui/` is kept by any other key.
"""

import functools
import inspect
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, cast

import cachetools
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from gptviz import LanguageModel, Run, Trace
from gptviz.engine import forward
from gptviz.engine.past import past_bytes
from gptviz.engine.reduction import Reduction
from gptviz.engine.run import common_prefix
from gptviz.engine.sites import Key, Wanted, held_keys, named, sites_of
from gptviz.engine.sizes import nbytes_of
from gptviz.ui.memory import megabytes
from gptviz.ui.models import cache as models
from gptviz.ui.models.budget import session
from gptviz.ui.settings import cache_bytes

# of the machine's memory, where the setting says nothing
EIGHTH = 8
MOST_MEGABYTES = 1024
SETTING = "GPTVIZ_TRACE_CACHE_MB"

# About as long as a rerun takes: thirty at once are done one after the other instead of all at the end.
SWITCH_SECONDS = 0.03
# Multiply-adds of a pass that is made whole, 56 tokens of the bundled model: no number of a short text
# depends on which texts were read before, not even by its rounding.
SHORT_PASS = 2**28
WAIT_SECONDS = 60.0  # for others' long texts, before a visitor is told to try again

Keep = Iterable[Wanted] | None
P = ParamSpec("P")
R = TypeVar("R")


class Busy(RuntimeError):
    """Others' long texts fill the memory; the message is a sentence for the visitor."""


class Runs:
    """Traces and derived values by run, the least recently used out first: at most `max_bytes` of them.

    A value larger than `max_bytes` is returned and not stored. Threads that ask for the same thing at once
    compute it once. Traces that scripts still work with count as well: `get` waits when others' traces
    leave no room, and raises Busy when they still do after `wait_seconds`.
    """

    def __init__(
        self,
        max_bytes: int,
        model: Callable[[str], LanguageModel],
        wait_seconds: float = WAIT_SECONDS,
    ):
        self.max_bytes = max_bytes
        self.wait_seconds = wait_seconds
        self._model = model
        self._cache: cachetools.LRUCache[Hashable, tuple[Any, int]] = cachetools.LRUCache(
            max_bytes, getsizeof=lambda entry: entry[1]
        )
        self._alive: weakref.WeakValueDictionary[Run, Trace] = weakref.WeakValueDictionary()
        # id of a living trace: its bytes, who made it
        self._owners: dict[int, tuple[int, str | None]] = {}
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        # weak, so that a lock is forgotten when nobody waits at it
        self._locks: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def nbytes(self) -> int:
        return int(self._cache.currsize)

    # ---- traces ----

    def get(self, run: Run, keep: Keep, reduce: Iterable[Reduction] = ()) -> Trace:
        """The trace of this run, which gives all sites; if there is none yet, a pass makes it.

        The pass keeps the sites of `keep` and makes these reductions; later the trace works out any other
        site. Raises ValueError as `LanguageModel.trace` does, and Busy.
        """
        with self._one_at_a_time(("trace", run)):
            return self._known(run) or self._pass(run, tuple(keep or ()), tuple(reduce))

    def _known(self, run: Run) -> Trace | None:
        """The trace of a run that is stored, or in use by a script; None if there is none."""
        with self._lock:
            stored = self._cache.get(("trace", run))
            if stored is None:
                return self._alive.get(run)
            return cast(Trace, stored[0])

    def _pass(self, run: Run, wanted: tuple[Wanted, ...], reduce: tuple[Reduction, ...]) -> Trace:
        """Make the trace in one pass over the tokens that no other text's trace covers."""
        lm = self._model(run.model)
        keep = named(lm, wanted)
        keys = held_keys(lm.config, len(run), keep)
        is_short = forward.multiply_adds(lm.model, len(run)) <= SHORT_PASS
        if is_short:
            earlier = None
            common = 0
        else:
            earlier, common = self._earlier(run)
        new_bytes = pass_bytes(lm, len(run), keys) - pass_bytes(lm, common, keys)
        self._wait_for_room(new_bytes + (past_bytes(lm.config, len(run)) if earlier else 0))
        trace = lm.trace(run.ids, edits=run.edits, reduce=reduce, after=earlier, at_once=keep)
        trace = trace.released().uncopied()  # pages write into nothing
        self._register(run, trace)
        if common < len(run):  # else it is cut from a longer one, and can be again
            self._store(("trace", run), trace, trace.nbytes)
            if earlier is not None and common == len(earlier):
                with self._lock:  # what a longer text has in it need not be counted twice
                    self._cache.pop(("trace", replace(run, ids=run.ids[:common])), None)
        return trace

    def _earlier(self, run: Run) -> tuple[Trace | None, int]:
        """The trace that has the longest beginning in common with this run, and how many tokens that is.

        Only traces with the same edits count.
        """
        if not all(edit.is_causal for edit in run.edits):
            return None, 0
        with self._lock:
            same_model = [
                (known_run, known_trace)
                for known_run, known_trace in self._alive.items()
                if (known_run.model, known_run.edits) == (run.model, run.edits)
            ]
            candidates = [
                (known_run, known_trace)
                for known_run, known_trace in same_model
                if known_run != run and known_run.ids[0] == run.ids[0]
            ]
            if not candidates:
                return None, 0
            other, trace = max(
                candidates, key=lambda pair: (common_prefix(run.ids, pair[0].ids), -len(pair[0]))
            )
            self._known(other)  # which keeps it from being forgotten
        return trace, common_prefix(run.ids, other.ids)

    def _register(self, run: Run, trace: Trace) -> None:
        name = id(trace)
        with self._lock:
            self._alive[run] = trace
            self._owners[name] = (trace.nbytes, session())
        weakref.finalize(trace, self._gone, name)

    def _gone(self, name: int) -> None:
        with self._room:
            self._owners.pop(name, None)
            self._room.notify_all()

    def _wait_for_room(self, needed: int) -> None:
        """Make room for a pass: by dropping what is stored, then by waiting for what others work with.

        This is no queue: what is waited for is memory, which is free when others' scripts end, in a second or
        so. Whoever needs little goes on before whoever needs much.
        """
        me = session()

        def bytes_of_others() -> int:
            return sum(size for size, owner in self._owners.values() if owner != me or me is None)

        def room() -> bool:
            while self._cache and bytes_of_others() + needed > self.max_bytes:
                self._cache.popitem()
            return bytes_of_others() == 0 or bytes_of_others() + needed <= self.max_bytes

        with self._room:
            if room():
                return
        end = time.monotonic() + self.wait_seconds
        place = st.empty()
        with st.spinner("Long texts of other visitors are being read. Yours is next …"):
            while True:
                with self._room:
                    if self._room.wait_for(room, min(1.0, max(0.0, end - time.monotonic()))):
                        return
                if time.monotonic() >= end:
                    raise Busy(
                        "the server is busy with long texts of other visitors. Your text is kept: press Run again in a "
                        "minute, or shorten it"
                    )
                place.empty()  # where Streamlit ends this run if its visitor has asked for another

    # ---- whatever is derived from a run ----

    def derived(self, name: Hashable, run: Run, compute: Callable[[], R]) -> R:
        """`compute()`, or its kept result; `name` says what it is."""
        key = ("derived", run, name)
        with self._one_at_a_time(key):
            with self._lock:
                stored = self._cache.get(key)
            if stored is not None:
                return cast(R, stored[0])
            value = compute()
            self._store(key, value, nbytes_of(value))
            return value

    # ---- both ----

    def forget(self, model: str) -> None:
        """Drop all of a model's runs: only the model could work out what its traces do not hold."""
        with self._lock:
            for run in [run for run in self._alive if run.model == model]:
                self._alive.pop(run, None)
            for key in [key for key in self._cache if cast(Any, key)[1].model == model]:
                self._cache.pop(key)

    def _store(self, key: Hashable, value: Any, size: int) -> None:
        with self._lock:
            self._cache.pop(key, None)  # a trace that has grown
            if size <= self.max_bytes:
                self._cache[key] = (value, size)

    def _one_at_a_time(self, key: Hashable) -> Any:
        """A lock for this key; it is dropped when no thread holds it."""
        with self._lock:
            return self._locks.setdefault(key, threading.RLock())


PER_RUN: list[Callable[..., Any]] = []  # every function under `per_run`: a test walks them


def per_run(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate `function(run, *args)`: computed once for a run and these arguments, and kept with the traces.

    Arguments must be hashable. Sessions share what is returned: do not write into it.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return known(once, lambda: function(*args, **kwargs), *bound.arguments.values())

    PER_RUN.append(once)
    return once


def known(function: Callable[..., R], value: Callable[[], R], run: Run, *args: Any) -> R:
    """The kept result of a function under `per_run` for a run and all arguments, in their order.

    Without one, call `value` and keep what it gives.
    """
    return runs().derived((f"{function.__module__}.{function.__qualname__}", args), run, value)


def get(run: Run, keep: Keep, reduce: Iterable[Reduction] = ()) -> Trace:
    """`Runs.get` of this process."""
    return runs().get(run, keep, reduce)


def use(key: str, lm: LanguageModel) -> None:
    """Hold on to a model of this script until its thread ends: the cache may drop it sooner."""
    _in_use.__dict__[key] = lm


def model(run: Run | str) -> LanguageModel:
    """The model of a run, with its edits, or of a model's key, without any.

    Raises ValueError if it is no longer in memory.
    """
    if isinstance(run, str):
        key = run
    else:
        key = run.model
    lm = _in_use.__dict__.get(key) or models.find(key)
    if lm is None:
        context = get_script_run_ctx(suppress_warning=True)
        if context is not None and context.fragment_ids_this_run:
            st.rerun()  # a page loads its model, which a part of it alone cannot
        raise ValueError("this model is no longer in memory: reload the page")
    if isinstance(run, str):
        return lm
    return lm.edited(*run.edits)


_in_use = threading.local()


@st.cache_resource(max_entries=1, show_spinner=False)
def runs() -> Runs:
    """The process's one cache, of `trace_bytes`."""
    forward.threads_for_passes_only()
    sys.setswitchinterval(SWITCH_SECONDS)
    cache = Runs(trace_bytes(), model)
    models.model_cache().when_dropped(cache.forget)
    return cache


def trace_bytes() -> int:
    """The bytes of the cache: GPTVIZ_TRACE_CACHE_MB, else an eighth of the memory and at most 1 GB."""
    return cache_bytes(SETTING, megabytes(EIGHTH, MOST_MEGABYTES))


def pass_bytes(lm: LanguageModel, n_tokens: int, keys: Iterable[Key]) -> int:
    """About how much a pass holds: the kept sites, and on the way one block's attention and its mask."""
    sites = sites_of(lm.config)
    site_bytes = sum(4 * sites[site].floats(n_tokens, lm.config) for site, _ in keys)
    return site_bytes + 2 * 4 * sites["attn"].floats(n_tokens, lm.config) + n_tokens**2
