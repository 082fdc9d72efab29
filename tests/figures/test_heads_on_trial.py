"""The finder, the sheet of labels, the trial and the portrait: what goes in is what is drawn."""

import numpy as np
import pytest

from gptviz.figures.head_finder import NAME, NAMED, NOTHING, POINT, SIDES, Point, finder
from gptviz.figures.head_portrait import distances, entropies
from gptviz.figures.head_trial import Cost, Score, costs, here_and_general
from gptviz.figures.role_colors import role_colors
from gptviz.figures.role_sheet import Cell, role_sheet
from gptviz.figures.theme import palette

MODES = ["light", "dark"]


@pytest.mark.parametrize("mode", MODES)
def test_a_head_is_a_point_in_its_roles_colour(mode):
    points = [
        Point(0, 0, 0.1, 0.2, "mixed"),
        Point(0, 1, 0.9, 0.1, "previous"),
        Point(1, 0, 0.0, 0.8, "induction", withdrawn=True),
        Point(1, 1, 0.2, float("nan"), "induction"),
    ]
    colors = role_colors(mode)
    fig = finder(points, ("previous score", "induction score"), colors, (0, 1), mode)
    drawn = {trace.name: trace for trace in fig.data if trace.name}
    assert list(drawn) == ["induction", "previous", "mixed"]
    hollow = drawn["induction"]
    assert list(hollow.x) == [0.0] and list(hollow.y) == [0.8]  # the NaN has no place
    assert list(hollow.marker.symbol) == ["circle-open"] and list(hollow.customdata[0][:2]) == [1, 0]
    assert "withdrawn" in hollow.customdata[0][2]
    assert drawn["mixed"].marker.color != drawn["previous"].marker.color
    ring = fig.data[-1]
    assert (list(ring.x), list(ring.y)) == ([0.9], [0.1])
    nothing = finder([Point(0, 0, float("nan"), 1.0, "mixed")], ("a", "b"), colors, (0, 0), mode)
    assert nothing.layout.annotations[0].text == NOTHING and not nothing.data[0].x


def test_names_cover_no_point_and_no_other_name():
    """A crowd near 0 and a few heads apart from it, as in a trained model."""
    rng = np.random.default_rng(0)
    crowd = [(0.1 * x, 0.02 * y) for x, y in rng.random((36, 2))]
    apart = [(0.5 + 0.03 * i, 0.01 * i) for i in range(6)] + [(0.05, 0.8), (0.07, 0.79), (1.0, 0.0)]
    points = [Point(i // 8, i % 8, x, y, "mixed") for i, (x, y) in enumerate([*crowd, *apart])]
    chosen = (points[3].block, points[3].head)
    (drawn, _ring) = finder(points, ("a", "b"), role_colors("light"), chosen, "light").data
    places = np.array([drawn.x, drawn.y]).T / np.ptp([drawn.x, drawn.y], axis=1)
    names = []  # their middles
    for i, (text, side) in enumerate(zip(drawn.text, drawn.textposition, strict=True)):
        own = points[i].block, points[i].head
        assert text.replace("<br>", "").strip() in ("", f"{own[0]}·{own[1]}")
        if text.strip() and own != chosen:
            names.append((i, places[i] + np.array(SIDES[side]) * (NAME + POINT)))
    assert 3 <= len(names) <= NAMED and "0·3" in drawn.text[3]
    for i, middle in names:
        assert not (np.abs(np.delete(places, i, axis=0) - middle) < NAME + POINT - 1e-9).all(axis=1).any()
        others = [other for j, other in names if j != i]
        assert all((np.abs(other - middle) >= 2 * NAME - 1e-9).any() for other in others)


@pytest.mark.parametrize("mode", MODES)
def test_a_sheet_strikes_out_what_was_withdrawn_and_greys_what_cannot_show(mode):
    colors = role_colors(mode)
    cells = [
        [Cell("induction", "induction", "a & b", "withdrawn"), Cell("mixed", "mixed", "m")],
        [Cell("previous", "previous", "p"), Cell("induction", "induction", "h", hidden=True)],
    ]
    fig = role_sheet(cells, colors, (1, 0), mode)
    heat = fig.data[0]
    places = [*colors, "hidden"]
    assert [[places[z] for z in row] for row in heat.z] == [["induction", "mixed"], ["previous", "hidden"]]
    assert heat.text[0][0] == "<s>induction</s>" and heat.customdata[0][0] == "a &amp; b"
    assert heat.text[1][1] == f'<i style="color:{palette(mode).quiet}">induction</i>'
    assert heat.colorscale[-1][1] == palette(mode).masked and len(heat.colorscale) == 2 * len(places)
    verdicts = ("holds", "withdrawn", "not shown", "not decided", "")
    tried = [[Cell("induction", "one token", "a", verdict) for verdict in verdicts]]
    word = "one<br>token"
    marked = [f"{word} ✓", f"<s>{word}</s>", f"{word} ○", f"{word} ?", word]
    assert list(role_sheet(tried, colors, (0, 0), mode).data[0].text[0]) == marked
    corners = fig.layout.shapes[0]
    assert (corners.x0, corners.y0) == (-0.5, 0.5)
    assert role_sheet([cells[0] * 6], colors, (0, 0), mode).data[0].texttemplate is None


@pytest.mark.parametrize("mode", MODES)
def test_a_trial_is_drawn_as_rises_of_the_loss(mode):
    found = [
        Cost("a repeated passage", "without it", 2.0, 5.0, ((1, 2.1), (2, 1.9))),
        Cost("an unrepeated passage", "without it", 8.0, 8.1, ((1, 8.0), (2, 8.2))),
    ]
    fig = costs(found, 4, 3, mode)
    others, own = fig.data
    assert np.allclose(own.x, [3.0, 0.1]) and list(own.y) == [0, 1] and own.name == "head 3"
    assert np.allclose(others.x, [0.1, -0.1, 0.0, 0.2]) and list(others.y) == [0, 0, 1, 1]
    assert "block 4, head 2" in others.customdata[1] and "0.100 less" in others.customdata[1]
    assert "loss 2.00, without it 5.00" in fig.layout.annotations[0].text
    low, high = fig.layout.xaxis.range
    assert low < -0.1 and high > 3


@pytest.mark.parametrize("mode", MODES)
def test_a_role_that_a_text_cannot_show_is_greyed(mode):
    scores = [Score("previous", 0.5, 0.9, "#112233"), Score("induction", None, 0.4, "#445566")]
    scores.append(Score("<self>", 0.1, None, "#778899"))
    fig = here_and_general(scores, mode)
    bars, dots = fig.data
    assert np.allclose(bars.x, [0.9, 0.4, np.nan], equal_nan=True)
    assert np.allclose(dots.x, [0.5, np.nan, 0.1], equal_nan=True)
    assert len(fig.layout.annotations) == 1 and fig.layout.annotations[0].y == 1
    names = fig.layout.yaxis.ticktext
    assert palette(mode).quiet in names[1] and names[0] == "previous " and names[2] == "&lt;self&gt; "
    assert "not known" in bars.customdata[2]
    plain, ghosts, here = here_and_general([*scores[:2], Score("x", 0.2, 0.1, "#000000", 0.3)], mode).data
    assert ghosts.name == "unchanged" and np.allclose(ghosts.x, [np.nan, np.nan, 0.3], equal_nan=True)
    assert np.isclose(here.x[2], 0.2) and np.isclose(plain.x[2], 0.1)
    assert len(here_and_general([Score("x", 0.2, None, "#000000")], mode).data) == 1


@pytest.mark.parametrize("mode", MODES)
def test_distances_end_in_all_that_is_farther(mode):
    fig = distances(np.array([0.1, 0.6, 0.2, 0.1]), mode)
    assert np.allclose(fig.data[0].y, [0.1, 0.6, 0.2, 0.1])
    assert list(fig.layout.xaxis.ticktext) == ["itself", "1", "2", "3+"]
    assert fig.data[0].customdata[1] == "60 % goes 1 back"
    long = distances(np.full(40, 0.025), mode)
    assert np.isclose(long.data[0].y[-1], 0.4) and long.layout.xaxis.ticktext[-1] == "24+"
    assert len(long.layout.xaxis.tickvals) <= 11


@pytest.mark.parametrize("mode", MODES)
def test_entropies_are_shares_of_rows(mode):
    bars = entropies(np.array([1, 0, 3, 4]), 2.0, mode).data[0]
    assert np.allclose(bars.y, [0.125, 0, 0.375, 0.5]) and np.allclose(bars.x, [0.25, 0.75, 1.25, 1.75])
    assert bars.customdata[-1] == "50 % of its rows have an entropy from 1.5 to 2.0 nats"
    assert not any(entropies(np.zeros(3, dtype=int), 1.0, mode).data[0].y)
