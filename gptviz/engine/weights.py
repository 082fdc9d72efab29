"""Which weights some numbers belong to: one fingerprint for traces, pasts and all that is kept of a model.

A fingerprint is made of how often each tensor was written into (torch counts that), how often one was put in
the place of another, and some numbers of each, spread over its rows and columns: at least one of every head.
So it sees an optimizer's step, a weight that is replaced, `weight.data.mul_(5)`, of which torch counts
nothing, and another model of the same sizes. A model that is loaded again has the same one, unless it is
loaded with another GELU.

What it can miss: numbers that are changed through `.data` only, between those that are looked at; and the
same in a copy of a model. Numbers that are given on disk are told apart by all of them
(`gptviz.files.disk_cache.weights_hash`). A look takes 0.04 ms for the bundled model (`benchmarks/weights.py`).
"""

import threading
from collections.abc import Callable
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
import torch
from torch import nn

from gptviz.model import GPTModel

MOST = 32  # numbers of a tensor: the heads of the widest GPT-2 have 64 rows of 1,600

Fingerprint = tuple[int, int, int]  # tensors put in the place of others, writes into them, what they hold
T = TypeVar("T")


class HasModel(Protocol):
    """What has a model as `model`: a LanguageModel."""

    @property
    def model(self) -> GPTModel: ...


AModel = GPTModel | HasModel  # a model, or a LanguageModel: what takes the one takes the other


def model_of(given: AModel) -> GPTModel:
    """The model of a LanguageModel, or the model that it is already. ValueError for anything else."""
    model = given if isinstance(given, GPTModel) else getattr(given, "model", None)
    if not isinstance(model, GPTModel):
        raise ValueError(
            f"a {type(given).__name__} is no GPTModel: give lm or lm.model; gptviz.wrap makes one"
        )
    return model


def fingerprint(model: nn.Module) -> Fingerprint:
    """A model's weights and buffers as they are: another value after a change, see above what it can miss."""
    with _lock:
        known = _watched.get(model)
        if known is None or not known.is_current():
            known = _watched[model] = _Watched(model, 0 if known is None else known.moves + 1)
    return known.moves, known.writes(), known.numbers()


def same(model: nn.Module, then: Fingerprint | None, what: str, again: str) -> Fingerprint:
    """The model's fingerprint. Raises ValueError if it is not what it was `then`, when `what` was made."""
    now = fingerprint(model)
    if then not in (None, now):
        raise ValueError(
            f"{what} made by another model, or by this one before its weights were changed: {again} again"
        )
    return now


def stamp(tensor: torch.Tensor) -> tuple[int, int]:
    """The same of a single tensor: how often it was written into, and some of its numbers."""
    if tensor.is_inference():
        writes = 0
    else:
        writes = tensor._version
    some = _some(tensor)
    return writes, crc32(some.cpu().numpy().tobytes() if isinstance(some, torch.Tensor) else some.tobytes())


class PerWeights(Generic[T]):
    """What is made once for a model with its weights as they are; forgotten with either of the two."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[nn.Module, tuple[Fingerprint, T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, model: nn.Module, make: Callable[[], T]) -> T:
        now = fingerprint(model)
        with self._lock:
            known = self._known.get(model)
            if known is None or known[0] != now:
                known = self._known[model] = (now, make())
        return known[1]


class _Watched:
    """A model's tensors where they stand, and views of the numbers that are looked at: nothing is copied."""

    def __init__(self, model: nn.Module, moves: int):
        self.moves = moves
        places = (d for m in model.modules() for d in (m._modules, m._parameters, m._buffers))
        self._places: list[dict[str, Any]] = [d for d in places if d]
        self._here = self._all()  # which keeps them, so that no other object gets one of their ids
        self._ids = list(map(id, self._here))
        self._built = crc32(repr([_built(module) for module in model.modules()]).encode())
        tensors = {id(t): t for t in self._here if isinstance(t, torch.Tensor)}.values()  # tied ones once
        self._tensors = [t for t in tensors if not t.is_inference()]  # torch counts no writes into the others
        self._addressed = list(tensors)
        self._addresses = [t.data_ptr() for t in tensors]
        views = [_some(t) for t in tensors]
        self._here_views = [view for view in views if isinstance(view, np.ndarray)]
        self._away = [view for view in views if isinstance(view, torch.Tensor)]  # on a GPU

    def _all(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self._places)))

    def is_current(self) -> bool:
        """Whether the same tensors stand there, in the same memory."""
        here = [tensor.data_ptr() for tensor in self._addressed]
        return here == self._addresses and list(map(id, self._all())) == self._ids

    def writes(self) -> int:
        return sum([t._version for t in self._tensors])

    def numbers(self) -> int:
        if self._away:
            away = [torch.cat(self._away).cpu().numpy()]
        else:
            away = []
        return crc32(np.concatenate([*self._here_views, *away]).data, self._built)


_watched: WeakKeyDictionary[nn.Module, _Watched] = WeakKeyDictionary()
_lock = threading.Lock()
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # compared by bits, NaN, too


def _built(module: nn.Module) -> tuple[object, ...]:
    """What a module computes with, beside its tensors: which GELU, how many heads, the norms' epsilon."""
    names = ("approximate", "num_heads", "eps")
    return type(module).__name__, *(getattr(module, name, None) for name in names)


def _some(tensor: torch.Tensor) -> Any:
    """A view of at most `MOST` numbers from end to end, as whole numbers; NumPy's where it is on the CPU."""
    tensor = tensor.detach()
    tensor = tensor.flatten(0, -2) if tensor.dim() > 1 else tensor.reshape(1, -1)  # (R, C)
    if tensor.element_size() in _WHOLE:
        tensor = tensor.view(_WHOLE[tensor.element_size()])
    rows, columns = (max(1, -(-n // MOST)) for n in tensor.shape)
    if len(tensor) == 1:
        tensor = tensor[0, ::columns]
    else:
        tensor = tensor[::rows, ::columns].diagonal()
    if tensor.is_cpu:
        return tensor.numpy()
    return tensor
