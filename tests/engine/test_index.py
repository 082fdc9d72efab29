"""Whole numbers and words from people: what is taken, and what is said of the rest."""

import numpy as np
import pytest
import torch

from gptviz.engine import index


@pytest.mark.parametrize("given", [2, np.int64(2), torch.tensor(2), -1])
def test_a_place_is_counted_from_0_and_from_the_end(given):
    assert index.index_of("block", given, 3) == 2
    assert (
        index.whole("k", 2, 2)
        == index.check_below("row", 2, 3)
        == index.index_of("step", 2, None)
        == 2
    )
    assert index.check_below("row", 0, 3) == 0


@pytest.mark.parametrize(
    ("function", "given", "rest", "sentence"),
    [
        (index.index_of, 3, [3], "there is no x 3; they go from 0 to 2"),
        (index.index_of, -4, [3], "there is no x -4; they go from 0 to 2"),
        (index.index_of, 1.0, [None], "there is no x 1.0; give a whole number"),
        (index.check_below, 3, [3], "there is no x 3; they go from 0 to 2"),
        (index.check_below, -1, [3], "there is no x -1; they go from 0 to 2"),
        (index.whole, 1, [2], "x is 1; it must be a whole number of 2 or more"),
        (index.whole, True, [0], "x is True; it must be a whole number of 0 or more"),
        (index.one_of, "c", ["ab"], "x is 'c'; it must be one of a, b"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(function, given, rest, sentence):
    with pytest.raises(ValueError) as refused:
        function("x", given, *rest)
    assert str(refused.value) == sentence
