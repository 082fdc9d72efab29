"""Copies of cached values, so that a caller who writes into one does not change the cache."""

import copy
import functools
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd
import tiktoken
import torch

P = ParamSpec("P")
R = TypeVar("R")


def copied(kept: R) -> R:
    """A deep copy of all tensors, arrays and tables; models and tokenizers are shared."""
    return cast(R, _copy_of(kept))


def _copy_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, np.ndarray | pd.DataFrame | pd.Series):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(_copy_of(part) for part in value)
    if type(value) is dict:
        return {key: _copy_of(part) for key, part in value.items()}
    if isinstance(value, torch.nn.Module | tiktoken.Encoding):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        shallow = copy.copy(value)
        for name, part in vars(value).items():  # its fields and its cached properties
            object.__setattr__(shallow, name, _copy_of(part))
        return shallow
    return copy.deepcopy(value)


def worked_out_once(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`functools.lru_cache` for a function that returns tensors or tables: each caller gets a copy."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        known: Callable[..., R] = functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def handed_out(*args: P.args, **named: P.kwargs) -> R:
            return copied(known(*args, **named))

        handed_out.__dict__["cache_clear"] = cast(Any, known).cache_clear
        return handed_out

    return mark
