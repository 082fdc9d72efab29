"""What a watched run learns: its vocabulary of characters, its batches, what it is measured on.

The task "repeats" is random tokens in which a passage of random length repeats. A window begins with `length`
tokens, each drawn evenly from the V of the vocabulary; after them the same passage comes again and again. The
length is drawn evenly from `SHORTEST` to `longest_passage`, so that no position says where to look: with one
fixed length a shortcut by position is learnt instead. How well such tokens can be foreseen at best, `floor`
says.

Olsson et al., In-context Learning and Induction Heads, 2022, for what this brings about in a transformer.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tiktoken
import torch

from gptviz.tokenizer import check_well_formed
from gptviz.tokenizer.vocabulary import fitted, of_characters
from gptviz.training.baselines import fit_bigram
from gptviz.training.datasets import Batches, Ids, TokenWindows, repeat_passage
from gptviz.training.live.config import LiveConfig
from gptviz.training.loop import Steps, validation_windows

CHAPTER = Path(__file__).parents[2] / "assets" / "text" / "alice_chapter_1.txt"

SHORTEST = 4  # tokens of a passage that repeats
# 64 random tokens, as characters, so that an English text can be typed for such a model, too
SYMBOLS = " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.,;:!?'\"-()"

VALIDATION_BATCHES = 2
HELD_OUT = 0.1  # the last part of a text is never trained on
LONGEST_TEXT = 200_000  # characters
MOST_CHARACTERS = 1_000  # different ones
MOST_WINDOWS = 20_000
BIGRAM_WINDOWS = 500  # of random tokens, for a bigram to be counted on

# no run's batches have three
_HELD_OUT_SEED = (0, 0, 1)
_PROBE_SEED = (0, 0, 2)
_BIGRAM_SEED = (0, 0, 3)


@dataclass(frozen=True)
class Probe:
    """A text whose attention is kept at every snapshot. `period`: the number of random tokens that repeat."""

    name: str
    ids: tuple[int, ...]
    period: int | None
    text: str


@dataclass(frozen=True)
class Task:
    """All that a run needs to know of what it learns; the same for the same config and text.

    `prompt` is what samples continue. `floor` is the lowest loss that there is, where it is known.
    """

    config: LiveConfig
    characters: str  # id i is characters[i]
    batches: Steps
    validation: TokenWindows
    probes: tuple[Probe, ...]
    prompt: str
    floor: float | None
    counted: Ids  # training tokens, for the bigram

    @property
    def vocab_size(self) -> int:
        return len(self.characters)

    @property
    def ln_v(self) -> float:
        """The loss of a uniform guess, in nats a token."""
        return math.log(self.vocab_size)

    @cached_property
    def tokenizer(self) -> tiktoken.Encoding:
        table = {character: id for id, character in enumerate(self.characters)}
        return fitted(of_characters(table), "characters", self.vocab_size)

    @cached_property
    def bigram(self) -> float:
        """The loss of the training tokens' bigram on the windows that the model is validated on."""
        model = fit_bigram(self.counted, self.vocab_size)
        windows = validation_windows(self.validation, self.config.batch_size, VALIDATION_BATCHES)
        nats = [model.nats(row.numpy()) for row in windows.flatten(0, 1)]  # (batches * b, T+1)
        return float(np.mean(nats))


def task_for(config: LiveConfig, text: str | None = None) -> Task:
    """The config's task; `text` is for a text of one's own. Raises ValueError for a text that will not do."""
    if config.task == "repeats":
        return _repeats(config)
    if config.task == "chapter":
        return _characters(config, CHAPTER.read_text(encoding="utf-8"))
    return _characters(config, text or "")


# ---- random tokens in which a passage repeats ----


def longest_passage(max_length: int) -> int:
    """Half of a window: then every passage comes at least twice."""
    return max_length // 2


def draw_windows(
    vocab_size: int, max_length: int, count: int, rng: np.random.Generator
) -> torch.Tensor:
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


def _repeats(config: LiveConfig) -> Task:
    V = len(SYMBOLS)
    T = config.context_length
    count = VALIDATION_BATCHES * config.batch_size
    # (count * (T+1),)
    held_out = draw_windows(V, T, count, np.random.default_rng(_HELD_OUT_SEED)).flatten()
    counted = draw_windows(V, T, BIGRAM_WINDOWS, np.random.default_rng(_BIGRAM_SEED)).flatten()
    rng = np.random.default_rng(_PROBE_SEED)
    periods = sorted({max(SHORTEST, T * eighths // 8) for eighths in (1, 2, 3, 4)})
    probes = tuple(_repeated_probe(rng, SYMBOLS, period, T) for period in periods)
    passage = probes[1].text[: periods[1]]
    batches = RepeatedPassages(V, T, config.batch_size, config.seed)
    validation = TokenWindows(held_out.numpy().astype(np.uint16), T, T + 1)
    prompt = (passage + passage)[: periods[1] + 4]
    ids = counted.numpy().astype(np.uint16)
    return Task(config, SYMBOLS, batches, validation, probes, prompt, floor(V, T), ids)


def _repeated_probe(rng: np.random.Generator, characters: str, period: int, length: int) -> Probe:
    """A probe of random tokens, all different if there are enough, so that each has one earlier copy."""
    V = len(characters)
    if period <= V:
        passage = rng.permutation(V)[:period]
    else:
        passage = rng.integers(0, V, period)
    ids = tuple(int(passage[i % period]) for i in range(length))
    return Probe(
        f"{period} random tokens, repeated", ids, period, "".join(characters[i] for i in ids)
    )


# ---- the characters of a text ----


def _characters(config: LiveConfig, text: str) -> Task:
    T = config.context_length
    _check(config, text)
    characters = "".join(sorted(set(text)))
    table = {character: id for id, character in enumerate(characters)}
    ids = np.array([table[character] for character in text], dtype=np.uint16)
    training = ids[: _cut(len(ids), T)]
    held_out = ids[_cut(len(ids), T) :]
    windows = TokenWindows(training, T, max(1, len(training) // MOST_WINDOWS))
    rng = np.random.default_rng(_PROBE_SEED)
    probe_ids = held_out[:T].tolist()
    probe_text = "".join(characters[i] for i in probe_ids)
    periods = sorted({max(SHORTEST, T // 4), T // 2})
    batches = Batches(windows, config.batch_size, config.seed, repeat_share=0.0, shuffle_share=0.0)
    validation = TokenWindows(held_out, T, max(1, len(held_out) // MOST_WINDOWS))
    repeated = [_repeated_probe(rng, characters, period, T) for period in periods]
    probes = (Probe("text it was not trained on", tuple(probe_ids), None, probe_text), *repeated)
    return Task(
        config, characters, batches, validation, probes, probe_text[: T // 4], None, training
    )


def _cut(length: int, max_length: int) -> int:
    """Where the held-out part begins: the last tenth, or the one window that is needed."""
    return length - max(int(length * HELD_OUT), max_length + 1)


def _check(config: LiveConfig, text: str) -> None:
    check_well_formed(text)
    T = config.context_length
    needed = T + config.batch_size + T + 1  # a batch of windows to train on, one to validate on
    if len(text) < needed:
        raise ValueError(
            f"the text has {len(text):,} characters; with a context of {T} and batches of "
            f"{config.batch_size} it takes at least {needed:,}: give more, or choose a smaller context"
        )
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"the text has {len(text):,} characters; give {LONGEST_TEXT:,} of them at most"
        )
    kinds = len(set(text))
    if kinds == 1:
        raise ValueError(f"the text is {text[0]!r} again and again: there is nothing to foresee")
    if kinds > MOST_CHARACTERS:
        raise ValueError(
            f"the text has {kinds:,} different characters; at most {MOST_CHARACTERS:,} are taken: "
            "give a shorter part of it"
        )
