"""Where two tokenizers cut the same text differently."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise


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
    found = []
    for start, end in pairwise(common):
        pieces = [range(cuts.index(start), cuts.index(end)) for cuts in ends]
        if len(pieces[0]) > 1 or len(pieces[1]) > 1:
            found.append(Difference(*pieces))
    return found


def same_place(before: Sequence[bytes], after: Sequence[bytes], position: int) -> int:
    """The token of `after` that holds the last byte of `before`'s token at `position`; else its last one."""
    last_byte = sum(map(len, before[: position + 1])) - 1
    for index, end in enumerate(accumulate(map(len, after))):
        if last_byte < end:
            return index
    return len(after) - 1
