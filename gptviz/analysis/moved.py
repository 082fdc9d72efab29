"""How far an edit of the model moved its predictions (KL divergence in bits) and its attention weights.

Shapes: V the vocabulary size, H heads, T tokens, R rows.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

ROUNDING = 1e-5  # logits that differ by no more than this differ by the rounding of float32 only


@dataclass(frozen=True)
class Prediction:
    """The next-token predictions of the unchanged and of the changed model at one position, compared."""

    token: int  # the id of the unchanged model's most probable token
    before: float  # its probability in the unchanged model
    after: float  # its probability in the changed model
    now: int  # the id of the changed model's most probable token
    now_after: float  # its probability in the changed model
    kl: float  # see `kl_bits`
    logits: float  # the largest absolute difference of a logit

    @property
    def nothing(self) -> bool:
        """Whether no logit changed, but for rounding."""
        return self.logits <= ROUNDING


def prediction(before: torch.Tensor, after: torch.Tensor) -> Prediction:
    """Compare the logits of the unchanged and of the changed model at one position, (V,) each."""
    p, q = (torch.softmax(logits.double(), dim=-1) for logits in (before, after))  # (V,) each
    token = int(p.argmax())
    new_token = int(q.argmax())
    kl = kl_bits(before, after)
    logits = float((before - after).abs().max())
    return Prediction(
        token, float(p[token]), float(q[token]), new_token, float(q[new_token]), kl, logits
    )


def kl_bits(before: torch.Tensor, after: torch.Tensor) -> float:
    """The KL divergence in bits between the predictions of two rows of logits (V,): sum of p log2(p / q).

    p are the probabilities before, q those after. It is the mean number of extra bits that a code made for q
    needs for tokens drawn by p (Kullback, Leibler 1951). It is never negative, but for rounding.
    """
    # (V,) log p each
    p, q = (torch.log_softmax(logits.double(), dim=-1) for logits in (before, after))
    return max(0.0, float(torch.linalg.vecdot(p.exp(), p - q)) / math.log(2))


# ---- attention ----

# the most bytes of attention weights, of all blocks together, that are compared
ROW_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Rows:
    """A function that takes some rows (queries) of attention weights, (H, T, T) -> (H, R, T).

    It is a dataclass so that it can be the function of a `Reduction`.
    """

    queries: tuple[int, ...]

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn[:, list(self.queries)]


def compared_rows(n_tokens: int, heads: int) -> tuple[int, ...]:
    """The queries whose rows are compared, in a model with `heads` heads in all its blocks together.

    They are 1 to T - 1, since query 0 has no key but itself. If these rows took more than `ROW_BYTES`, some
    of them are chosen, spread evenly over the text, with the last one among them.
    """
    most = max(1, ROW_BYTES // (4 * heads * n_tokens))
    if n_tokens - 1 <= most:
        return tuple(range(1, n_tokens))
    return tuple(np.linspace(1, n_tokens - 1, most + 1).round().astype(int)[1:].tolist())


def total_variation(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """The total variation distance of attention rows: how much weight moved to other keys, (..., T) -> (...).

    It is the sum of what weights gained or of what they lost, whichever is larger: 0 for equal rows, 1 if all
    weight is on other keys than before. Rows that both sum to 1 gain as much as they lose, which is half the
    sum of |difference|. An edit that scales weights up may give more than 1.
    """
    gained = after - before
    return (gained.abs().sum(dim=-1) + gained.sum(dim=-1).abs()) / 2


def pattern_moved(before: torch.Tensor, after: torch.Tensor) -> float:
    """The mean `total_variation` of rows 1 to T - 1 of one head, (T, T) each; 0 for a text of one token."""
    rows = total_variation(before, after)[1:]
    if len(rows):
        return float(rows.mean())
    return 0.0
