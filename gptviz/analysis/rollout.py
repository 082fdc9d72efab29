"""Attention rollout: what is left of a token's way through all blocks if attention were all that moves.

Abnar & Zuidema, Quantifying Attention Flow in Transformers, 2020: in every block half of a token stays
where it is (the shortcut, as the identity matrix) and half goes where the mean of the heads looks,
A = 0.5 W + 0.5 I; the matrices of the blocks are multiplied. Nothing else of the model is looked at: no
values, no feed-forward, no sizes.
"""

import torch

from gptviz.analysis.attention import block_mean
from gptviz.analysis.logit_attribution import position_of
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace

# a pass makes these of its weights block by block: 4 MiB a block for 1,024 tokens, where GPT-2's heads are 48
MEANS = Reduction("mean attention", "attn", block_mean)

STAYS = 0.5  # their convention for the shortcut


def rollout(trace: Trace, position: int = -1) -> torch.Tensor:
    """(n_layers + 1, n): what the token at `position` draws from each position, at each depth.

    Row L is the token itself, row l where what stands before block l comes from, and row 0 the embeddings;
    every row sums to 1. It is one row of the product of the matrices, so that T by T matrices are never
    multiplied. Needs `attn`, or the reduction `MEANS`.
    """
    n = position_of(trace, position) + 1
    row = torch.zeros(n)
    row[-1] = 1
    rows = [row]
    for mean in reversed(means(trace)):
        row = STAYS * row + (1 - STAYS) * (row @ mean[:n, :n])  # (n,) x (n, n)
        rows.append(row)
    return torch.stack(rows[::-1])


def means(trace: Trace) -> list[torch.Tensor]:
    """The mean over the heads of every block's weights, (T, T) each."""
    if trace.holds((), (MEANS,)):
        return trace.reduced(MEANS.name)
    return [block_mean(trace["attn", b]) for b in range(trace.config.n_layers)]
