"""The loaded models that all sessions share, bounded by bytes."""

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

import streamlit as st
from cachetools import LRUCache

from gptviz import LanguageModel
from gptviz.digits import gigabytes
from gptviz.models.loading import Plan
from gptviz.ui.memory import megabytes
from gptviz.ui.settings import cache_bytes

SETTING = "GPTVIZ_MODEL_CACHE_MB"
HALF = 2  # of the memory
MOST_MEGABYTES = 8192  # GPT-2 XL in float32, with a small one beside it


class ModelCache:
    """Models by key, the least recently used out first; never more than `max_bytes` of them.

    One loads at a time, and what it needs is made free before: two at once would need the memory of
    both. Sessions that ask for the same model load it once. A script that still works with a model that had
    to make room keeps it until done; `find` and `get` return it as long.
    """

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes
        self._models: LRUCache[str, LanguageModel] = LRUCache(
            max_bytes, getsizeof=lambda lm: lm.nbytes
        )
        self._alive: WeakValueDictionary[str, LanguageModel] = WeakValueDictionary()
        self._keep: Callable[[str, LanguageModel], LanguageModel] = lambda _, lm: lm
        self._listeners: list[Callable[[str], None]] = []
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, key: str) -> bool:
        return key in self._models

    @property
    def nbytes(self) -> int:
        return int(self._models.currsize)

    def when_dropped(self, listener: Callable[[str], None]) -> None:
        """`listener(key)` is called for every model that goes."""
        self._listeners.append(listener)

    def when_loaded(self, keep: Callable[[str, LanguageModel], LanguageModel]) -> None:
        """`keep(key, lm)` returns the model to keep in place of one that was loaded."""
        self._keep = keep

    def get(self, key: str, plan: Callable[[], Plan]) -> LanguageModel:
        """The cached model, or the plan's. Raises ValueError for one that is larger than the whole cache."""
        if lm := self._look_up(key):
            return lm
        with self._loading:
            # somebody else may have loaded it while this thread waited
            if lm := self._look_up(key):
                return lm
            lm = self._alive.get(key)
            if lm is None:
                planned = plan()
                self._make_room(planned.nbytes, planned)
                lm = self._keep(key, planned.load())
            self._make_room(lm.nbytes)
            with self._lock:
                self._alive[key] = lm
                if lm.nbytes <= self.max_bytes:
                    self._models[key] = lm
        return lm

    def find(self, key: str) -> LanguageModel | None:
        """A model that was loaded and that this cache or a running script still has."""
        return self._look_up(key) or self._alive.get(key)

    def drop_all(self, prefix: str) -> None:
        """Forget for good every model whose key begins so."""
        with self._lock:
            gone = [key for key in self._models if key.startswith(prefix)]
            for key in [key for key in (*gone, *self._alive) if key.startswith(prefix)]:
                self._models.pop(key, None)
                self._alive.pop(key, None)
        for key in gone:
            self._tell(key)

    def _tell(self, key: str) -> None:
        for listener in self._listeners:
            listener(key)

    def _look_up(self, key: str) -> LanguageModel | None:
        with self._lock:
            return self._models.get(key)

    def _make_room(self, size: int, plan: Plan | None = None) -> None:
        if plan is not None and size > self.max_bytes:
            raise ValueError(
                f"{plan.name} needs {gigabytes(size)} of memory; this server has at most "
                f"{gigabytes(self.max_bytes)} for models. Start it with a larger {SETTING}"
                + (", or choose bfloat16, which needs half" if plan.dtype.itemsize == 4 else "")
            )
        while len(self) and self.nbytes + size > self.max_bytes:
            with self._lock:
                oldest, _ = self._models.popitem()
            self._tell(oldest)


@st.cache_resource(max_entries=1, show_spinner=False)
def model_cache() -> ModelCache:
    """The process's one cache of models; its size in MB is the environment variable GPTVIZ_MODEL_CACHE_MB.

    If that is not set, half of the machine's memory and at most MOST_MEGABYTES.
    """
    return ModelCache(cache_bytes(SETTING, megabytes(HALF, MOST_MEGABYTES)))


def find(key: str) -> LanguageModel | None:
    """The process's model with this key (`InUse.key`), None if it is no longer in memory."""
    return model_cache().find(key)
