"""The square root of d: the slides' printed numbers, the formula, and autograd."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.lessons import scaling as lesson


def test_the_softmax_that_the_slide_prints():
    """../shared/seeds/003: as they are, and times 10."""
    assert str(lesson.sharpened(1)) == "tensor([0.1997, 0.1479, 0.1338, 0.2207, 0.2979])"
    assert (
        str(lesson.sharpened(10))
        == "tensor([1.7128e-02, 8.5274e-04, 3.1371e-04, 4.6558e-02, 9.3515e-01])"
    )


def test_the_variance_that_a_seed_prints_is_divided_by_d():
    d, raw, scaled = lesson.PRINTED
    assert raw / d == pytest.approx(scaled, rel=1e-6)


def test_the_variance_of_a_dot_product_is_d():
    table = lesson.by_size().set_index("d")
    for d in lesson.SIZES:
        # of 4,096 scores, 8 for each of 512 queries: within a tenth, as it should be at that number
        assert table.loc[d, "variance"] == pytest.approx(d, rel=0.15)
        assert table.loc[d, "variance_scaled"] == pytest.approx(table.loc[d, "variance"] / d)


def test_without_the_division_softmax_hardens_and_its_gradient_goes():
    table = lesson.by_size().set_index("d")
    assert table["largest"].is_monotonic_increasing and table.loc[1024, "largest"] > 0.95
    entropy = torch.distributions.Categorical(
        logits=torch.from_numpy(lesson.scores()[16])
    ).entropy()
    assert table.loc[16, "keys"] == pytest.approx(entropy.exp().mean().item())
    assert table["keys"].is_monotonic_decreasing and table["gradient"].is_monotonic_decreasing
    assert table.loc[1024, "gradient"] < 0.15 < 0.6 < table.loc[1024, "gradient_scaled"]
    assert np.ptp(table["largest_scaled"]) < 0.1  # the same whatever d is
    assert table.loc[1, "largest"] == table.loc[1, "largest_scaled"]


@given(st.lists(st.floats(-12, 12), min_size=2, max_size=7))
def test_the_gradient_left_is_that_of_autograds_jacobian(row):
    scores = torch.tensor(row, dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=-1), scores)
    left = lesson.gradient_left(torch.softmax(scores, -1).numpy())
    assert left == pytest.approx(expected.trace().item() / (1 - 1 / len(row)), abs=1e-9)
    assert -1e-12 <= left <= 1 + 1e-12


def test_two_equal_keys_have_all_the_gradient_and_one_key_has_none():
    assert lesson.gradient_left(np.full(5, 0.2)) == pytest.approx(1)
    assert lesson.gradient_left(np.array([1.0, 0.0, 0.0])) == 0
    with pytest.raises(ValueError, match="one key"):
        lesson.gradient_left(np.ones(1))


def test_a_models_heads_with_and_without_the_division(mini):
    trace = mini.trace("Seven green parrots sang behind the old mill", keep=["q", "k", "attn"])
    table = lesson.undivided(trace["q", 2], trace["k", 2])
    attn = trace["attn", 2]
    assert np.allclose(table["largest_scaled"], attn[:, 1:].max(-1).values.mean(-1), atol=1e-5)
    assert np.allclose(table["variance_scaled"], table["variance"] / 32)
    q = trace["q", 2][3]
    k = trace["k", 2][3]
    seen = torch.tril(torch.ones(attn.shape[1:])).bool()
    hard = torch.softmax((q @ k.T).masked_fill(~seen, -math.inf), -1)
    assert table["largest"][3] == pytest.approx(hard[1:].max(-1).values.mean().item(), abs=1e-4)
    assert (table["largest"] > table["largest_scaled"]).all()
    assert lesson.undivided(trace["q", 2][:, :1], trace["k", 2][:, :1])["largest"].isna().all()
