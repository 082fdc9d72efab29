"""What a logit is compared with: the mean of all logits, or the logit of another token.

A logit alone supports nothing: what raises all of them alike changes no probability. So every analysis of a
logit explains one of two differences, both linear in the row (D,) that the output head reads:

    against="mean"    logits[token] - mean(logits)      over the whole vocabulary
    against=token     logits[token] - logits[against]

The first is log p(token) minus the mean of all log p. None means "mean", too; the token "mean" has to be
given by its id. What raises such a difference can still lower the probability: that depends on the largest of
the other logits, not on their mean.
"""

import torch

from gptviz.engine.undisturbed import undisturbed
from gptviz.model import GPTModel


def difference(logits: torch.Tensor, token: int, against: int | None) -> torch.Tensor:
    """Return the logit of `token` minus the mean of all, or minus that of `against`: (..., V) -> (...)."""
    logits = logits.double()
    return logits[..., token] - (logits.mean(dim=-1) if against is None else logits[..., against])


@undisturbed
def direction(model: GPTModel, token: int, against: int | None) -> torch.Tensor:
    """Return the row (D,), in float64, whose dot product with what the output head reads is `difference`."""
    rows = model.out_head.weight.detach()  # (V, D)
    # in float32: 1e-8 off, and ten times as fast
    if against is None:
        other = rows.mean(dim=0, dtype=torch.float32)
    else:
        other = rows[against]
    return double(rows[token]) - double(other)


def double(weight: torch.Tensor) -> torch.Tensor:
    """A model's weight in float64 on the CPU, detached."""
    return weight.detach().double().cpu()
