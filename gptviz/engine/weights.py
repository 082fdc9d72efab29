"""Fingerprints of a model's weights: a cheap way to notice that they were changed.

A trace or a cached result is only valid for the weights that it was computed with. It keeps their
fingerprint, which is compared with the model's before the result is used again. A fingerprint is made of how
often the tensors were written into (torch counts that in `_version`), how often one was replaced by another,
and some numbers of each tensor, spread over its rows and columns, with at least one of every head. So it
changes with an optimizer's step, a replaced weight and `weight.data.mul_(5)`, which torch does not count, and
it differs between two models of the same size. A model that is loaded again has the same fingerprint, unless
with another version of GELU.

It can miss numbers that are changed through `.data` only, if they are between those that it reads. For
results that are stored on disk, `gptviz.files.disk_cache.weights_hash` reads all numbers. One fingerprint of
the bundled model takes 0.04 ms (`benchmarks/weights.py`).
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

from gptviz.engine.kinds import Model

# The largest number of numbers that are read of a tensor. In the widest GPT-2 a head has 64 of 1,600 rows, so
# 32 numbers spread over the rows reach every head.
MOST = 32

# how often a tensor was replaced, how often one was written into, and a checksum of some of the numbers
Fingerprint = tuple[int, int, int]
T = TypeVar("T")


class HasModel(Protocol):
    """An object with a model as `model`: a LanguageModel."""

    @property
    def model(self) -> Model: ...


AModel = Model | HasModel  # functions that take a model take a LanguageModel, too


def model_of(given: AModel) -> Model:
    """The model of a LanguageModel, or a model as it is. Raises ValueError for anything else."""
    model = given if isinstance(given, Model) else getattr(given, "model", None)
    if not isinstance(model, Model):
        raise ValueError(
            f"a {type(given).__name__} is no GPTModel: give lm or lm.model; gptviz.wrap makes one"
        )
    return model


def fingerprint(model: nn.Module) -> Fingerprint:
    """The fingerprint of a model's weights and buffers as they are now; the module says what it can miss."""
    with _lock:
        known = _watched.get(model)
        if known is None or not known.is_current():
            known = _watched[model] = _Watched(model, 0 if known is None else known.moves + 1)
    return known.moves, known.writes(), known.numbers()


def same(model: nn.Module, then: Fingerprint | None, what: str, again: str) -> Fingerprint:
    """The model's fingerprint. Raises ValueError if it is not `then`, with `what` and `again` in the message.

    `what` says what was made with the weights of `then`, and `again` what the caller should do again.
    """
    current = fingerprint(model)
    if then not in (None, current):
        raise ValueError(
            f"{what} made by another model, or by this one before its weights were changed: {again} again"
        )
    return current


def stamp(tensor: torch.Tensor) -> tuple[int, int]:
    """A fingerprint of a single tensor: how often it was written into, and a checksum of some numbers."""
    if tensor.is_inference():
        writes = 0
    else:
        writes = tensor._version
    numbers = _some(tensor)
    return writes, crc32(
        numbers.cpu().numpy().tobytes() if isinstance(numbers, torch.Tensor) else numbers.tobytes()
    )


class PerWeights(Generic[T]):
    """A cache of one value per model, forgotten with the model or when its weights change."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[nn.Module, tuple[Fingerprint, T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, model: nn.Module, make: Callable[[], T]) -> T:
        """The value for this model with its weights as they are now; `make` computes it if need be."""
        current = fingerprint(model)
        with self._lock:
            known = self._known.get(model)
            if known is None or known[0] != current:
                known = self._known[model] = (current, make())
        return known[1]


class _Watched:
    """What a model's fingerprint is read from: its tensors, and views of some numbers of each, not copies.

    The views are made once, as that takes longer than reading them. If a tensor of the model is replaced,
    `is_current` is false, and `fingerprint` makes a new one.
    """

    def __init__(self, model: nn.Module, moves: int):
        self.moves = moves  # how often a tensor of the model was replaced
        places = (d for m in model.modules() for d in (m._modules, m._parameters, m._buffers))
        self._places: list[dict[str, Any]] = [d for d in places if d]
        # keeps these objects alive, so that no new object can get one of their ids
        self._here = self._all()
        self._ids = list(map(id, self._here))
        self._built = crc32(repr([_built(module) for module in model.modules()]).encode())
        # by id, so that a tensor in two places (tied weights) is there once
        tensors = {id(t): t for t in self._here if isinstance(t, torch.Tensor)}.values()
        # inference tensors have no `_version`
        self._tensors = [t for t in tensors if not t.is_inference()]
        self._addressed = list(tensors)
        self._addresses = [t.data_ptr() for t in tensors]
        views = [_some(t) for t in tensors]
        self._here_views = [view for view in views if isinstance(view, np.ndarray)]
        self._away = [view for view in views if isinstance(view, torch.Tensor)]  # on a GPU

    def _all(self) -> list[Any]:
        """All submodules, parameters and buffers, in a fixed order."""
        return list(chain.from_iterable(map(dict.values, self._places)))

    def is_current(self) -> bool:
        """Whether the model still has the same tensors, in the same memory."""
        addresses = [tensor.data_ptr() for tensor in self._addressed]
        return addresses == self._addresses and list(map(id, self._all())) == self._ids

    def writes(self) -> int:
        """How often one of the tensors was written into, as torch counts it."""
        return sum([t._version for t in self._tensors])

    def numbers(self) -> int:
        """A checksum of some numbers of each tensor and of the modules' settings."""
        if self._away:
            on_gpu = [torch.cat(self._away).cpu().numpy()]
        else:
            on_gpu = []
        return crc32(np.concatenate([*self._here_views, *on_gpu]).data, self._built)


_watched: WeakKeyDictionary[nn.Module, _Watched] = WeakKeyDictionary()
_lock = threading.Lock()
# bytes of a number -> the integer type of that size: bits are compared, so that NaN equals NaN
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _built(module: nn.Module) -> tuple[object, ...]:
    """A module's type and the settings that change its numbers: the kind of GELU, heads, a norm's epsilon, turns."""
    names = ("approximate", "num_heads", "eps", "num_kv_groups", "rope_base", "rope_freq")
    return type(module).__name__, *(getattr(module, name, None) for name in names)


def _some(tensor: torch.Tensor) -> Any:
    """A view of at most `MOST` numbers of a tensor, spread over its rows and columns, as integers.

    It is a NumPy array for a tensor on the CPU, else a tensor.
    """
    tensor = tensor.detach()
    tensor = tensor.flatten(0, -2) if tensor.dim() > 1 else tensor.reshape(1, -1)  # (R, C)
    if tensor.element_size() in _WHOLE:
        tensor = tensor.view(_WHOLE[tensor.element_size()])
    # step sizes: n / MOST, rounded up
    rows, columns = (max(1, -(-n // MOST)) for n in tensor.shape)
    if len(tensor) == 1:
        tensor = tensor[0, ::columns]
    else:
        tensor = tensor[::rows, ::columns].diagonal()
    if tensor.is_cpu:
        return tensor.numpy()
    return tensor
