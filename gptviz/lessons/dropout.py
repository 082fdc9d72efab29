"""Dropout on attention weights: a random mask, and what is left made larger, so that the mean stays.

Srivastava et al., Dropout, 2014; the book's section 3.5.2. Only in training: eval mode drops nothing.
"""

from dataclasses import dataclass

import torch

from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.lessons.attention import self_attention
from gptviz.lessons.sentences import SENTENCES, linear_weights

MOST = 24  # tokens that are drawn


@dataclass(frozen=True)
class Dropped:
    """`mask` is 1 where a weight stays and 0 where it goes; `after` = before * mask / (1 - p)."""

    before: torch.Tensor
    mask: torch.Tensor
    after: torch.Tensor

    @property
    def gone(self) -> int:
        """The number of weights above zero that the mask has set to 0."""
        return int(((self.mask == 0) & (self.before > 0)).sum())

    @property
    def kept(self) -> int:
        return int(((self.mask == 1) & (self.before > 0)).sum())


@undisturbed
def drop(weights: torch.Tensor, p: float, seed: int) -> Dropped:
    """Apply `torch.manual_seed(seed); nn.Dropout(p)` to the weights, and keep its mask.

    The global random state stays as it is. ValueError unless 0 <= p < 1.
    """
    if not 0 <= p < 1:
        raise ValueError(
            f"p is {p}; it must be at least 0 and less than 1, where nothing would be left"
        )
    weights = weights.detach()
    draw = torch.Generator().manual_seed(seed)
    mask = torch.empty_like(weights).bernoulli_(1 - p, generator=draw)
    return Dropped(weights, mask, weights * mask.div(1 - p))


def dropped(of: str, p: float, seed: int) -> Dropped:
    """Dropout on one of the book's squares, "ones" or "journey"."""
    return drop({"ones": ones, "journey": journey}[of](), p, seed)


@reads(lambda lm, block, *_: (("attn", block),))
def dropped_attention(
    lm: LanguageModel, t: Trace, block: int, head: int, p: float, seed: int
) -> Dropped:
    """Dropout on one head's attention weights, of the first `MOST` tokens: (T, T) at most (24, 24)."""
    return drop(t["attn", block][head][:MOST, :MOST], p, seed)


@undisturbed
def ones() -> torch.Tensor:
    """(6, 6): what the book shows dropout on at first."""
    return torch.ones(6, 6)


@undisturbed
def journey() -> torch.Tensor:
    """(6, 6): causal attention weights of "Your journey starts with one step", the book's second example."""
    (weights,) = linear_weights(789)
    x = torch.tensor(SENTENCES["Your journey starts with one step"].vectors)
    return self_attention(x, weights, causal=True).weights.detach()
