"""The stops of one norm. What the page shows of a real model's: tests/pages/test_layernorm.py."""

import numpy as np
import pytest
import torch

from gptviz.analysis.norms import norm_steps
from gptviz.both import Both
from gptviz.engine.layer_norms import Norm, norms_of
from gptviz.figures.norms import STOPS, axes, norm_stops


def steps_of(values, **norm):
    own = {"eps": 1e-5, "scale": torch.ones(len(values)), "shift": None} | norm
    return norm_steps(Norm("final", None, ("resid_post", 0), **own), np.asarray(values, float))


def test_every_number_is_a_brick_in_its_own_place_at_every_stop(lm):
    x = np.random.default_rng(2).normal(size=32) * 3 + 1
    steps = norm_steps(norms_of(lm.model)[0], x)
    rows = norm_stops(Both(steps), 7)
    for row, stage in zip(rows, STOPS, strict=True):
        values = getattr(steps, stage)
        np.testing.assert_array_equal(row["values"], values)
        counts = np.bincount(row["bins"], minlength=48)
        assert counts.tolist() == np.histogram(values, bins=48)[0].tolist()
        assert row["tallest"] == counts.max() and row["slots"][7] == 0
        for column in range(48):  # no two bricks in one place, and none in the air
            inside = np.sort(row["slots"][row["bins"] == column])
            assert inside.tolist() == list(range(counts[column]))
        assert row["axis"][0] < values.min() and row["axis"][1] > values.max()
        assert row["ghost"] is None
    # sliding and squeezing move no brick past another one
    assert len({tuple(row["bins"]) for row in rows[:3]}) == 1


def test_the_model_before_a_change_stays_as_columns_of_the_same_width():
    found = Both(steps_of([1.0, 2, 3, 6]), steps_of([1.0, 2, 3, 7]))
    rows = norm_stops(found, 3)
    for row, stage in zip(rows, STOPS, strict=True):
        now = getattr(found.now, stage)
        was = getattr(found.was, stage)
        both = np.concatenate([now, was])
        ends = (both.min(), both.max())
        counts, edges = np.histogram(was, bins=48, range=ends)
        assert row["ghost"]["counts"].tolist() == counts.tolist()
        assert row["ghost"]["mark"] == was[3]
        assert (row["low"], row["width"]) == pytest.approx((edges[0], edges[1] - edges[0]))
    assert rows[0]["ghost"]["told"] == "unchanged: mean 3.25, standard deviation 2.28"


def test_what_is_written_are_the_moments_and_a_mean_of_0_but_for_rounding_is_0():
    rows = norm_stops(Both(steps_of([0.1, 0.2, 0.3, 0.9])), 3)
    assert rows[0]["told"] == ["mean 0.375", "standard deviation 0.311"]
    assert [row["told"][0] for row in rows[1:]] == ["mean 0"] * 3
    assert rows[2]["told"][1] == "standard deviation 1.00"
    assert rows[0]["mark"] == "dimension 3: 0.9000"


@pytest.mark.parametrize(
    ("values", "norm", "words"),
    [
        ([1, 2, 4], {}, ["squeezed until", "Every scale is 1: nothing moves."]),
        (
            [0.1, 0.2, 0.4],
            {},
            [
                "stretched until their standard deviation is 1.",
                "Still: mean 0, standard deviation 1.00.",
            ],
        ),
        ([0.02, 0.04, 0.08], {}, ["deviation is 0.992."]),
        ([5, 5, 5], {}, ["differ too little", "Still: mean 0, standard deviation 0."]),
        ([-1, 0, 1], {}, ["It is 0 already"]),
        ([-1, 0, 1.01], {}, ["hardly moves"]),
        (
            [1, 2, 4],
            {"scale": 2 * torch.ones(3)},
            ["as training chose it. Now: mean 0, standard deviation 2.00."],
        ),
        ([1, 2, 4], {"shift": torch.zeros(3)}, ["every shift is 0"]),
        (
            [1, 2, 4],
            {"shift": torch.ones(3)},
            ["plus its shift, as training chose them. Now: mean 1.00 (no longer 0), standard"],
        ),
    ],
)
def test_each_stop_says_what_is_done_and_only_what_is_true(values, norm, words):
    rows = norm_stops(Both(steps_of(values, **norm)), 0)
    said = " ".join(row["says"] for row in rows)
    assert all(word in said for word in words)
    has_shift = "shift" in norm
    assert rows[3]["name"] == {True: "Scale and shift", False: "Scale"}[has_shift]
    assert ("squeezed" in said) == (np.std(values) > 1 and "differ" not in said)


def test_one_axis_for_all_stops_unless_some_would_be_a_needle():
    near = axes([(-8.0, 8.0), (-8.0, 8.0), (-2.0, 2.0), (-3.0, 3.0)])
    assert len(set(near)) == 1 and near[0][0] < -8 and near[0][1] > 8
    far = axes([(50.0, 150.0), (-50.0, 50.0), (-2.0, 2.0), (-0.1, 0.1)])
    assert far[0] == far[1] and far[2] == far[3] and far[0] != far[2]
    # 0 is in sight before the mean is, and -1 to 1 once it is aimed at
    assert far[0][0] < -50 and far[0][1] > 150 and far[2][0] < -2
    tiny = axes([(0.001, 0.002)] * 2 + [(-0.5, 0.5)] * 2)
    assert tiny[0][0] < 0 < tiny[0][1] < 0.01 and tiny[2][0] < -1 and tiny[2][1] > 1
