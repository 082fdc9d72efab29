"""The weights that a model has before it is trained."""

import torch
from torch import nn

from gptviz.model import GPTModel


def init_weights(model: GPTModel, n_layers: int, seed: int) -> None:
    """GPT-2's initialisation (Radford et al., 2019): every matrix from normal(0, 0.02), biases 0.

    The two projections of a block into the residual stream get 0.02 / sqrt(2 n_layers), so that the
    stream's variance does not grow with depth. LayerNorms stay at scale 1, shift 0.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            into_residual = name.endswith(("out_proj.weight", "ff.layers.2.weight"))
            std = 0.02 / (2 * n_layers) ** 0.5 if into_residual else 0.02
            nn.init.normal_(parameter, std=std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
