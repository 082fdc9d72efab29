"""Random tokens in which a passage of random length repeats, and how well they can be foreseen at best.

A window begins with `length` tokens, each drawn evenly from the V of the vocabulary; after them the same
passage comes again and again. The length is drawn evenly from `shortest` to `longest`, so that no
position says where to look: with one fixed length a shortcut by position is learnt instead.

Olsson et al., In-context Learning and Induction Heads, 2022, for what this brings about in a transformer.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from gptviz.training.datasets import repeat_passage

SHORTEST = 4


def longest_passage(max_length: int) -> int:
    """Half of a window: then every passage comes at least twice."""
    return max_length // 2


def draw_windows(vocab_size: int, max_length: int, count: int, rng: np.random.Generator) -> torch.Tensor:
    """(count, max_length + 1) ids: inputs and, one to the right, their targets."""
    lengths = rng.integers(SHORTEST, longest_passage(max_length) + 1, count)
    rows = torch.from_numpy(rng.integers(0, vocab_size, (count, max_length + 1)))
    return torch.stack([repeat_passage(row, int(n)) for row, n in zip(rows, lengths, strict=True)])


@dataclass(frozen=True)
class RepeatedPassages:
    """Batches without end. Number n is a pure function of (seed, n), as in `datasets.Batches`."""

    vocab_size: int
    max_length: int
    batch_size: int
    seed: int

    def __getitem__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of one step, (batch_size, max_length) each."""
        rng = np.random.default_rng((self.seed, step))
        windows = draw_windows(self.vocab_size, self.max_length, self.batch_size, rng)
        return windows[:, :-1], windows[:, 1:]


def floor(vocab_size: int, max_length: int) -> float:
    """The lowest mean loss there is, in nats a token: only what cannot be foreseen is left.

    Nobody can foresee the passage's tokens (ln V each; the window's first is not predicted), nor how long
    it is (ln of the number of lengths, once a window). With lengths from a to b, (a + b) / 2 on average,

        ((a + b) / 2 - 1) ln V + ln(b - a + 1)
        --------------------------------------
                      max_length

    less what the windows leave open of the length, which is next to nothing: two lengths fit one
    window only if a passage happens to repeat within itself, one in V^4 or fewer.
    """
    longest = longest_passage(max_length)
    tokens = (SHORTEST + longest) / 2 - 1
    return (tokens * math.log(vocab_size) + math.log(longest - SHORTEST + 1)) / max_length
