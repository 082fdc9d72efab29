"""`distribution` against transformers' own logits processors, its limits, and its identities."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings, strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from gptviz.engine.sampling import Sampling, distribution, draw, nucleus_size

SETTINGS = settings(deadline=None, max_examples=150)
rows = st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40).map(torch.tensor)
temperatures = st.floats(0.01, 50)
ks = st.none() | st.integers(1, 60)
ps = st.none() | st.floats(0, 1, exclude_min=True)


@SETTINGS
@given(rows, st.just(0.0) | st.floats(5e-324, 1e300), ks, ps)
def test_it_is_a_distribution_in_which_a_larger_logit_never_gets_less(
    logits, temperature, top_k, top_p
):
    d = distribution(logits, Sampling(temperature, top_k, top_p))
    assert d.probabilities.shape == d.scaled.shape == d.kept.shape == logits.shape
    assert abs(d.probabilities.sum().item() - 1) < 1e-12
    assert (d.probabilities >= 0).all()
    assert (d.probabilities[~d.kept] == 0).all()
    assert (d.in_top_k | ~d.kept).all(), "what was kept is among the top k"
    assert d.kept.sum() >= 1
    order = torch.sort(logits, descending=True, stable=True).indices
    assert (d.probabilities[order].diff() <= 1e-15).all()
    assert (d.kept[order].int().diff() <= 0).all()


@SETTINGS
@given(st.integers(0, 2**31), st.integers(2, 300), temperatures, ks, ps)
def test_it_is_what_transformers_does(seed, size, temperature, top_k, top_p):
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 3
    assume(len(logits.unique()) == size)  # transformers keeps every token that ties with the k-th
    scores = TemperatureLogitsWarper(temperature)(None, logits.double()[None])
    if top_k is not None:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None and top_p < 1:
        masses = scores.softmax(-1).sort(descending=True).values.cumsum(-1)
        # where rounding decides, either answer is right
        assume((masses - top_p).abs().min() > 1e-9)
        scores = TopPLogitsWarper(top_p)(None, scores)
    d = distribution(logits, Sampling(temperature, top_k, top_p))
    assert torch.equal(d.kept, torch.isfinite(scores[0]))
    assert torch.allclose(d.probabilities, scores[0].softmax(-1), atol=1e-12, rtol=1e-9)
    assert torch.equal(d.scaled, logits.double() / temperature)


@SETTINGS
@given(rows)
def test_the_limits_of_the_temperature(logits):
    plain = distribution(logits)
    assert torch.allclose(plain.probabilities, logits.double().softmax(0), atol=1e-12)
    greedy = distribution(logits, Sampling(temperature=0))
    assert greedy.probabilities[(logits == logits.max()).nonzero()[0, 0]] == 1
    assert torch.equal(greedy.scaled, logits.double())
    cold = distribution(logits, Sampling(temperature=1e-300))  # mass only where nothing is larger
    assert (cold.probabilities[logits < logits.max()] == 0).all()
    hot = distribution(logits, Sampling(temperature=1e300))
    assert torch.allclose(hot.probabilities, torch.full_like(hot.probabilities, 1 / len(logits)))


@SETTINGS
@given(rows, ks, ps)
def test_the_nucleus_is_the_smallest_that_reaches_p(logits, top_k, top_p):
    assume(top_p is not None and top_p < 1)
    wide = distribution(logits, Sampling(1.0, top_k))
    kept = distribution(logits, Sampling(1.0, top_k, top_p)).kept
    mass = wide.probabilities[kept].sum().item()
    assert mass >= top_p - 1e-12
    smallest = wide.probabilities[kept].min().item()
    assert kept.sum() == 1 or mass - smallest < top_p + 1e-12


def test_of_equal_logits_the_lowest_ids_are_kept():
    logits = torch.tensor([1.0, 2.0, 1.0, 2.0, 1.0, 1.0])
    assert distribution(logits, Sampling(top_k=3)).kept.tolist() == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    assert distribution(logits, Sampling(top_k=3)).in_top_k.sum() == 3
    assert distribution(torch.zeros(5), Sampling(top_p=0.5)).kept.tolist() == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert distribution(logits, Sampling(temperature=0)).probabilities.tolist() == [
        0,
        1,
        0,
        0,
        0,
        0,
    ]


def test_top_p_of_one_keeps_a_tail_too_small_to_add_up():
    logits = torch.tensor([0.0, -80.0, -200.0])
    assert distribution(logits, Sampling(top_p=1.0)).kept.all()
    assert nucleus_size(torch.tensor([1.0, 0.0]), 0.5) == 1


def test_a_kept_token_keeps_its_tiny_probability():
    d = distribution(torch.tensor([0.0, -20.0]), Sampling(temperature=0.05))
    assert d.probabilities[1].item() == pytest.approx(math.exp(-400))


@SETTINGS
@given(rows, temperatures, ks, ps, st.floats(0, 1, exclude_max=True))
def test_a_point_draws_the_token_it_falls_on(logits, temperature, top_k, top_p, point):
    """By hand, a token after the other in falling order of probability, as somebody would redraw it."""
    chances = distribution(logits, Sampling(temperature, top_k, top_p))
    drawn = draw(chances, point)
    so_far = 0.0
    assert chances.kept[drawn] and chances.probabilities[drawn] > 0
    for place, i in enumerate(chances.order.tolist()):
        left = so_far
        so_far = so_far + chances.probabilities[i].item()
        assume(abs(point - so_far) > 1e-12)  # where rounding decides, either answer is right
        if point < so_far:
            assert (drawn, int(chances.rank[drawn])) == (i, place) and left <= point
            return
    raise AssertionError("the bar ended before the point")


def test_the_point_on_a_border_belongs_to_the_next_token():
    chances = distribution(torch.tensor([-torch.inf, 0.0, 0.0, 0.0, 0.0]))  # four quarters, exactly
    points = [0.0, 0.25 - 2**-53, 0.25, 0.5, 0.75, 1 - 2**-53]
    assert [draw(chances, point) for point in points] == [1, 1, 2, 3, 4, 4]
    assert draw(distribution(torch.tensor([1.0, 3.0]), Sampling(temperature=0)), 1 - 2**-53) == 1


def test_the_draws_of_a_seed_are_told_by_their_number():
    before = torch.get_rng_state()
    sampling = Sampling(seed=7)
    points = sampling.points(100)
    assert points[:3] == sampling.points(3) and len(set(points)) == 100
    assert all(0 <= point < 1 for point in points)
    assert list(itertools.islice(sampling.stream(), 100)) == points
    assert list(itertools.islice(sampling.stream(skip=40), 60)) == points[40:]
    assert points != Sampling(seed=8).points(100)
    assert Sampling(seed=None).points(3) != Sampling().points(3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(1, None, 1.0, seed=3),
        Sampling(0.9),
        Sampling(top_k=3),
        Sampling(top_p=0.5),
    ],
)
def test_sampling_that_changes_nothing_gives_the_softmax(sampling):
    logits = torch.randn(50, generator=torch.Generator().manual_seed(0)) * 5
    plain = logits.double().softmax(0)
    same = torch.allclose(distribution(logits, sampling).probabilities, plain, atol=1e-12)
    assert sampling.changes_nothing == same


def test_equal_settings_are_one_key():
    settings = [
        Sampling(0.5, k, 0.9, seed) for k in (3, 3.0, np.int64(3)) for seed in (1, np.int64(1))
    ]
    assert len(set(settings)) == 1 and type(settings[-1].top_k) is type(settings[-1].seed) is int
