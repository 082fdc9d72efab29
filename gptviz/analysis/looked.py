"""What heads looked at when a token was written: their last row of attention, and what one token got.

A token is written out of the position before it: it does not exist yet when the model looks. Shapes: L
blocks, H heads, T tokens.
"""

from dataclasses import dataclass

import torch

from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace


@dataclass(frozen=True)
class _Slice:
    """One row (axis 1) or column (axis 2) of attention weights: (H, T, T) -> (H, T)."""

    axis: int
    position: int

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn.select(self.axis, self.position)


def read_at(position: int) -> Reduction:
    """Return what takes from a pass where every head looks from one position; no other weights are kept."""
    return Reduction(f"attention of position {position}", "attn", _Slice(1, position))


def towards(position: int) -> Reduction:
    """Return what takes from a pass how much each head gives to one position; no other weights are kept."""
    return Reduction(f"attention to position {position}", "attn", _Slice(2, position))


@reads(lambda lm, block, head: (("attn", block),))
def last_row(lm: LanguageModel, t: Trace, block: int, head: int) -> torch.Tensor:
    """Return where a head looks from the last position: (T,), softmax(K q / sqrt(d))."""
    return t["attn", block][head, -1]
