"""What all sessions of the process share: the loaded models, and the last traces, both bounded by bytes."""

import threading
from collections import OrderedDict
from collections.abc import Iterable

import streamlit as st

from gptviz import LanguageModel, Trace
from gptviz.ui.models.cache import model_cache
from gptviz.ui.settings import cache_bytes

Keep = tuple[str | tuple[str, int], ...]
Key = tuple[str, tuple[int, ...], frozenset[str | tuple[str, int]] | None]

DEFAULT_MEGABYTES = 1024  # 1,024 tokens of GPT-2 with all of their attention, and some short texts
SETTING = "GPTVIZ_TRACE_CACHE_MB"


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
        self._traces: OrderedDict[Key, Trace] = OrderedDict()
        self._lock = threading.Lock()
        self._forward = threading.Lock()  # passes run one at a time anyway: see gptviz.forward.FORWARD_LOCK

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, model: str, lm: LanguageModel, ids: Iterable[int], keep: Keep | None) -> Trace:
        """`lm.trace(ids, keep)`, or the same from before; `model` is the key of `lm` in the ModelCache."""
        ids = tuple(ids)
        key = (model, ids, None if keep is None else frozenset(keep))
        found = self._look_up(key)
        if found is not None:
            return found
        with self._forward:
            found = self._look_up(key)  # somebody else may have computed it while this thread waited
            if found is None:
                found = lm.trace(ids, keep=keep)
                self._store(key, found)
        return found

    def forget(self, model: str) -> None:
        """Drop a model's traces, which hold on to its output head."""
        with self._lock:
            for key in [key for key in self._traces if key[0] == model]:
                self.nbytes -= self._traces.pop(key).nbytes

    def _look_up(self, key: Key) -> Trace | None:
        with self._lock:
            if key in self._traces:
                self._traces.move_to_end(key)
            return self._traces.get(key)

    def _store(self, key: Key, trace: Trace) -> None:
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
    cache = TraceCache(cache_bytes(SETTING, DEFAULT_MEGABYTES))
    model_cache().when_dropped(cache.forget)
    return cache
