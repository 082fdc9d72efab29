"""Copies: what is kept is handed out as one, so that whoever has it may write into it."""

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
    """The same with all numbers in memory of their own; models and tokenizers are as they were."""
    return cast(R, _copy_of(kept))


def _copy_of(kept: Any) -> Any:
    if isinstance(kept, torch.Tensor):
        return kept.clone()
    if isinstance(kept, np.ndarray | pd.DataFrame | pd.Series):
        return kept.copy()
    if type(kept) in (list, tuple):
        return type(kept)(_copy_of(part) for part in kept)
    if type(kept) is dict:
        return {key: _copy_of(part) for key, part in kept.items()}
    if isinstance(kept, torch.nn.Module | tiktoken.Encoding):
        return kept
    if is_dataclass(kept) and not isinstance(kept, type):
        made = copy.copy(kept)
        for name, part in vars(kept).items():  # its fields, and what it has worked out of them
            object.__setattr__(made, name, _copy_of(part))
        return made
    return copy.deepcopy(kept)


def worked_out_once(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`functools.lru_cache` for a function that gives what can be written into: each caller has a copy."""

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        known: Callable[..., R] = functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def handed_out(*args: P.args, **named: P.kwargs) -> R:
            return copied(known(*args, **named))

        handed_out.__dict__["cache_clear"] = cast(Any, known).cache_clear
        return handed_out

    return mark
