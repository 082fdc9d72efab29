"""The loaded models that all sessions share, bounded by bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from gptviz import LanguageModel
from gptviz.catalog import gigabytes
from gptviz.loading import Plan

SETTING = "GPTVIZ_MODEL_CACHE_MB"
DEFAULT_MEGABYTES = 8192  # GPT-2 XL in float32, and a small one beside it


class ModelCache:
    """Models by key, the least recently used out first; never more than `max_bytes` of them.

    One loads at a time, and what it needs is made free before: two at once would need the memory of
    both. Sessions that ask for the same model load it once. `dropped(key)` is called for every model
    that goes; who still works with it keeps it until done.
    """

    def __init__(self, max_bytes: int, dropped: Callable[[str], None]):
        self.max_bytes = max_bytes
        self._dropped = dropped
        self._models: OrderedDict[str, LanguageModel] = OrderedDict()
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, key: str) -> bool:
        return key in self._models

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(lm.nbytes for lm in self._models.values())

    def get(self, key: str, plan: Callable[[], Plan]) -> LanguageModel:
        """The model from before, or the plan's. Raises ValueError for one that is larger than all of it."""
        found = self._look_up(key)
        if found is not None:
            return found
        with self._loading:
            found = self._look_up(key)  # somebody else may have loaded it while this thread waited
            if found is None:
                planned = plan()
                self._make_room(planned)
                found = planned.load()
                with self._lock:
                    self._models[key] = found
        return found

    def drop(self, key: str) -> None:
        """Forget a model, if it is here."""
        with self._lock:
            gone = self._models.pop(key, None)
        if gone is not None:
            self._dropped(key)

    def drop_all(self, prefix: str) -> None:
        """Forget every model whose key begins so."""
        for key in [key for key in list(self._models) if key.startswith(prefix)]:
            self.drop(key)

    def _look_up(self, key: str) -> LanguageModel | None:
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
            return self._models.get(key)

    def _make_room(self, plan: Plan) -> None:
        if plan.nbytes > self.max_bytes:
            raise ValueError(
                f"{plan.name} needs {gigabytes(plan.nbytes)} of memory; this server holds at most "
                f"{gigabytes(self.max_bytes)} of models. Start it with a larger {SETTING}"
                + (", or choose bfloat16, which needs half" if plan.dtype.itemsize == 4 else "")
            )
        while self._models and self.nbytes + plan.nbytes > self.max_bytes:
            with self._lock:
                oldest = next(iter(self._models))
            self.drop(oldest)
