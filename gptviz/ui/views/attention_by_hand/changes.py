"""What somebody has changed of an example, as a short text for the address: "n4,x12_0.9,q001_-1,t0_moon".

`n4`: four words. `x12_0.9`: number 2 of word 1's vector. `q001_-1`: head 0's W_query, row 0, column 1;
`k`, `v` likewise. `t0_moon`: word 0. What makes no sense in an address is as if it were not there.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

import torch

from gptviz.lessons.attention import HeadWeights
from gptviz.lessons.sentences import D_IN, Sentence

MOST_WORDS = 8  # that a projector can still show with all their numbers
LARGEST = 100.0  # of a number, above and below 0: beyond that softmax only ever says 0 and 1
LONGEST_WORD = 12

_NUMBER = re.compile(r"(x|[qkv][01])(\d)(\d)_([-+.\de]{1,12})")
_WORD = re.compile(r"t(\d)_(.{1,120})")
_COUNT = re.compile(r"n(\d)")

Place = tuple[str, int, int]  # a matrix ("x", "q0", "k0", "v0", "q1", ...), its row and its column


@dataclass(frozen=True)
class Changes:
    """What is not as the example has it. `count` is the number of words, None for the example's own."""

    count: int | None = None
    numbers: dict[Place, float] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """What the calculation starts from: words, their vectors (T, 3), float64, and each head's matrices."""

    words: tuple[str, ...]
    x: torch.Tensor
    heads: tuple[HeadWeights, ...]

    @property
    def matrices(self) -> dict[str, torch.Tensor]:
        """The matrices that may be changed, by the names that `Place` has for them."""
        found = {"x": self.x}
        for number, head in enumerate(self.heads):
            found |= {f"q{number}": head.query, f"k{number}": head.key, f"v{number}": head.value}
        return found


def read(text: str) -> Changes:
    """The changes of an address."""
    count, numbers, words = None, {}, {}
    for part in text.split(","):
        if found := _COUNT.fullmatch(part):
            count = min(max(1, int(found[1])), MOST_WORDS)
        elif found := _NUMBER.fullmatch(part):
            value = number(found[4])
            if value is not None:
                numbers[found[1], int(found[2]), int(found[3])] = value
        elif found := _WORD.fullmatch(part):
            words[int(found[1])] = word(unquote(found[2]))
    return Changes(count, numbers, words)


def written(changes: Changes) -> str:
    """The text that `read` reads back."""
    parts = [] if changes.count is None else [f"n{changes.count}"]
    parts += [
        f"{name}{row}{column}_{value:g}" for (name, row, column), value in sorted(changes.numbers.items())
    ]
    parts += [f"t{row}_{quote(text, safe='')}" for row, text in sorted(changes.words.items())]
    return ",".join(parts)


def number(text: str) -> float | None:
    """What was typed, to six digits and six decimals; None where it is no number, or beyond `LARGEST`.

    >>> [number(text) for text in ("0,5", "−2", "nan", "1e9", "red")]
    [0.5, -2.0, None, None, None]
    """
    try:
        typed = float(text.strip().replace(",", ".").replace("−", "-"))
        value = round(float(f"{typed:.6g}"), 6)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= LARGEST else None


def word(text: str) -> str:
    """A word as it stands at its row: one line, not too long; "?" where nothing is left."""
    seen = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(seen.split())[:LONGEST_WORD].strip() or "?"


def apply(changes: Changes, sentence: Sentence, heads: Sequence[HeadWeights]) -> Given:
    """The example with these changes; a word more than it has starts as "?" with zeros."""
    count = changes.count or len(sentence.words)
    words = [*sentence.words, *["?"] * count][:count]
    rows = [*sentence.vectors, *[(0.0,) * D_IN] * count][:count]
    for row, text in changes.words.items():
        if row < count:
            words[row] = text
    own = [[getattr(head, name).double().clone() for name in ("query", "key", "value")] for head in heads]
    x = torch.tensor(rows, dtype=torch.float64)
    found = Given(tuple(words), x, tuple(HeadWeights(*matrices) for matrices in own))
    matrices = found.matrices
    for (name, row, column), value in changes.numbers.items():
        matrix = matrices.get(name)
        if matrix is not None and row < matrix.shape[0] and column < matrix.shape[1]:
            matrix[row, column] = value
    return found


def with_number(changes: Changes, place: Place, value: float) -> Changes:
    """One number changed."""
    return replace(changes, numbers=changes.numbers | {place: value})


def with_word(changes: Changes, row: int, text: str) -> Changes:
    """One word changed."""
    return replace(changes, words=changes.words | {row: word(text)})


def with_count(changes: Changes, count: int) -> Changes:
    """So many words; what was changed of those that go is forgotten."""
    count = min(max(1, count), MOST_WORDS)
    return Changes(
        count,
        {place: value for place, value in changes.numbers.items() if place[0] != "x" or place[1] < count},
        {row: text for row, text in changes.words.items() if row < count},
    )
