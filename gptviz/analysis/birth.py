"""When an induction head came, by the scores of a training's heads at its points.

Shapes: n points, L blocks, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

THERE = 0.5  # an induction score from which on a head is one: half of its attention goes where it should
NOT_YET = 0.1  # and below which there is none


@dataclass(frozen=True)
class Head:
    """A head, and a score of it at one point."""

    block: int
    head: int
    score: float


@dataclass(frozen=True)
class Birth:
    """From the last point without an induction head to the first with one; points are given by their places.

    `head` is the one that has the highest score where it is first there. `previous` is the head of an
    earlier block that looks most at the previous token at that same point, None where no block is earlier;
    `rise` is how far its score was above its own at the beginning.
    """

    before: int
    there: int
    head: Head
    previous: Head | None
    rise: float


def birth(induction: NDArray[np.floating], previous: NDArray[np.floating]) -> Birth | None:
    """From (n, L, H) scores in order of the steps; None while no head has come.

    A head that is there at the first point was not born here: then None, too.
    """
    best = induction.max(axis=(1, 2), initial=0.0)  # (n,)
    found = np.flatnonzero(best >= THERE)
    if not len(found) or found[0] == 0:
        return None
    there = int(found[0])
    earlier = np.flatnonzero(best[:there] < NOT_YET)
    head = best_head(induction[there])
    told = previous[there, : head.block]  # (earlier blocks, H)
    teller = None
    if told.size:
        teller = best_head(told)
    if teller is None:
        rise = 0.0
    else:
        rise = teller.score - float(previous[0, teller.block, teller.head])
    return Birth(int(earlier[-1]) if len(earlier) else 0, there, head, teller, rise)


def best_head(scores: NDArray[np.floating] | Sequence[Sequence[float]]) -> Head:
    """The head with the highest of (L, H) scores."""
    values = np.asarray(scores)
    block, head = np.unravel_index(int(values.argmax()), values.shape)
    return Head(int(block), int(head), float(values[block, head]))
