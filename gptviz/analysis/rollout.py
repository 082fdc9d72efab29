"""Attention rollout: what is left of a token's way through all blocks if attention were all that moves.

Abnar & Zuidema, Quantifying Attention Flow in Transformers, 2020: in every block half of a token stays
where it is (the shortcut, as the identity matrix) and half goes where the mean of the heads looks,
A = 0.5 W + 0.5 I; the matrices of the blocks are multiplied. Nothing else of the model is looked at: no
values, no feed-forward, no sizes.
"""

import torch

from gptviz.analysis.attention import edited_weights, rows_of_attention
from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace


@reads("q", "k", edited_weights)
def rollout(lm: LanguageModel, t: Trace, position: int = -1) -> torch.Tensor:
    """(n_layers + 1, n): what the token at `position` draws from each position, at each depth.

    Row L is the token itself, row l where what stands before block l comes from, and row 0 the embeddings;
    every row sums to 1. It is one row of the product of the matrices: T by T matrices are never multiplied.
    """
    n = t.place_of(position) + 1
    rows = [torch.eye(n)[-1]]
    for block in reversed(range(lm.config.n_layers)):
        looks = rows_of_attention(t, block, torch.arange(n)).mean(dim=0)  # (H, n, n) -> (n, n)
        rows.append(0.5 * rows[-1] + 0.5 * rows[-1] @ looks)  # half stays: their convention
    return torch.stack(rows[::-1])
