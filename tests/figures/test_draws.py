"""The picture of a draw: the rows' stretches are the cumulative sum, and the segments are the whole bar."""

import itertools

import numpy as np
import pytest
import torch

from gptviz.analysis.next_token import candidates
from gptviz.engine.sampling import Sampling
from gptviz.figures.candidates import draw_rows, place_text


def logits(size=50):
    return torch.randn(size, generator=torch.Generator().manual_seed(3)) * 2


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.6), Sampling(1.2, 7), Sampling(0.9, 20, 0.8), Sampling(0)]
)
def test_the_bar_is_the_cumulative_sum(sampling):
    found = candidates(logits(), 10, sampling, also=[33])
    drawn = draw_rows(found, sampling, 33, "drawn", str)
    # written out, with numpy
    scaled = logits().double().numpy() / (sampling.temperature or 1)
    order = np.argsort(-scaled, kind="stable")
    p = np.exp(scaled - scaled.max()) if sampling.temperature else (scaled == scaled.max()).astype(float)
    if sampling.top_k:
        p[order[sampling.top_k :]] = 0
    p /= p.sum()
    if sampling.top_p:
        p[order[(np.cumsum(p[order]) - p[order]) >= sampling.top_p]] = 0
        p /= p.sum()
    ends = np.cumsum(p[order])
    for row in drawn.rows:
        assert row["rank"] == list(order).index(row["id"]) + 1
        assert row["stop"] == pytest.approx(ends[row["rank"] - 1]) and row["stop"] <= 1 + 1e-9
        assert row["stop"] - row["start"] == pytest.approx(row["probability"], abs=1e-12)
    assert [row["id"] for row in drawn.rows if row["drawn"]] == [33]
    segments = drawn.segments
    for part in (part for part in segments if part["index"] is not None):
        row = drawn.rows[part["index"]]
        assert (part["start"], part["stop"]) == (row["start"], row["stop"])
    assert segments[0]["start"] == 0 and segments[-1]["stop"] == pytest.approx(1)
    assert all(a["stop"] == pytest.approx(b["start"]) for a, b in itertools.pairwise(segments))
    total = sum(row["probability"] for row in drawn.rows) + drawn.rest["probability"]
    assert total == pytest.approx(1)


def test_a_vocabulary_with_a_row_each_has_no_rest():
    drawn = draw_rows(candidates(logits(4), 10), Sampling(), None, "", str)
    assert drawn.rest is None and len(drawn.segments) == 4


def test_a_narrow_stretch_has_digits_enough():
    assert [place_text(x, 0.2) for x in (0.0, 0.25, 1.0)] == ["0", "0.250", "1"]
    assert place_text(0.970032, 1e-4) == "0.97003"
    assert place_text(0.970032, 0.0) == "0.970032000000"
