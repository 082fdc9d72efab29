"""Pictures of heads: their labels, all as points, one head's shares and its trial. What goes in is drawn."""

import numpy as np
import pandas as pd
import pytest

from gptviz.figures.heads import (
    NAME,
    NAMED,
    NOTHING,
    POINT,
    SIDES,
    Cell,
    Cost,
    costs,
    finder,
    role_sheet,
)
from gptviz.figures.marks import role_colors
from gptviz.figures.theme import palette

pytestmark = pytest.mark.parametrize("mode", ["light", "dark"])


def points(*rows):
    return pd.DataFrame(rows, columns=["block", "head", "x", "y", "role", "withdrawn"])


def test_a_head_is_a_point_in_its_roles_colour(mode):
    heads = points(
        (0, 0, 0.1, 0.2, "mixed", False),
        (0, 1, 0.9, 0.1, "previous", False),
        (1, 0, 0.0, 0.8, "induction", True),
        (1, 1, 0.2, float("nan"), "induction", False),
    )
    fig = finder(heads, ("<previous> score", "induction score"), (0, 1), mode)
    drawn = {trace.name: trace for trace in fig.data if trace.name}
    assert list(drawn) == ["induction", "previous", "mixed"]
    hollow = drawn["induction"]
    assert list(hollow.x) == [0.0] and list(hollow.y) == [0.8]  # the NaN has no place
    assert list(hollow.marker.symbol) == ["circle-open"] and list(hollow.customdata[0][:2]) == [
        1,
        0,
    ]
    assert (
        "withdrawn" in hollow.customdata[0][2]
        and "&lt;previous&gt; score: 0" in hollow.customdata[0][2]
    )
    assert (
        drawn["previous"].marker.color
        == role_colors(mode)["previous"]
        != drawn["mixed"].marker.color
    )
    assert (list(fig.data[-1].x), list(fig.data[-1].y)) == ([0.9], [0.1])  # the ring
    nothing = finder(points((0, 0, float("nan"), 1.0, "mixed", False)), ("a", "b"), (0, 0), mode)
    assert nothing.layout.annotations[0].text == NOTHING and not len(nothing.data[0].x)


def test_names_cover_no_point_and_no_other_name(mode):
    """A crowd near 0 and a few heads apart from it, as in a trained model."""
    rng = np.random.default_rng(0)
    crowd = [(0.1 * x, 0.02 * y) for x, y in rng.random((36, 2))]
    apart = [(0.5 + 0.03 * i, 0.01 * i) for i in range(6)] + [(0.05, 0.8), (0.07, 0.79), (1.0, 0.0)]
    heads = points(
        *((i // 8, i % 8, x, y, "mixed", False) for i, (x, y) in enumerate([*crowd, *apart]))
    )
    drawn, _ring = finder(heads, ("a", "b"), (0, 3), mode).data
    places = np.array([drawn.x, drawn.y]).T / np.ptp([drawn.x, drawn.y], axis=1)
    names = []  # their middles
    for i, (text, side) in enumerate(zip(drawn.text, drawn.textposition, strict=True)):
        assert text.replace("<br>", "").strip() in ("", f"{i // 8}·{i % 8}")
        if text.strip() and i != 3:
            names.append((i, places[i] + np.array(SIDES[side]) * (NAME + POINT)))
    assert 3 <= len(names) <= NAMED and "0·3" in drawn.text[3]
    for i, middle in names:
        assert (
            not (np.abs(np.delete(places, i, axis=0) - middle) < NAME + POINT - 1e-9)
            .all(axis=1)
            .any()
        )
        others = [other for j, other in names if j != i]
        assert all((np.abs(other - middle) >= 2 * NAME - 1e-9).any() for other in others)


def test_a_sheet_strikes_out_what_was_withdrawn_and_greys_what_cannot_show(mode):
    cells = [
        [Cell("induction", "a & b", "withdrawn"), Cell("mixed", "m")],
        [Cell("previous", "p"), Cell("induction", "h", hidden=True)],
    ]
    fig = role_sheet(cells, (1, 0), mode)
    heat = fig.data[0]
    places = [*role_colors(mode), "hidden"]
    assert [[places[z] for z in row] for row in heat.z] == [
        ["induction", "mixed"],
        ["previous", "hidden"],
    ]
    assert heat.text[0][0] == "<s>induction</s>" and heat.customdata[0][0] == "a &amp; b"
    assert heat.text[1][1] == f'<i style="color:{palette(mode).quiet}">induction</i>'
    assert heat.colorscale[-1][1] == palette(mode).masked and len(heat.colorscale) == 2 * len(
        places
    )
    assert (
        role_sheet([[Cell("marks", "", "holds")]], (0, 0), mode).data[0].text[0][0]
        == "punctuation<br>✓"
    )
    tried = [
        [
            Cell("favourite", "a", said)
            for said in ("holds", "withdrawn", "not shown", "not decided", "")
        ]
    ]
    word = "one<br>token"
    marked = [f"{word} ✓", f"<s>{word}</s>", f"{word} ○", f"{word} ?", word]
    assert list(role_sheet(tried, (0, 0), mode).data[0].text[0]) == marked
    assert (fig.layout.shapes[0].x0, fig.layout.shapes[0].y0) == (-0.5, 0.5)
    assert role_sheet([cells[0] * 6], (0, 0), mode).data[0].texttemplate is None


def test_a_trial_is_drawn_as_rises_of_the_loss(mode):
    found = [
        Cost("repeated passages", 2.0, 3.0, {1: 0.1, 2: -0.1}),
        Cost("unrepeated passages", 8.0, 0.1, {1: 0.0, 2: 0.2}),
    ]
    fig = costs(found, 4, 3, mode)
    others, own = fig.data
    assert np.allclose(own.x, [3.0, 0.1]) and list(own.y) == [0, 1] and own.name == "head 3"
    assert np.allclose(others.x, [0.1, -0.1, 0.0, 0.2]) and list(others.y) == [0, 0, 1, 1]
    assert (
        "block 4, head 2" in others.customdata[1]
        and "loss 1.90, 0.100 less" in others.customdata[1]
    )
    assert "2.00 → 5.00" in fig.layout.annotations[0].text
    low, high = fig.layout.xaxis.range
    assert low < -0.1 and high > 3
