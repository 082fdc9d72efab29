"""What a token's logit is compared with: the mean of all logits, or the logit of another token.

A logit alone says nothing about a probability: if all logits grow by the same amount, softmax gives the same
probabilities. So every analysis of a logit explains one of two differences. Both are linear in the vector
(D,) that the output head is applied to:

    against="mean"    logits[token] - mean(logits)      over the whole vocabulary
    against=token     logits[token] - logits[against]

The first is log p(token) minus the mean of all log p. As a parameter, None means "mean", too; to compare with
a token whose text is "mean", give its id. A change that raises the first difference can still lower the
probability, which depends mostly on the largest of the other logits, not on their mean.

A prediction is measured by such a difference, by the probability of its token, or by the loss, minus the
logarithm of that probability, in nats.

Shapes: D emb_dim, V the vocabulary size.
"""

import torch

from gptviz.engine.kinds import Model
from gptviz.engine.undisturbed import undisturbed


def difference(logits: torch.Tensor, token: int, against: int | None) -> torch.Tensor:
    """The logit of `token` minus that of `against` (None: the mean of all logits): (..., V) -> (...)."""
    logits = logits.double()
    return logits[..., token] - (logits.mean(dim=-1) if against is None else logits[..., against])


MEASURES = ("logit", "probability", "loss")


@undisturbed
def measured(logits: torch.Tensor, token: int, against: int | None) -> dict[str, torch.Tensor]:
    """Each of `MEASURES` of a token, for each row of logits: (..., V) -> three of (...), in float64."""
    chances = logits.double().log_softmax(dim=-1)[..., token]
    values = (difference(logits, token, against), chances.exp(), -chances)
    return dict(zip(MEASURES, values, strict=True))


@undisturbed
def direction(model: Model, token: int, against: int | None) -> torch.Tensor:
    """The vector (D,), in float64, whose dot product with the input of the output head is `difference`."""
    rows = model.out_head.weight.detach()  # (V, D)
    # the mean in float32 is within 1e-8 of that in float64, and ten times as fast
    if against is None:
        other = rows.mean(dim=0, dtype=torch.float32)
    else:
        other = rows[against]
    return double(rows[token]) - double(other)


def double(weight: torch.Tensor) -> torch.Tensor:
    """A model's weight in float64 on the CPU, detached."""
    return weight.detach().double().cpu()
