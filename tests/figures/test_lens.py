"""The lens' colours and figures: the numbers in them, and that equal labels stay apart."""

import math

import numpy as np
import pytest

from gptviz.figures.lens import (
    MEASURES,
    Bar,
    Trail,
    beside_the_end,
    colors_of,
    ends_of,
    grid_values,
    scale_of,
    through_the_depth,
)
from gptviz.figures.theme import palette

NAMES = ["embedding", *(f"block {b} · {part}" for b in range(2) for part in ("attention", "feed-forward"))]


def test_a_measures_place_on_its_scale():
    assert colors_of("probability", [0.0, 0.25, 1.0], 8).tolist() == [0, 0.25, 1]
    assert np.allclose(colors_of("rank", [1, 8, 2], 8), [1, 0, 2 / 3])
    for measure in ("entropy", "kl"):
        assert np.allclose(colors_of(measure, [0, 1.5, 3, 30], 8), [0, 0.5, 1, 1])
    assert colors_of("rank", [1], 1).tolist() == [1]
    with pytest.raises(ValueError, match="measure is 'logit'"):
        colors_of("logit", [1], 8)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_nothing_to_tell_is_paper(mode):
    for measure in MEASURES:
        assert scale_of(measure, mode)[0][1] == palette(mode).paper
        assert all(ends_of(measure, 8192))
    assert ends_of("entropy", 8192)[1].startswith("13.0 bits")


def test_the_numbers_that_colour_the_cells():
    p, entropy, kl = np.array([[0.5]]), np.array([[2.0]]), np.array([[3.0]])
    assert grid_values("probability", p, entropy, kl, None) is p
    assert grid_values("entropy", p, entropy, kl, None) is entropy
    assert grid_values("kl", p, entropy, kl, None) is kl
    assert grid_values("rank", p, entropy, kl, np.array([[7]])).tolist() == [[7]]
    with pytest.raises(ValueError, match="ranks of a token"):
        grid_values("rank", p, entropy, kl, None)


def test_two_tokens_that_look_alike_have_a_bar_each():
    bars = [Bar(3, "·<b>", 0.5, 1, 0.1, 2), Bar(9, "·<b>", 0.2, 2, 0.8, 1), Bar(4, "x", 0.0, 9, 0.0, 9)]
    fig = beside_the_end(bars, "block 0 · attention", False, "light")
    here, end = fig.data
    assert list(here.y) == list(end.y) == [0, 1, 2] and list(here.customdata) == [3, 9, 4]
    assert list(here.x) == [0.5, 0.2, 0.0] and list(end.x) == [0.1, 0.8, 0.0]
    assert list(fig.layout.yaxis.ticktext) == ["·&lt;b&gt;", "·&lt;b&gt;", "x"]
    assert fig.layout.xaxis.range == fig.layout.xaxis2.range  # one scale for both
    assert here.marker.color != end.marker.color
    (end,) = beside_the_end(bars, "block 1 · feed-forward", True, "dark").data  # both would be one
    assert list(end.x) == [0.1, 0.8, 0.0] and end.marker.color == palette("dark").output


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_lines_are_told_apart_by_more_than_their_colour(mode):
    rng = np.random.default_rng(0)
    lines = [Trail(i, "·same", rng.random(5).astype(np.float32), rng.integers(1, 50, 5)) for i in range(6)]
    fig = through_the_depth(lines, NAMES, 2, 61, mode)
    above, below = fig.data[::2], fig.data[1::2]
    assert [trace.meta for trace in above] == list(range(6))
    for token, p, rank in zip(lines, above, below, strict=True):
        assert np.array_equal(p.y, token.probabilities.astype(float)) and np.array_equal(rank.y, token.ranks)
        assert list(p.x) == [0, 1, 2, 3, 4] and (p.yaxis, rank.yaxis) == ("y", "y2")
        assert p.line.dash == rank.line.dash
    looks = [(trace.line.dash, trace.marker.symbol, trace.line.color) for trace in above]
    assert len({look[0] for look in looks}) == len({look[1] for look in looks}) == len(looks)
    assert above[0].line.color == palette(mode).accent
    assert list(fig.layout.xaxis.ticktext)[:2] == ["embedding", "0 attention"]
    low, high = fig.layout.yaxis2.range  # rank 1 on top, the last of the vocabulary in sight
    assert low >= math.log10(61) and high < 0
    assert [shape.x0 for shape in fig.layout.shapes] == [2, 2]


def test_a_line_that_is_nowhere_is_drawn_all_the_same():
    fig = through_the_depth([Trail(1, "a", np.zeros(5, np.float32), np.full(5, 61))], NAMES, 0, 61, "light")
    assert fig.layout.yaxis.range[1] > 0


@pytest.mark.parametrize("last", [False, True])
def test_the_unchanged_bars_are_ghosts_on_both_sides(last):
    bars = [Bar(3, "·<b>", 0.5, 1, 0.1, 2, (0.2, 0.9)), Bar(9, "x", 0.2, 2, 0.8, 1, (0.3, 0.05))]
    fig = beside_the_end(bars, "block 0 · attention", last, "light")
    ghosts = [trace for trace in fig.data if trace.name == "unchanged"]
    assert [list(trace.x) for trace in ghosts] == ([[0.9, 0.05]] if last else [[0.2, 0.3], [0.9, 0.05]])
    assert [trace.showlegend for trace in ghosts] == [True, False][: len(ghosts)]
    assert [trace.xaxis for trace in ghosts] == ["x", "x2"][: len(ghosts)]
    assert fig.layout.xaxis.range[1] > 0.9 and fig.layout.barmode == "overlay"
    assert ghosts[0].hovertext[0].startswith("`·&lt;b&gt;`: 0.")


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_unchanged_curves_are_dashed_and_grey(mode):
    rng = np.random.default_rng(0)
    lines, was = (
        [Trail(i, "·<", rng.random(5).astype(np.float32), rng.integers(1, 50, 5)) for i in range(2)]
        for _ in range(2)
    )
    fig = through_the_depth(lines, NAMES, 2, 61, mode, was)
    ghosts = fig.data[:4]
    for token, p, rank in zip(was, ghosts[::2], ghosts[1::2], strict=True):
        assert np.array_equal(p.y, token.probabilities.astype(float)) and np.array_equal(rank.y, token.ranks)
        assert (p.yaxis, rank.yaxis, p.meta) == ("y", "y2", token.id)
    assert {(g.line.dash, g.line.color) for g in ghosts} == {("dash", palette(mode).ghost)}
    assert [g.showlegend for g in ghosts] == [True, False, False, False] and len(fig.data) == 8
    assert "unchanged" in ghosts[0].hovertext[1] and "&lt;" in ghosts[0].hovertext[1]
