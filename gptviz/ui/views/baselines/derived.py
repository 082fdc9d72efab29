"""What the Baselines page works out: of a text once, by the text; of a model on the held-out text, by run.

What is learnt of a text's characters knows no model: its key is the text.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.engine.sample import passages
from gptviz.lessons.bigram import Counts, Floats, count, learn, write
from gptviz.lessons.compared import Counted, counted, held_out_bytes, mlp_bits, tokenizer_for, windows
from gptviz.lessons.mlp import MLP, Recipe, train
from gptviz.lessons.mlp import write as write_mlp
from gptviz.tokenizer import END_OF_TEXT, token_bytes
from gptviz.ui.runs import per_run
from gptviz.ui.views.next_token.derived import prompt_surprises

KEPT_STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
SHORTEST, LONGEST = 20, 100_000  # characters of a text to learn from
MOST_CHARACTERS = 300  # different ones: the table has as many rows and columns
SHOWN = 30  # of them in the picture


@dataclass(frozen=True)
class Table:
    """The counts of a text, and the matrix that learns them: all losses, (S + 1,), and some steps' rows."""

    counts: Counts
    losses: Floats
    learnt: dict[int, Floats]  # step -> (V, V) probabilities
    shown: tuple[int, ...]  # the most frequent characters, in the vocabulary's order


@st.cache_resource(max_entries=8, show_spinner=False)
def table(text: str) -> Table:
    """Counted and learnt: a tenth of a second for a chapter."""
    counts = count(text)
    losses, kept = [], {}
    for model in learn(counts, steps=KEPT_STEPS[-1]):
        losses.append(model.loss(counts))
        if model.step in KEPT_STEPS:
            kept[model.step] = model.probabilities
    often = np.argsort(-np.bincount(counts.tokenizer.encode(text)), kind="stable")[:SHOWN]
    return Table(counts, np.array(losses), kept, tuple(sorted(int(i) for i in often)))


@st.cache_resource(max_entries=8, show_spinner=False)
def counted_bits(text: str) -> Counted:
    return counted(text)


# ---- the MLP, which takes a second or two ----


@dataclass
class Fit:
    """A training that can be left and gone on with: every visitor who asks for the same one moves it on."""

    text: str
    recipe: Recipe
    steps: list[int] = field(default_factory=list)
    own: list[float] = field(
        default_factory=list
    )  # bits a byte (of its own text, a character) at these steps
    held_out: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokenizer = tokenizer_for(self.text)
        self._ids = np.array(self.tokenizer.encode("\n" * self.recipe.context + self.text))
        self._states = train(self._ids, len(self.tokenizer.vocabulary), self.recipe)
        self._lock = threading.Lock()
        self.model: MLP = next(self._states).model
        self._bytes = len(self.text.encode())
        self._measure(0)

    @property
    def step(self) -> int:
        return self.steps[-1]

    @property
    def done(self) -> bool:
        return self.step >= self.recipe.steps

    def go_on(self, steps: int) -> None:
        """So many steps more, or to the end; then both texts are measured."""
        with self._lock:
            for _ in range(min(steps, self.recipe.steps - self.step)):
                state = next(self._states)
            if not self.done:
                self.model = state.model
                self._measure(state.step)

    def _measure(self, step: int) -> None:
        nats = float(self.model.nats(self._ids).sum(dtype=np.float64))
        self.own.append(nats / np.log(2) / self._bytes)
        self.held_out.append(mlp_bits(self.model, self.tokenizer))
        self.steps.append(step)


@st.cache_resource(max_entries=16, show_spinner=False)
def fit(text: str, recipe: Recipe) -> Fit:
    """The training of this text with this recipe: begun here, or where somebody has left it."""
    return Fit(text, recipe)


# ---- the chosen model on the held-out text ----


@dataclass(frozen=True)
class Reading:
    """The held-out text in a model's windows, and how many bytes their predicted tokens have."""

    windows: tuple[tuple[int, ...], ...]
    bytes: int


def reading(lm: LanguageModel) -> Reading | None:
    """How the model reads the held-out text; None where it lacks one of its tokens, or can predict none.

    A passage begins after the model's end-of-text token; where it has none, the passage's first token is
    not predicted.
    """
    if lm.config.context_length < 2:
        return None
    found: list[tuple[int, ...]] = []
    paid = held_out_bytes()
    for passage in passages():
        ids = lm.encode(passage.text)
        if max(ids) >= lm.config.vocab_size:
            return None
        if END_OF_TEXT in lm.tokenizer.special_tokens_set:
            ids = [lm.tokenizer.encode_single_token(END_OF_TEXT), *ids]
        else:
            paid -= len(token_bytes(lm.tokenizer, ids[0]))
        found += windows(ids, lm.config.context_length)
    return Reading(tuple(found), paid)


@per_run
def nats(run: Run) -> float:
    """What the tokens of a run cost, all but the first."""
    return float(prompt_surprises(run)["nats"].sum())


def bits_of(parts: Sequence[float], read: Reading) -> float:
    """All the windows' nats, in bits, by the bytes that they are for."""
    return sum(parts) / float(np.log(2)) / read.bytes


# ---- samples ----

SAMPLE = 240  # characters


def samples(found: Table, mlp: Fit, step: int, seed: int) -> list[tuple[str, str]]:
    """What each writes after the text's first character: its name, and the text with that character."""
    first, counts = mlp.text[0], found.counts
    start = counts.tokenizer.encode(first)[0]
    drawn = [
        (name, first + counts.tokenizer.decode(write(rows, start, SAMPLE, seed)))
        for name, rows in (
            ("Counted bigram", counts.probabilities),
            (f"Learnt bigram, after {step} steps", found.learnt[step]),
        )
    ]
    before = mlp.tokenizer.encode("\n" * mlp.recipe.context + first)
    written = mlp.tokenizer.decode(write_mlp(mlp.model, before, SAMPLE, seed))
    return [*drawn, (f"MLP, {mlp.recipe.context} back, after {mlp.step} steps", first + written)]
