"""When an induction head came: by hand, on small scores."""

import numpy as np
import pytest

from gptviz.analysis.birth import best_head, birth

#                    step 0, 1, 2, 3: two blocks of two heads
INDUCTION = np.array(
    [[[0.05, 0.04], [0.05, 0.06]]] * 2 + [[[0.05, 0.05], [0.3, 0.1]], [[0.1, 0.1], [0.4, 0.6]]]
)
PREVIOUS = np.array(
    [[[0.06, 0.05], [0.9, 0.05]], [[0.1, 0.2], [0.9, 0.0]], [[0.1, 0.4], [0.9, 0.0]]] * 2
)[:4]


def test_it_came_between_the_last_point_without_and_the_first_with():
    found = birth(INDUCTION, PREVIOUS)
    assert (found.before, found.there) == (1, 3)
    assert (found.head.block, found.head.head, found.head.score) == (1, 1, 0.6)
    # of the earlier block, however much a head of its own block looks back
    assert (found.previous.block, found.previous.head) == (
        0,
        0,
    ) and found.previous.score == PREVIOUS[3, 0, 0]
    assert found.rise == pytest.approx(PREVIOUS[3, 0, 0] - PREVIOUS[0, 0, 0])


def test_none_came():
    assert birth(INDUCTION[:3], PREVIOUS[:3]) is None
    assert birth(INDUCTION[3:], PREVIOUS[3:]) is None  # it was there before
    assert birth(np.zeros((0, 2, 2)), np.zeros((0, 2, 2))) is None


def test_in_the_first_block_nobody_told_it():
    found = birth(INDUCTION[:, ::-1], PREVIOUS)
    assert found.head.block == 0 and found.previous is None and found.rise == 0


def test_the_best_head():
    assert best_head([[0.1, 0.3], [0.2, 0.25]]).score == 0.3
