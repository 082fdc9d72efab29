"""From logits to the loss: softmax, the target's probability, minus its logarithm, the mean.

The shapes of the slides: logits (n, V), a row for each position that has a target; targets (n,), the ids that
came. In a text of T tokens n is T - 1: the last position has no target, since what comes next is not there.
"""

import math
from dataclasses import dataclass

import torch

# The slides' example: a vocabulary of 5, one position, and its target. As they print it.
SLIDE_LOGITS = (0.0465, 0.2514, -0.6639, -0.5434, -0.0025)
SLIDE_TARGET = 0
# of each as the target; of more digits than printed
SLIDE_LOSSES = (1.4411, 1.2362, 2.1516, 2.0310, 1.4901)

# "Let's build GPT" prints the loss of its bigram model of 65 characters before any training.
NOTEBOOK_CHARACTERS = 65
NOTEBOOK_LOSS = 4.483732223510742


@dataclass(frozen=True)
class LossSteps:
    """The steps from the logits to the loss, (n,) each, float64.

    `logit` is the target's; `log_sum` is the logarithm of the row's sum of e^logit, so that softmax gives the
    target `probability` = e^(logit - log_sum); `loss` = -ln probability = log_sum - logit, in nats.
    """

    logit: torch.Tensor
    log_sum: torch.Tensor
    probability: torch.Tensor
    loss: torch.Tensor

    @property
    def cross_entropy(self) -> float:
        """The mean loss: what training makes smaller. NaN where no position has a target."""
        return float(self.loss.mean())

    @property
    def perplexity(self) -> float:
        """The number of equally likely tokens that the model seems to choose among: e^cross_entropy."""
        return perplexity(self.cross_entropy)


def loss_steps(logits: torch.Tensor, targets: torch.Tensor) -> LossSteps:
    """Every position's loss. Raises ValueError unless there is one target a row, an id of the vocabulary.

    >>> round(loss_steps(torch.tensor([SLIDE_LOGITS]), torch.tensor([SLIDE_TARGET])).cross_entropy, 4)
    1.4411
    """
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and targets {tuple(targets.shape)}; "
            "give (n, V) and (n,)"
        )
    size = logits.shape[1]
    wrong = [i for i in targets.tolist() if not 0 <= i < size]
    if wrong:
        raise ValueError(
            f"{wrong[0]} is no id of a vocabulary of {size}; the ids are 0 to {size - 1}"
        )
    logits = logits.double()
    logit = logits.gather(1, targets[:, None])[:, 0]  # (n, V) -> (n,)
    log_sum = logits.logsumexp(dim=1)
    return LossSteps(logit, log_sum, torch.exp(logit - log_sum), log_sum - logit)


def uniform_loss(vocabulary: int) -> float:
    """The loss of a guess that gives every token the same probability, whatever comes: ln V.

    ValueError for an empty vocabulary.
    """
    if vocabulary < 1:
        raise ValueError(f"the vocabulary has {vocabulary} tokens; it must have one at least")
    return math.log(vocabulary)


def perplexity(cross_entropy: float) -> float:
    """e^loss; infinite where a float cannot hold it."""
    if cross_entropy < 700:
        return math.exp(cross_entropy)
    return math.inf
