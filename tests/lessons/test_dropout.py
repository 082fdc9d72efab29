"""Dropout: the book's two printed examples, and torch's own module."""

import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.lessons import dropout as lesson

# printed in the book's section 3.5.2 after torch.manual_seed(123), p = 0.5
ONES = [
    [2, 2, 0, 2, 2, 0], [0, 0, 0, 2, 0, 2], [2, 2, 2, 2, 0, 2],
    [0, 2, 2, 0, 0, 2], [0, 2, 0, 2, 0, 2], [0, 2, 2, 2, 2, 0],
]  # fmt: skip
JOURNEY = [
    [2.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0.7599, 0.6194, 0.6206, 0, 0, 0],
    [0, 0.4921, 0.4925, 0, 0, 0], [0, 0.3966, 0, 0.3775, 0, 0], [0, 0.3327, 0.3331, 0.3084, 0.3331, 0],
]  # fmt: skip


def test_the_examples_that_the_book_prints():
    found = lesson.drop(lesson.ones(), 0.5, 123)
    assert found.after.tolist() == ONES and (found.gone, found.kept) == (15, 21)
    journey = lesson.drop(lesson.journey(), 0.5, 123)
    assert torch.allclose(journey.after, torch.tensor(JOURNEY), atol=5e-5)
    assert journey.gone + journey.kept == 21  # of the triangle; above it there is nothing to drop


@given(p=st.sampled_from([0.0, 0.1, 0.5, 0.9]), seed=st.integers(0, 10**6), side=st.integers(1, 40))
def test_it_is_torchs_own_dropout_and_draws_from_nobody(p, seed, side):
    weights = torch.softmax(torch.arange(float(side * side)).view(side, side) % 7, -1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        expected = torch.nn.Dropout(p)(weights)
        before = torch.get_rng_state()
        found = lesson.drop(weights, p, seed)
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(found.after, expected)
    assert set(found.mask.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("p", [1.0, -0.1, 2.0])
def test_a_share_that_leaves_nothing_is_refused(p):
    with pytest.raises(ValueError, match="less than 1"):
        lesson.drop(lesson.ones(), p, 0)
