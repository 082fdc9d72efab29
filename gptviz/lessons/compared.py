"""Models of other units on the same text: bits a byte of books that the baselines never saw.

A loss a character and a loss a token cannot be compared: a token is several characters. What all of
them pay for is the text, so each predictor's nats for all of it are divided by its bytes. The text is
`engine.sample`, the beginnings of five books; every byte of it is paid for once. A passage begins after
line breaks (a GPT's after its end-of-text token), which are context and not paid for.
"""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gptviz.analysis.next_token import losses
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sample import passages
from gptviz.engine.undisturbed import undisturbed
from gptviz.lessons.mlp import MLP, Ids, Recipe, train
from gptviz.tokenizer import END_OF_TEXT, begins_of, token_bytes
from gptviz.tokenizer.simple import CharacterTokenizer
from gptviz.training.baselines import STRENGTHS, Bigram, Unigram, fit_bigram

START = "\n"


@cache
def held_out_bytes() -> int:
    """The length of the held-out text in bytes of UTF-8."""
    return sum(len(passage.text.encode()) for passage in passages())


def tokenizer_for(text: str) -> CharacterTokenizer:
    """The characters of a text and of the held-out one: an id for everything that is to be predicted."""
    return CharacterTokenizer(START + text + "".join(passage.text for passage in passages()))


def held_out(tokenizer: CharacterTokenizer, before: int) -> list[Ids]:
    """The held-out passages as ids, each after `before` line breaks."""
    return [np.array(tokenizer.encode(START * before + passage.text)) for passage in passages()]


def bits_a_byte(nats: Iterable[NDArray[np.floating]]) -> float:
    """Bits per byte of the held-out text, from the nats of its passages."""
    return float(sum(part.sum(dtype=np.float64) for part in nats)) / math.log(2) / held_out_bytes()


@dataclass(frozen=True)
class Trigram:
    """How often each character follows each two, mixed with the bigram as that is with single characters:

    P(c | a, b) = (n(a, b, c) + k P2(c | b)) / (n(a, b) + k).
    """

    bigram: Bigram
    triples: Counter[tuple[int, int, int]]
    contexts: Counter[tuple[int, int]]  # how often two characters have a third behind them
    strength: float

    @classmethod
    def count(cls, ids: Ids, bigram: Bigram, strength: float) -> "Trigram":
        first = ids.tolist()
        triples = Counter(zip(first[:-2], first[1:-1], first[2:], strict=True))
        contexts = Counter(pairwise(first[:-1]))
        return cls(bigram, triples, contexts, strength)

    def nats(self, ids: Ids) -> NDArray[np.float64]:
        """-log P of ids[2:]. (N,) -> (N-2,)."""
        places = ids.tolist()
        threes = [*zip(places[:-2], places[1:-1], places[2:], strict=True)]
        counted = np.array([self.triples[three] for three in threes], dtype=np.float64)
        contexts = np.array([self.contexts[three[:2]] for three in threes], dtype=np.float64)
        prior = np.exp(-self.bigram.nats(ids)[1:])  # (N-1,) -> (N-2,)
        nats: NDArray[np.float64] = -np.log(
            (counted + self.strength * prior) / (contexts + self.strength)
        )
        return nats


def fit_trigram(ids: Ids, bigram: Bigram, slice_share: float = 0.05) -> Trigram:
    """The trigram of these characters, k chosen among `STRENGTHS` on their last `slice_share`, as `fit_bigram`
    does it."""
    cut = len(ids) - max(3, int(len(ids) * slice_share))
    if cut < 3:
        raise ValueError(
            f"{len(ids)} characters are too few for a trigram and a slice to choose on"
        )
    pairs = Bigram.count(ids[:cut].astype(np.uint32), len(bigram.contexts), bigram.strength)

    def mean(strength: float) -> float:
        return float(Trigram.count(ids[:cut], pairs, strength).nats(ids[cut:]).mean())

    return Trigram.count(ids, bigram, min(STRENGTHS, key=mean))


@dataclass(frozen=True)
class Counted:
    """Bits a byte of a blind guess, and of the counts of single characters, of pairs and of threes.

    `strength` is the k with which the pairs are mixed with the single characters (see
    `gptviz.training.baselines`): a pair that the text never had would cost infinitely much. `characters` is
    how many there are to choose from.
    """

    characters: int
    blind: float
    unigram: float
    bigram: float
    trigram: float
    strength: float


def counted(text: str) -> Counted:
    """The counts of a text on the held-out one. Raises ValueError for a text of fewer than 6 characters."""
    tokenizer = tokenizer_for(text)
    ids = np.array(tokenizer.encode(text))
    size = len(tokenizer.vocabulary)
    bigram = fit_bigram(ids.astype(np.uint32), size)
    test = held_out(tokenizer, 1)

    def bits(predict: Callable[[Ids], NDArray[np.floating]]) -> float:
        return bits_a_byte(map(predict, test))

    blind = bits(lambda ids: np.full(len(ids) - 1, math.log(size)))
    single = bits(Unigram.count(ids, size).nats)
    pairs = bits(bigram.nats)
    threes = bits_a_byte(map(fit_trigram(ids, bigram).nats, held_out(tokenizer, 2)))
    return Counted(size, blind, single, pairs, threes, bigram.strength)


def mlp_bits(model: MLP, tokenizer: CharacterTokenizer) -> float:
    """A small MLP on the held-out text; `tokenizer` is that of `tokenizer_for`."""
    return bits_a_byte(map(model.nats, held_out(tokenizer, model.context)))


def windows(passage: Sequence[int], context: int) -> list[tuple[int, ...]]:
    """A passage's ids for a model that reads `context` of them: each but the first is predicted once.

    The last id of a window is the first of the next, which gives it something to begin with.
    """
    if context < 2:
        raise ValueError(
            f"context is {context}; to predict a token another one must stand before it"
        )
    return [
        tuple(passage[i : i + context]) for i in range(0, max(len(passage) - 1, 1), context - 1)
    ]


@dataclass
class Fit:
    """The training of an MLP, which can be paused; several threads may continue the same one.

    `own` and `held_out` are its losses at `steps`: bits per byte of its own text, and of the held-out one.
    """

    text: str
    recipe: Recipe
    steps: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokenizer = tokenizer_for(self.text)
        self._ids = np.array(self.tokenizer.encode(START * self.recipe.context + self.text))
        self._states = train(self._ids, len(self.tokenizer.vocabulary), self.recipe)
        self._lock = threading.Lock()
        self.model: MLP = next(self._states).model
        self._measure(0)

    @property
    def step(self) -> int:
        return self.steps[-1]

    @property
    def done(self) -> bool:
        return self.step >= self.recipe.steps

    def go_on(self, steps: int) -> None:
        """Train `steps` more steps, or to the end; then measure both texts."""
        with self._lock:
            for _ in range(min(steps, self.recipe.steps - self.step)):
                state = next(self._states)
            if not self.done:
                self.model = state.model
                self._measure(state.step)

    def _measure(self, step: int) -> None:
        nats = float(self.model.nats(self._ids).sum(dtype=np.float64))
        self.own.append(nats / math.log(2) / len(self.text.encode()))
        self.held_out.append(mlp_bits(self.model, self.tokenizer))
        self.steps.append(step)


@dataclass(frozen=True)
class Reading:
    """The held-out text in a GPT's windows of ids, and how many bytes their predicted tokens have."""

    windows: tuple[tuple[int, ...], ...]
    bytes: int


@undisturbed
def bits_per_byte(lm: LanguageModel, read: Reading, progress: Progress = ignore_progress) -> float:
    """The loss of a GPT on the held-out text, in bits per byte."""
    nats = 0.0
    for number, window in enumerate(read.windows, 1):
        nats += float(losses(lm, lm.trace(window, keep=["final"]))["nats"].sum())
        progress(number, len(read.windows))
    return nats / math.log(2) / read.bytes


def reading(lm: LanguageModel) -> Reading | None:
    """The held-out text as a GPT reads it; None if it lacks a token of it, or has a context below 2.

    A passage begins after the special token that the model's tokenizer puts before every text, or else after
    its end-of-text token; where it has neither, the passage's first token is not predicted.
    """
    if lm.config.context_length < 2:
        return None
    passage_windows: list[tuple[int, ...]] = []
    paid_bytes = held_out_bytes()
    for passage in passages():
        ids = lm.encode(passage.text)
        if max(ids) >= lm.config.vocab_size:
            return None
        starts = begins_of(lm.tokenizer)  # `encode` has put them there
        if not starts and END_OF_TEXT in lm.tokenizer.special_tokens_set:
            starts = (lm.tokenizer.encode_single_token(END_OF_TEXT),)
            ids = [*starts, *ids]
        if not starts:
            paid_bytes -= len(token_bytes(lm.tokenizer, ids[0]))
        passage_windows += windows(ids, lm.config.context_length)
    return Reading(tuple(passage_windows), paid_bytes)
