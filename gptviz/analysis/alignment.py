"""Two texts side by side, token by token, and which tokens the shorter one lacks; one text as two tokenizers
cut it.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from gptviz.engine.loaded import Loaded
from gptviz.tokenizer import named_bytes

# a word or signs, with the blanks before it; every byte of a letter beyond ASCII counts as one of a word
_WORD = re.compile(rb"\s*(?:[\w\x80-\xff]+|[^\w\s\x80-\xff]+)")


@dataclass(frozen=True)
class Missing:
    """A token of the longer text at `position` there, to be put before the shorter text's token `before`.

    `before` is the shorter text's length where it goes to the end.
    """

    position: int
    before: int


def missing(shorter: Sequence[int], longer: Sequence[int]) -> list[Missing]:
    """The longer text's tokens that the shorter one lacks, chosen so that most tokens then agree.

    As many as the lengths differ, in order; none if both are equally long. Of several choices with as many
    equal tokens, the one whose added tokens stand first. ValueError if `shorter` is the longer one.
    """
    n = len(shorter)
    extra = len(longer) - len(shorter)
    if extra < 0:
        raise ValueError(
            f"the first text has {n} tokens, the second {len(longer)}: give the shorter first"
        )
    a = np.asarray(shorter)
    b = np.asarray(longer)
    # best[i, k]: equal tokens at most, of the first i of the shorter and the first i + k of the longer
    best = np.zeros((n + 1, extra + 1), dtype=np.int64)
    for i in range(1, n + 1):
        equal = b[i - 1 : i + extra] == a[i - 1]  # (extra + 1,)
        best[i] = np.maximum.accumulate(best[i - 1] + equal)
    missing_tokens = []
    i = n
    k = extra
    while k:
        if i and best[i - 1, k] + (a[i - 1] == b[i + k - 1]) == best[i, k]:
            i -= 1
        else:
            k -= 1
            missing_tokens.append(Missing(i + k, i))
    return missing_tokens[::-1]


def differing(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """The positions at which two texts of equal length have different tokens."""
    return [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def are_in_step(lm: Loaded, one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two texts, as token ids, can be compared position by position.

    They have as many tokens and as many words, and each word begins in the token of the same position. One word
    of two tokens and one of one, and further on the other way round, make as many tokens that are not in step.
    """
    if len(one) != len(other):
        return False
    places = [
        _places_of_words([named_bytes(lm.tokenizer, token) for token in ids])
        for ids in (one, other)
    ]
    return places[0] == places[1]


def _places_of_words(tokens: Sequence[bytes]) -> list[int]:
    """The position of the token that each word begins in, its blank included."""
    ends = [*accumulate(map(len, tokens))]
    return [bisect_right(ends, word.start()) for word in _WORD.finditer(b"".join(tokens))]


def filled(shorter: Sequence[int], longer: Sequence[int]) -> list[int]:
    """The shorter text with the tokens that it lacks: as long as the other."""
    ids = list(shorter)
    for lacking in reversed(missing(shorter, longer)):
        ids.insert(lacking.before, longer[lacking.position])
    return ids


def side_by_side(one: Sequence[int], other: Sequence[int]) -> list[tuple[int | None, int | None]]:
    """Positions of both texts, one pair per column; None where a text lacks the other's token."""
    if len(one) > len(other):
        return [(b, a) for a, b in side_by_side(other, one)]
    gaps = {lacking.position for lacking in missing(one, other)}
    shorter_positions = iter(range(len(one)))  # its positions, one after the other
    return [
        (None if position in gaps else next(shorter_positions), position)
        for position in range(len(other))
    ]


# ---- one text, two tokenizers ----


@dataclass(frozen=True)
class Difference:
    """A stretch of the text that two tokenizers cut differently: positions from `start` to before `end`."""

    before: range
    after: range


def differences(before: Sequence[bytes], after: Sequence[bytes]) -> list[Difference]:
    """The shortest stretches, from one cut that both make to the next, in which the tokens differ.

    `before` and `after` are the tokens' bytes. Where one list ends earlier (it was cut at a context), only
    what both cover is compared. Raises ValueError if that is not the same text.
    """
    ends = [0, *accumulate(map(len, before))], [0, *accumulate(map(len, after))]
    covered = min(ends[0][-1], ends[1][-1])
    if b"".join(before)[:covered] != b"".join(after)[:covered]:
        raise ValueError("the two lists of tokens are not of the same text")
    common = sorted(set(ends[0]) & set(ends[1]))
    stretches = []
    for start, end in pairwise(common):
        pieces = [range(cuts.index(start), cuts.index(end)) for cuts in ends]
        if len(pieces[0]) > 1 or len(pieces[1]) > 1:
            stretches.append(Difference(*pieces))
    return stretches


def same_place(before: Sequence[bytes], after: Sequence[bytes], position: int) -> int:
    """The token of `after` that holds the last byte of `before`'s token at `position`; else its last one."""
    last_byte = sum(map(len, before[: position + 1])) - 1
    ends = [*accumulate(map(len, after))]
    return min(bisect_right(ends, last_byte), len(after) - 1)
