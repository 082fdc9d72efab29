"""Two states of a model before it has learnt anything.

`blank_model` makes a GPTModel of shapes without numbers, on torch's meta device: to be filled from a file, or
to be measured. `blank_llama` makes such a LlamaModel. `init_weights` draws the random weights that a training
begins with, in a model that `GPTModel(cfg)` made: a blank one has no memory for them.
"""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.llama import LlamaModel
from gptviz.model import GPTModel


def blank_model(config: GPTConfig) -> GPTModel:
    """Make a model whose parameters and buffers are on torch's meta device: a shape and a type, and no memory.

    Raises RuntimeError for a tensor so large that torch cannot count its bytes.
    """
    with torch.device("meta"), _NoNumbers():
        return GPTModel(config)


def blank_llama(config: LlamaConfig) -> LlamaModel:
    """Make a LlamaModel in the same way."""
    with torch.device("meta"), _NoNumbers():
        return LlamaModel(config)


def blank_of(config: GPTConfig | LlamaConfig) -> GPTModel | LlamaModel:
    """Make the blank model of a config, of whichever class it is."""
    if isinstance(config, LlamaConfig):
        return blank_llama(config)
    return blank_model(config)


class _NoNumbers(TorchFunctionMode):
    """Skips the functions of `torch.nn.init`, which on the meta device have no numbers to set.

    The layers of a GPTModel call three of them: normal_ for an embedding, kaiming_uniform_ for a Linear's
    matrix and uniform_ for its bias. On the meta device torch would import its compiler before it does
    nothing, which took longer than all the rest of loading the bundled model.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == torch.nn.init.__name__:
            # what they return: the tensor that they were given, by name or as the first argument
            return (kwargs or {}).get("tensor", *args[:1])
        return func(*args, **(kwargs or {}))


def init_weights(model: GPTModel, seed: int) -> None:
    """Draw every matrix from normal(0, 0.02) and set biases to 0, as nanoGPT does to train a GPT-2.

    In each block two projections add their output to the residual stream: attention's `out_proj` and the second
    layer of the feed-forward network. With n_layers blocks that makes 2 n_layers sums, whose variances add up.
    Their matrices are from normal(0, 0.02 / sqrt(2 n_layers)), so that the stream's variance does not grow with
    depth (Radford et al., 2019, scale "the weights of residual layers" by 1 / sqrt of their number). LayerNorms
    stay as GPTModel makes them: scale 1, shift 0.
    """
    generator = torch.Generator().manual_seed(seed)
    n_layers = len(model.trf_blocks)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_residual = name.endswith(("out_proj.weight", "ff.layers.2.weight"))
            std = 0.02
            if into_residual:
                std = 0.02 / (2 * n_layers) ** 0.5
            nn.init.normal_(parameter, std=std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
