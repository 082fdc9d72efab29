"""How far a change moved something: a prediction, in bits, and attention patterns, row by row."""

import math
from dataclasses import dataclass

import torch

ROUNDING = 1e-5  # logits that differ by less are the same ones, worked out in another order


@dataclass(frozen=True)
class Prediction:
    """Two next-token distributions beside each other: the unchanged model's, and the changed one's.

    `token` is the unchanged model's most probable one, with its probability `before` and `after`; `now`
    is the changed model's, with `now_before` and `now_after`. `logits` is the largest difference of a logit.
    """

    token: int
    before: float
    after: float
    now: int
    now_before: float
    now_after: float
    kl: float
    logits: float

    @property
    def nothing(self) -> bool:
        """Whether the change changed nothing here, up to rounding."""
        return self.logits <= ROUNDING


def prediction(before: torch.Tensor, after: torch.Tensor) -> Prediction:
    """Of two rows of logits (V,): the model's own, and those of the changed model. `kl` as in `kl_bits`."""
    p, q = (torch.softmax(logits.double(), dim=-1) for logits in (before, after))  # (V,) each
    token, now = int(p.argmax()), int(q.argmax())
    return Prediction(
        token=token,
        before=float(p[token]),
        after=float(q[token]),
        now=now,
        now_before=float(p[now]),
        now_after=float(q[now]),
        kl=kl_bits(before, after),
        logits=float((before - after).abs().max()),
    )


def kl_bits(before: torch.Tensor, after: torch.Tensor) -> float:
    """KL divergence in bits of two rows of logits (V,), from before to after: sum p log2(p / q).

    What it costs to expect `after` where `before` holds; below 0 is only rounding (Kullback, Leibler 1951).
    """
    p, q = (torch.log_softmax(logits.double(), dim=-1) for logits in (before, after))
    return max(0.0, float(torch.linalg.vecdot(p.exp(), p - q)) / math.log(2))
