"""What a text costs without a neural network: the unigram and the bigram that a model must beat.

Both are counts over the training tokens. The bigram is smoothed with the unigram: with c(a, b) the
pairs counted, c(a) their sum over b, P1 the unigram and k one number for the whole table,

    P(b | a) = (c(a, b) + k P1(b)) / (c(a) + k)

so that the two are mixed with lambda = c(a) / (c(a) + k): the better a context is known, the more its
own counts weigh (MacKay and Peto, A Hierarchical Dirichlet Language Model, 1995).
"""

from dataclasses import dataclass

import numpy as np

from gptviz.training.datasets import Ids

STRENGTHS = tuple(float(2**power) for power in range(13))


@dataclass(frozen=True)
class Unigram:
    """How often each token is, whatever stands before it; one count added to each, so that none is 0."""

    probabilities: np.ndarray  # (V,), sum 1

    @classmethod
    def count(cls, ids: Ids, vocab_size: int) -> "Unigram":
        counts = np.bincount(ids, minlength=vocab_size) + 1.0
        return cls(counts / counts.sum())

    def nats(self, ids: Ids) -> np.ndarray:
        """-log P of ids[1:], the tokens that a model predicts too. (N,) -> (N-1,)."""
        return -np.log(self.probabilities[ids[1:]])


@dataclass(frozen=True)
class Bigram:
    """How often each token follows each other, mixed with the unigram by the strength k."""

    unigram: Unigram
    pairs: np.ndarray  # first * V + second, the pairs that occur, ascending
    counts: np.ndarray  # how often each of them does
    contexts: np.ndarray  # (V,): how often a token is the first of a pair
    strength: float

    @classmethod
    def count(cls, ids: Ids, vocab_size: int, strength: float) -> "Bigram":
        pairs, counts = np.unique(_pairs(ids, vocab_size), return_counts=True)
        contexts = np.bincount(ids[:-1], minlength=vocab_size)
        return cls(Unigram.count(ids, vocab_size), pairs, counts, contexts, strength)

    def nats(self, ids: Ids, strength: float | None = None) -> np.ndarray:
        """-log P(ids[i+1] | ids[i]). (N,) -> (N-1,)."""
        if strength is None:
            k = self.strength
        else:
            k = strength
        wanted = _pairs(ids, len(self.contexts))
        places = np.searchsorted(self.pairs, wanted).clip(max=len(self.pairs) - 1)
        counted = np.where(self.pairs[places] == wanted, self.counts[places], 0)
        prior = self.unigram.probabilities[ids[1:]]
        return -np.log((counted + k * prior) / (self.contexts[ids[:-1]] + k))


def fit_bigram(ids: Ids, vocab_size: int, slice_share: float = 0.05) -> Bigram:
    """The bigram of the training tokens, k chosen among `STRENGTHS` on their last `slice_share`.

    For the choice, only the tokens before the slice are counted; then all of them are.
    """
    cut = len(ids) - max(2, int(len(ids) * slice_share))
    if cut < 2:
        raise ValueError(
            f"{len(ids)} tokens are too few for a bigram and a slice to choose its smoothing on"
        )
    before = ids[:cut]
    after = ids[cut:]
    trial = Bigram.count(before, vocab_size, STRENGTHS[0])
    best = min(STRENGTHS, key=lambda k: float(trial.nats(after, k).mean()))
    return Bigram.count(ids, vocab_size, best)


def _pairs(ids: Ids, vocab_size: int) -> np.ndarray:
    """(N,) -> (N-1,): each pair of neighbours as one number; 32 bits, where enough, sort twice as fast."""
    kind = np.uint32 if vocab_size <= 2**16 else np.uint64
    return ids[:-1].astype(kind) * vocab_size + ids[1:].astype(kind)
