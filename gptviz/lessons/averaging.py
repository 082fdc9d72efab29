"""The trick behind attention: every token's average over itself and what stands before it, in three versions.

"Let's build GPT", Karpathy, 2023. The three give the same; the last is attention with all scores equal.
"""

from dataclasses import dataclass

import torch

# The notebook's first sequence, as it prints it: 8 tokens of 2 numbers.
NOTEBOOK = (
    (-0.1816, 0.1048),
    (0.3941, 0.5729),
    (1.5386, 0.4016),
    (0.8023, 1.2386),
    (0.6774, -1.2224),
    (-1.0634, 0.3195),
    (-0.4746, 0.6998),
    (0.4340, 0.5938),
)

# And what it prints of its averages: made of more digits than it prints of the sequence.
NOTEBOOK_AVERAGES = (
    (-0.1816, 0.1048),
    (0.1062, 0.3389),
    (0.5837, 0.3598),
    (0.6384, 0.5795),
    (0.6462, 0.2191),
    (0.3612, 0.2358),
    (0.2418, 0.3021),
    (0.2659, 0.3386),
)


@dataclass(frozen=True)
class Averages:
    """`scores` (T, T) go into the softmax, None where there is none; `weights` (T, T), `context` (T, d)."""

    scores: torch.Tensor | None
    weights: torch.Tensor
    context: torch.Tensor


def averages_by_loop(x: torch.Tensor) -> torch.Tensor:
    """Version 1, a loop: (T, d) -> (T, d); row t is the mean of rows 0 to t."""
    averages = torch.zeros_like(x)
    for t in range(len(x)):
        before = x[: t + 1]  # (t + 1, d)
        averages[t] = before.mean(dim=0)
    return averages


def averages_by_matrix(x: torch.Tensor) -> Averages:
    """Version 2, a matrix: ones below the diagonal, every row divided by its sum."""
    ones = torch.tril(torch.ones(len(x), len(x), dtype=x.dtype))
    weights = ones / ones.sum(dim=1, keepdim=True)
    return Averages(None, weights, weights @ x)  # (T, T) x (T, d) -> (T, d)


def averages_by_softmax(x: torch.Tensor) -> Averages:
    """Version 3, softmax: all scores 0, and -inf for what comes later."""
    future = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), diagonal=1)
    scores = torch.zeros(len(x), len(x), dtype=x.dtype).masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return Averages(scores, weights, weights @ x)
