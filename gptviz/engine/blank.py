"""A GPTModel with shapes and without numbers: to be filled from a file, or to be measured."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel


def blank_model(config: GPTConfig) -> GPTModel:
    """Every parameter and buffer on torch's meta device: a shape and a type, and no memory.

    RuntimeError where a tensor would have more bytes than there are numbers for.
    """
    with torch.device("meta"), _NoNumbers():
        return GPTModel(config)


class _NoNumbers(TorchFunctionMode):
    """What only sets numbers does nothing: `torch.nn.init`, and the triangle of the causal mask.

    To do nothing on the meta device torch first imports its compiler, which took longer than all the rest
    of loading the bundled model.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.triu or getattr(func, "__module__", None) == torch.nn.init.__name__:
            return (kwargs or {}).get("tensor", *args[:1])
        return func(*args, **(kwargs or {}))
