"""Nearly the smallest language model: which character follows which, counted, and the same table learnt.

A bigram knows one thing about the text before it, its last character. Counting gives the best table that
there can be for the counted text, and a neural network of one matrix, trained on the same text by gradient
descent, arrives at that table. Shapes: V characters; a row is the character that stands there, a column the
one that follows.

References:
  Karpathy, Let's build GPT, 2023: `nn.Embedding(vocab_size, vocab_size)` and its cross-entropy
  Kingma and Ba, Adam, 2015
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.lessons.adam import Adam, Weights
from gptviz.tokenizer.simple import CharacterTokenizer

Floats = NDArray[np.float64]

LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Counts:
    """The counts of pairs: `pairs` (V, V) says how often the column's character follows the row's."""

    tokenizer: CharacterTokenizer
    pairs: NDArray[np.int64]

    @property
    def characters(self) -> tuple[str, ...]:
        return self.tokenizer.vocabulary

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """(V,): how often each character is followed by anything."""
        return self.pairs.sum(axis=1)

    @cached_property
    def probabilities(self) -> Floats:
        """(V, V): each row divided by its sum; a row of zeros where nothing ever followed."""
        return self.pairs / np.maximum(self.firsts, 1)[:, None]

    @cached_property
    def loss(self) -> float:
        """The loss of the counted text by its own counts, in nats a character: no table has less."""
        seen = self.pairs > 0
        return float(
            -(self.pairs[seen] * np.log(self.probabilities[seen])).sum() / self.pairs.sum()
        )


def count(text: str, characters: str | None = None) -> Counts:
    """Count the pairs of neighbours. `characters`: those of the table; the text's own, where none are given.

    Raises ValueError for a text of fewer than two characters, and for one with a character that is not in
    the table.
    """
    if len(text) < 2:
        raise ValueError(f"the text has {len(text)} characters; a pair needs two")
    tokenizer = CharacterTokenizer(text if characters is None else characters)
    ids = np.array(tokenizer.encode(text))
    size = len(tokenizer.vocabulary)
    pairs = np.bincount(ids[:-1] * size + ids[1:], minlength=size * size)
    return Counts(tokenizer, pairs.reshape(size, size))  # (V*V,) -> (V, V)


@dataclass(frozen=True)
class NeuralBigram:
    """One matrix (V, V) of logits: the row of the character that stands there, for the one that follows.

    It is `nn.Embedding(V, V)`: looking a row up is all that the network does.
    """

    logits: Floats
    step: int = 0

    @classmethod
    def start(cls, size: int, seed: int = 0) -> "NeuralBigram":
        """Random normal numbers, as `nn.Embedding` begins."""
        return cls(np.random.default_rng(seed).normal(size=(size, size)))

    @cached_property
    def probabilities(self) -> Floats:
        return torch.from_numpy(self.logits).softmax(-1).numpy()

    def loss(self, counts: Counts) -> float:
        """Cross-entropy of the counted text in nats a character: every pair's -log p, as often as it is."""
        return float(-(counts.pairs * np.log(self.probabilities)).sum() / counts.pairs.sum())

    def gradient(self, counts: Counts) -> Floats:
        """The loss's gradient by the logits, (V, V): expected counts minus real ones, by their number."""
        expected = self.probabilities * counts.firsts[:, None]
        return (expected - counts.pairs) / counts.pairs.sum()


def learn(counts: Counts, steps: int = 400) -> Iterator[NeuralBigram]:
    """Train a matrix on the whole counted text at each step; the network before each, and after the last."""
    model = NeuralBigram.start(len(counts.characters))
    weights: Weights = {"logits": model.logits}
    adam = Adam(weights)
    yield model
    for step in range(1, steps + 1):
        weights = adam.step(weights, {"logits": model.gradient(counts)}, LEARNING_RATE)
        model = NeuralBigram(weights["logits"].astype(np.float64), step)
        yield model


def write(probabilities: Floats, start: int, length: int, seed: int = 0) -> list[int]:
    """Draw on from the character with the id `start`, each from the row of the one before: `length` ids.

    Ends early at a character after which nothing ever came.
    """
    rng = np.random.default_rng(seed)
    ids = [start]
    for point in rng.random(length):
        row = probabilities[ids[-1]].cumsum()
        if row[-1] <= 0:
            break
        ids.append(int(np.searchsorted(row, point * row[-1], side="right")))
    return ids[1:]
