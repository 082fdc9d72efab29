"""What all sessions of the process share: the loaded models, and the last traces, bounded by bytes."""

import gc
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable

import streamlit as st

import gptviz
from gptviz import LanguageModel, Trace

Keep = tuple[str | tuple[str, int], ...]

DEFAULT_MEGABYTES = 512
SETTING = "GPTVIZ_TRACE_CACHE_MB"


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def load_model(name: str) -> LanguageModel:
    """`gptviz.load`, once per process and name."""
    lm = gptviz.load(name)
    # What a model brings along lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    return lm


class TraceCache:
    """Traces by key, the least recently used out first; never more than `max_bytes` of them.

    A trace that is larger than all of it is given back and not stored. Threads that ask for the same
    key at once compute it once.
    """

    def __init__(self, max_bytes: int):
        if max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}; it must be 0 (nothing is stored) or more")
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._traces: OrderedDict[Hashable, Trace] = OrderedDict()
        self._lock = threading.Lock()
        self._forward = threading.Lock()  # passes run one at a time anyway: see gptviz.capture.FORWARD_LOCK

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, lm: LanguageModel, ids: Iterable[int], keep: Keep | None) -> Trace:
        """`lm.trace(ids, keep)`, or the same from before."""
        ids = tuple(ids)
        key = (lm.name, ids, None if keep is None else frozenset(keep))
        found = self._look_up(key)
        if found is not None:
            return found
        with self._forward:
            found = self._look_up(key)  # somebody else may have computed it while this thread waited
            if found is None:
                found = lm.trace(ids, keep=keep)
                self._store(key, found)
        return found

    def _look_up(self, key: Hashable) -> Trace | None:
        with self._lock:
            if key in self._traces:
                self._traces.move_to_end(key)
            return self._traces.get(key)

    def _store(self, key: Hashable, trace: Trace) -> None:
        size = trace.nbytes
        if size > self.max_bytes:
            return
        with self._lock:
            self._traces[key] = trace
            self.nbytes += size
            while self.nbytes > self.max_bytes:
                _, oldest = self._traces.popitem(last=False)
                self.nbytes -= oldest.nbytes


@st.cache_resource(max_entries=1, show_spinner=False)
def trace_cache() -> TraceCache:
    """The process's one cache of traces; its size in MB is the environment variable GPTVIZ_TRACE_CACHE_MB."""
    return TraceCache(cache_bytes(os.environ.get(SETTING)))


def cache_bytes(setting: str | None) -> int:
    """The setting in bytes. Raises ValueError, naming it, if it is no whole number of megabytes."""
    if setting is None:
        return DEFAULT_MEGABYTES * 2**20
    if not (setting.isascii() and setting.isdigit()):
        raise ValueError(f"{SETTING} is {setting!r}; it must be a whole number of megabytes, such as 512")
    return int(setting) * 2**20
