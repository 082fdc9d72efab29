"""The shape of the learning rate, and the choices that are refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.training.recipe import Recipe


def test_rises_holds_and_falls_in_straight_lines():
    recipe = Recipe(steps=1000, warmup=100, decay_share=0.4)
    factor = np.array([recipe.lr_factor(step) for step in range(1000)])
    assert np.allclose(factor[:100], np.arange(1, 101) / 100)
    assert (factor[100:601] == 1).all()
    # the last step still learns a little
    assert np.allclose(factor[600:], np.arange(400, 0, -1) / 400)
    assert recipe.lr_factor(1000) == 0


@given(st.integers(1, 500), st.integers(0, 300), st.floats(0, 1))
def test_is_always_a_share_of_the_peak_and_never_nothing(steps, warmup, decay_share):
    recipe = Recipe(steps=steps, warmup=warmup, decay_share=decay_share)
    factors = [recipe.lr_factor(step) for step in range(steps)]
    assert all(0 < factor <= 1 for factor in factors)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"hidden_optimizer": "sgd"}, "'sgd'; it must be one of muon, adamw"),
        ({"steps": 0}, r"steps is 0 \(1 or more\)"),
        ({"decay_share": 1.5}, r"decay_share 1.5 \(0 to 1\)"),
    ],
)
def test_impossible_choices_are_refused(choice, said):
    with pytest.raises(ValueError, match=said):
        Recipe(**choice)
