"""Reduction: a function of a site's tensor, computed during the pass so that the tensor need not be kept.

A site is a place in the model, such as the attention weights of a block (`gptviz.SITES`). H heads, T tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gptviz.engine.index import listed, of_kind


@dataclass(frozen=True)
class Reduction:
    """A function to call with a site's tensor, in every block that has the site, while the pass runs.

    `function` gets the tensor as a Trace hands it out, float32 on the CPU: (H, T, T) for `attn`, with edits
    made. Only what it returns is kept, under `name` (`Trace.reduced`). The tensor is a copy, so the function
    may write into it. It should be fast, as no other pass can run meanwhile. The attention weights of all
    blocks of GPT-2 are 576 MiB for 1,024 tokens; reduced block by block, only 48 MiB exist at a time.

    Two reductions are equal if their name, site and function are. So give a function that a module defines,
    or, for a function with settings, a frozen dataclass with `__call__`: every lambda is a new function.
    """

    name: str
    site: str
    function: Callable[[torch.Tensor], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(
                f"a reduction's name is {self.name!r}; give the name to ask for its results by"
            )
        if not callable(self.function):
            raise ValueError(
                f"the reduction {self.name!r} has {self.function!r}, which is no function"
            )

    def of(self, value: torch.Tensor) -> Any:
        """The result for one block. A result that is a view is copied, so as not to keep the tensor alive."""
        if not _writes_into_nothing(self.function):
            value = value.clone()
        result = self.function(value)
        if isinstance(result, np.ndarray) and np.may_share_memory(result, value.numpy()):
            return result.copy()
        if isinstance(result, torch.Tensor) and _same_storage(result, value):
            return result.clone()
        return result


def reductions(given: object) -> list[Reduction]:
    """Return `given` as a list of reductions. Raises ValueError for anything else."""
    do = 'give a list, such as [gptviz.Reduction("most", "attn", torch.max)]'
    return [of_kind("reduce", item, Reduction, do) for item in listed("reduce", given, do)]


def _writes_into_nothing(function: Callable[[torch.Tensor], Any]) -> bool:
    """Whether the function is gptviz's own: those write into no tensor (tests/engine/test_handed_out.py)."""
    return str(getattr(function, "__module__", None)).split(".")[0] == "gptviz"


def _same_storage(result: torch.Tensor, value: torch.Tensor) -> bool:
    return result.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
