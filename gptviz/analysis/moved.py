"""How far a change moved something: a prediction, in bits, and attention patterns, row by row."""

import math
from dataclasses import dataclass

import numpy as np
import torch

ROUNDING = 1e-5  # logits that differ by less are the same ones, worked out in another order


@dataclass(frozen=True)
class Prediction:
    """Two next-token distributions beside each other: the unchanged model's, and the changed one's.

    `token` is the unchanged model's most probable one, with its probability `before` and `after`; `now`
    is the changed model's, with `now_after`. `logits` is the largest difference of a logit.
    """

    token: int
    before: float
    after: float
    now: int
    now_after: float
    kl: float
    logits: float

    @property
    def nothing(self) -> bool:
        """Whether the change changed nothing here, up to rounding."""
        return self.logits <= ROUNDING


def prediction(before: torch.Tensor, after: torch.Tensor) -> Prediction:
    """Compare two rows of logits (V,): the model's own,
    and those of the changed model. `kl` as in `kl_bits`.
    """
    p, q = (torch.softmax(logits.double(), dim=-1) for logits in (before, after))  # (V,) each
    token = int(p.argmax())
    now = int(q.argmax())
    kl = kl_bits(before, after)
    logits = float((before - after).abs().max())
    return Prediction(token, float(p[token]), float(q[token]), now, float(q[now]), kl, logits)


def kl_bits(before: torch.Tensor, after: torch.Tensor) -> float:
    """KL divergence in bits of two rows of logits (V,), from before to after: sum p log2(p / q).

    What it costs to expect `after` where `before` holds; below 0 is only rounding (Kullback, Leibler 1951).
    """
    p, q = (torch.log_softmax(logits.double(), dim=-1) for logits in (before, after))
    return max(0.0, float(torch.linalg.vecdot(p.exp(), p - q)) / math.log(2))


# ---- attention ----

ROW_BYTES = 16 * 2**20  # of attention weights, of all blocks, that are held to be compared


@dataclass(frozen=True)
class Rows:
    """Some rows (queries) of every head's attention weights, (H, T, T) -> (H, R, T): see `Reduction`."""

    queries: tuple[int, ...]

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn[:, list(self.queries)]


def compared_rows(n_tokens: int, heads: int) -> tuple[int, ...]:
    """The queries whose rows are compared in a model of so many heads in all: 1 to T - 1, or some of them.

    Row 0 can only look at itself. Where all rows would be more than `ROW_BYTES` those that are taken lie
    evenly over the text, with the last among them.
    """
    most = max(1, ROW_BYTES // (4 * heads * n_tokens))
    if n_tokens - 1 <= most:
        return tuple(range(1, n_tokens))
    return tuple(np.linspace(1, n_tokens - 1, most + 1).round().astype(int)[1:].tolist())


def total_variation(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """The part of each row's attention that went elsewhere: (..., T) -> (...).

    That is what its weights gained or lost, the larger of the two sums: 0 for the same row, 1 where
    nothing is looked at as before, or nothing at all. Rows that sum to 1 gain what they lose: half the
    sum of |difference|. Weights that a change scales up may gain more than 1.
    """
    gained = after - before
    return (gained.abs().sum(dim=-1) + gained.sum(dim=-1).abs()) / 2


def pattern_moved(before: torch.Tensor, after: torch.Tensor) -> float:
    """The mean total variation of the rows from 1 on of one head, (T, T) each; 0 for a text of one token."""
    rows = total_variation(before, after)[1:]
    if len(rows):
        return float(rows.mean())
    return 0.0
