"""Reduction: look at a site during the pass, keep what is made of it, let the whole tensor go at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gptviz.engine.index import listed, of_kind


@dataclass(frozen=True)
class Reduction:
    """What to make of a site, in every block that has it, while the pass runs.

    `function` gets the site's tensor as a Trace hands it out, CPU float32: (H, T, T) for `attn`; edited, if
    the run edits it. What it returns is kept, and nothing else. The tensor is a copy, into which it may
    write. It is called under the lock of the forward pass: keep it short. For 1,024 tokens of GPT-2 all
    attention weights are 576 MiB, and reduced block by block there are never more than 48 of them.

    Two reductions are the same if name, site and function are: give a function of a module, or a frozen
    dataclass with `__call__` where it has settings; a new lambda is never equal to an older one.
    """

    name: str
    site: str
    function: Callable[[torch.Tensor], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a reduction's name is {self.name!r}; give the name to ask for its results by")
        if not callable(self.function):
            raise ValueError(f"the reduction {self.name!r} has {self.function!r}, which is no function")

    def of(self, value: torch.Tensor) -> Any:
        """The result for one block; a view into the tensor is copied, so that the rest can go."""
        if not _writes_into_nothing(self.function):
            value = value.clone()
        result = self.function(value)
        if isinstance(result, np.ndarray) and np.may_share_memory(result, value.numpy()):
            return result.copy()
        if isinstance(result, torch.Tensor) and _same_storage(result, value):
            return result.clone()
        return result


def reductions(given: object) -> list[Reduction]:
    """A list of reductions. Raises ValueError for anything else."""
    do = 'give a list, such as [gptviz.Reduction("most", "attn", torch.max)]'
    return [of_kind("reduce", item, Reduction, do) for item in listed("reduce", given, do)]


def _writes_into_nothing(function: Callable[[torch.Tensor], Any]) -> bool:
    """Whether it is one of gptviz's functions (tests/engine/test_handed_out.py); others are given a copy."""
    return str(getattr(function, "__module__", None)).split(".")[0] == "gptviz"


def _same_storage(result: torch.Tensor, value: torch.Tensor) -> bool:
    return result.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
