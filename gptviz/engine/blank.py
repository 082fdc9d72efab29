"""A GPTModel before it has learnt: with shapes and without numbers, to be filled from a file or measured, and
with the weights that a training begins with.
"""

from typing import Any

import torch
from torch import nn
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
    """What only sets numbers does nothing: `torch.nn.init`.

    To do nothing on the meta device torch first imports its compiler, which took longer than all the rest
    of loading the bundled model.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == torch.nn.init.__name__:
            return (kwargs or {}).get("tensor", *args[:1])
        return func(*args, **(kwargs or {}))


def init_weights(model: GPTModel, n_layers: int, seed: int) -> None:
    """GPT-2's initialisation (Radford et al., 2019): every matrix from normal(0, 0.02), biases 0.

    The two projections of a block into the residual stream get 0.02 / sqrt(2 n_layers), so that the
    stream's variance does not grow with depth. LayerNorms stay at scale 1, shift 0.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_residual = name.endswith(("out_proj.weight", "ff.layers.2.weight"))
            std = 0.02
            if into_residual:
                std = 0.02 / (2 * n_layers) ** 0.5
            nn.init.normal_(parameter, std=std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
