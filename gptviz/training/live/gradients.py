"""Vanishing gradients: how much of the gradient reaches the first layers, with shortcuts and without.

Two measurements of models that nobody has trained: the book's five layers (section 4.4), with the numbers
that it prints, and a GPTModel of many blocks, with and without shortcuts and LayerNorm.
"""

from functools import lru_cache
from itertools import pairwise

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gptviz.engine.config import GPTConfig
from gptviz.engine.forward import threads
from gptviz.model import GELU
from gptviz.training.live.config import LiveConfig
from gptviz.training.live.parts import make_model

SEED = 123

# the book's mean absolute gradients of its five weight matrices, first layer first
PRINTED_WITHOUT = (0.00020173587836325169, 0.0001201116101583466, 0.0007152041653171182,
                   0.001398873864673078, 0.005049646366387606)  # fmt: skip
PRINTED_WITH = (0.22169792652130127, 0.20694105327129364, 0.32896995544433594,
                0.2665732502937317, 1.3258541822433472)  # fmt: skip

DEPTHS = (3, 6, 12)  # blocks
# name -> (shortcuts, LayerNorm)
VARIANTS = {
    "neither": (False, False),
    "LayerNorm alone": (False, True),
    "shortcuts alone": (True, False),
    "both, as in GPT": (True, True),
}
WIDTH = 32
HEADS = 4
VOCABULARY = 64
TOKENS = 16
TEXTS = 4


class ExampleDeepNeuralNetwork(nn.Module):
    """The book's five layers, each a linear one and GELU. (b, 3) -> (b, 1)."""

    def __init__(self, layer_sizes: list[int], use_shortcut: bool):
        super().__init__()
        self.use_shortcut = use_shortcut
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(n, m), GELU()) for n, m in pairwise(layer_sizes)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            layer_input = x
            x = layer(x)
            if self.use_shortcut and layer_input.shape == x.shape:
                x = layer_input + x
        return x


@lru_cache(maxsize=2)
def books_gradients(use_shortcut: bool) -> tuple[float, ...]:
    """The mean absolute gradient of each of the book's five weight matrices, for its input and its target."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = ExampleDeepNeuralNetwork([3, 3, 3, 3, 3, 1], use_shortcut)
    output = model(torch.tensor([[1.0, 0.0, -1.0]]))
    loss = nn.MSELoss()(output, torch.tensor([[0.0]]))
    loss.backward()
    return tuple(mean_gradient(layer) for layer in model.layers)


@lru_cache(maxsize=8)
def gradients_by_block(n_layers: int) -> pd.DataFrame:
    """A row for each block, a column for each of `VARIANTS`: the mean absolute gradient of its matrices.

    The model is a GPTModel at its first weights; the loss is that of random tokens, which it is to foresee.
    """
    config = GPTConfig(VOCABULARY, TOKENS, WIDTH, HEADS, n_layers)
    drawing = torch.Generator().manual_seed(SEED)
    ids = torch.randint(VOCABULARY, (TEXTS, TOKENS + 1), generator=drawing)  # (b, T + 1)
    columns = {}
    for name, (shortcut, layer_norm) in VARIANTS.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model = make_model(LiveConfig(shortcut=shortcut, layer_norm=layer_norm), config)
        with threads(1):  # so small a model is slower with more of them
            logits = model(ids[:, :-1])  # (b, T, V)
            F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
        columns[name] = [mean_gradient(block) for block in model.trf_blocks]
    return pd.DataFrame(columns).rename_axis("block").reset_index()


def mean_gradient(module: nn.Module) -> float:
    """The mean of |gradient| over all weight matrices of a module."""
    gradients = [
        p.grad.abs().flatten() for p in module.parameters() if p.dim() == 2 and p.grad is not None
    ]
    return float(torch.cat(gradients).double().mean())
