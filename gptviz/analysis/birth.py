"""When an induction head appeared, by the scores of the heads at each point of a training.

Shapes: n points, L blocks, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# an induction score from which on a head is one: half of its attention goes where it should
THERE = 0.5
NOT_YET = 0.1  # and below which there is none


@dataclass(frozen=True)
class Head:
    """A head, and a score of it at one point."""

    block: int
    head: int
    score: float


@dataclass(frozen=True)
class Birth:
    """The birth of an induction head, between two points: `before`, the last without one, and `there`.

    `head` is the one with the highest score at `there`. `previous` is the head of an earlier block that looks
    most at the previous token at that point, None if no block is earlier; `rise` is how far its score has
    risen since the first point.
    """

    before: int
    there: int
    head: Head
    previous: Head | None
    rise: float


def birth(induction: NDArray[np.floating], previous: NDArray[np.floating]) -> Birth | None:
    """Find the birth of an induction head in scores (n, L, H), in order of the steps; None if none appeared.

    None also if a head is there at the first point: it was not born in this training.
    """
    best = induction.max(axis=(1, 2), initial=0.0)  # (n,)
    points = np.flatnonzero(best >= THERE)
    if not len(points) or points[0] == 0:
        return None
    point = int(points[0])
    earlier = np.flatnonzero(best[:point] < NOT_YET)
    head = best_head(induction[point])
    previous_scores = previous[point, : head.block]  # (earlier blocks, H)
    previous_head = None
    if previous_scores.size:
        previous_head = best_head(previous_scores)
    if previous_head is None:
        rise = 0.0
    else:
        rise = previous_head.score - float(previous[0, previous_head.block, previous_head.head])
    return Birth(int(earlier[-1]) if len(earlier) else 0, point, head, previous_head, rise)


def best_head(scores: NDArray[np.floating] | Sequence[Sequence[float]]) -> Head:
    """The head with the highest of (L, H) scores."""
    values = np.asarray(scores)
    block, head = np.unravel_index(int(values.argmax()), values.shape)
    return Head(int(block), int(head), float(values[block, head]))
