"""What the calculation starts from, and what the visitor has changed in it: "n4,x12_0.9,q001_-1,t0_moon".

`n4`: four words. `x12_0.9`: number 2 of word 1's vector. `q001_-1`: head 0's W_query, row 0, column 1;
`k`, `v` likewise. `t0_moon`: word 0. What cannot be read in an address is ignored.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from gptviz.lessons.attention import HeadWeights, Matrix
from gptviz.lessons.sentences import D_IN, Sentence

MOST_WORDS = 8  # that a projector can still show with all their numbers
LARGEST = 100.0  # of a number, above and below 0: beyond that softmax only ever says 0 and 1
LONGEST_WORD = 12

_NUMBER = re.compile(r"((?:x|[qkv][01])\d\d)_([-+.\de]{1,12})")
_WORD = re.compile(r"(t\d)_(.{1,120})")
_COUNT = re.compile(r"n(\d)")

# What is not as the example has it, by its place: {"n": 4, "x12": 0.9, "q001": -1.0, "t0": "moon"}
Changes = dict[str, float | str]


@dataclass(frozen=True)
class Given:
    """The words, and every matrix by its name in an address: "x" (T, 3), "q0" (3, 2), ..."""

    words: tuple[str, ...]
    matrices: dict[str, list[list[float]]]

    @property
    def x(self) -> Matrix:
        """The words' vectors, (T, 3)."""
        return tuple(map(tuple, self.matrices["x"]))

    @property
    def heads(self) -> tuple[tuple[Matrix, ...], ...]:
        """W_query, W_key and W_value of each head, (3, 2)."""
        count = (len(self.matrices) - 1) // 3
        return tuple(
            tuple(tuple(map(tuple, self.matrices[f"{letter}{head}"])) for letter in "qkv")
            for head in range(count)
        )


def read(text: str) -> Changes:
    """Return the changes of an address."""
    changes: Changes = {}
    for part in text.split(","):
        if match := _COUNT.fullmatch(part):
            changes["n"] = min(max(1, int(match[1])), MOST_WORDS)
        elif match := _NUMBER.fullmatch(part):
            value = number(match[2])
            changes |= {} if value is None else {match[1]: value}
        elif match := _WORD.fullmatch(part):
            changes[match[1]] = word(unquote(match[2]))
    return changes


def written(changes: Changes) -> str:
    """Return the text that `read` reads back."""

    def entry(place: str, value: float | str) -> str:
        if isinstance(value, str):
            text = quote(value, safe="")
        else:
            text = f"{value:g}"
        if place == "n":
            return f"n{text}"
        return f"{place}_{text}"

    return ",".join(
        entry(*change) for change in sorted(changes.items(), key=lambda change: change[0])
    )


def number(text: str) -> float | None:
    """The typed number, to six digits and decimals; None if it is no number or beyond `LARGEST`.

    >>> [number(text) for text in ("0,5", "−2", "nan", "1e9", "red")]
    [0.5, -2.0, None, None, None]
    """
    try:
        typed = float(text.strip().replace(",", ".").replace("−", "-"))
        value = round(float(f"{typed:.6g}"), 6)
    except ValueError:
        return None
    if math.isfinite(value) and abs(value) <= LARGEST:
        return value
    return None


def word(text: str) -> str:
    """A word as it is shown: one line, not too long; "?" if nothing is left."""
    seen = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(seen.split())[:LONGEST_WORD].strip() or "?"


def apply(changes: Changes, sentence: Sentence, heads: Sequence[HeadWeights]) -> Given:
    """The example with these changes; words beyond its own start as "?" with zeros."""
    count = int(changes.get("n", len(sentence.words)))
    words = [*sentence.words, *["?"] * count][:count]
    matrices = {"x": [*map(list, sentence.vectors), *([0.0] * D_IN for _ in range(count))][:count]}
    for i, head in enumerate(heads):
        for letter, matrix in zip("qkv", (head.query, head.key, head.value), strict=True):
            matrices[f"{letter}{i}"] = matrix.tolist()
    for place, value in changes.items():
        if place[0] == "t" and int(place[1]) < count:
            words[int(place[1])] = str(value)
        if place[0] not in "nt" and is_there(matrices, place):
            matrices[place[:-2]][int(place[-2])][int(place[-1])] = float(value)
    return Given(tuple(words), matrices)


def is_there(matrices: dict[str, list[list[float]]], place: str) -> bool:
    """True if these matrices have `place`: a matrix's name, the row's digit, the column's digit."""
    name = place[:-2]
    row, column = map(int, place[-2:])
    return name in matrices and row < len(matrices[name]) and column < len(matrices[name][0])
