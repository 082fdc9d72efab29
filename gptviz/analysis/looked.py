"""What heads looked at when a token was written: their last row of attention, and what one token got.

A token is written out of the position before it: it does not exist yet when the model looks. Shapes: L
blocks, H heads, T tokens.
"""

from dataclasses import dataclass

import torch

from gptviz.analysis.logit_attribution import position_of, read_at
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace


@dataclass(frozen=True)
class _Column:
    """A column of attention weights, for `towards`: (H, T, T) -> (H, T)."""

    position: int

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn[:, :, self.position]


def towards(position: int) -> Reduction:
    """How much each head gives to one position, from a pass that need not keep all weights."""
    return Reduction(f"attention to position {position}", "attn", _Column(position))


def last_rows(trace: Trace) -> torch.Tensor:
    """(L, H, T): where every head looks from the last position. Needs `attn`, or `read_at` of it."""
    return _taken(trace, read_at(len(trace) - 1))


def to_position(trace: Trace, position: int) -> torch.Tensor:
    """(L, H, T): what every head gives to a position, from each of T; 0 from those before it.

    Needs `attn`, or the reduction `towards` this position. ValueError for one that does not exist.
    """
    return _taken(trace, towards(position_of(trace, position)))


def _taken(trace: Trace, wanted: Reduction) -> torch.Tensor:
    if trace.holds([], [wanted]):
        return torch.stack(trace.reduced(wanted.name))
    return torch.stack([wanted.of(trace["attn", block]) for block in range(trace.config.n_layers)])
