"""The waterfall, the grid of shares and the map of what each token gave: what goes in is what is drawn."""

import numpy as np
import pandas as pd
import pytest

from gptviz.analysis import shares as numbers
from gptviz.figures import shares as figures
from gptviz.figures.theme import palette
from tests.analysis.test_shares import TABLE

MODES = ["light", "dark"]


@pytest.mark.parametrize("mode", MODES)
def test_a_bar_begins_where_the_one_before_it_ended(mode):
    steps, colors = numbers.waterfall(TABLE, 4), palette(mode)
    total = TABLE["contribution"].sum()
    fig = figures.waterfall(steps, total, (0, 1), mode)
    bars = fig.data[0]
    assert np.allclose(bars.base[1:-1], np.add(bars.base, bars.x)[:-2])
    assert bars.base[-1] == 0 and bars.x[-1] == total and bars.text[-1] == f"<b>{total:.4f}</b>"
    assert list(bars.marker.color) == [
        colors.positive, colors.positive, colors.negative, colors.negative, colors.positive, colors.output,
    ]  # fmt: skip
    assert list(bars.marker.line.width) == [0, 0, 0, 3, 0, 0]
    assert bars.customdata[3][0] == "block 0 · head 1: lowers it by 2.00, to 1.25"
    assert list(bars.customdata[3][1:]) == [0, 1] and list(bars.customdata[4][1:]) == [-1, -1]
    assert fig.layout.xaxis.range[0] <= 0 and fig.layout.xaxis.range[1] > 4


@pytest.mark.parametrize("mode", MODES)
def test_a_logit_of_negative_parts_only_is_drawn(mode):
    table = TABLE.assign(contribution=-TABLE["contribution"].abs())
    fig = figures.waterfall(numbers.waterfall(table, 3), table["contribution"].sum(), None, mode)
    assert fig.layout.xaxis.range[0] < table["contribution"].sum()
    zero = TABLE.assign(contribution=0.0)
    figures.waterfall(numbers.waterfall(zero, 3), 0.0, None, mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_grid_is_centred_on_zero_and_frames_the_opened_head(mode):
    values, columns = numbers.grid(TABLE, 2, 2)
    fig = figures.share_grid(values, columns, (1, 0), "its share is", mode)
    assert np.allclose(fig.data[0].z, values)
    assert (fig.layout.coloraxis.cmin, fig.layout.coloraxis.cmax) == (-3, 3)
    half = figures.share_grid(np.abs(values), columns, None, "it is", mode, signed=False).layout.coloraxis
    scale = fig.layout.coloraxis.colorscale
    assert (half.cmin, half.cmax) == (0, 3) and half.colorscale[0][1] == scale[len(scale) // 2][1]
    assert half.colorscale[-1] == scale[-1]
    assert fig.data[0].text[0][1] == "−2.00" and fig.data[0].customdata[1][3] == "block 1 · feed-forward"
    frame = fig.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 0.5, 0.5, 1.5)
    assert list(fig.layout.xaxis.ticktext) == ["0", "1", "bias", "ff"]
    many = figures.share_grid(np.ones((12, 18)), [f"head {i}" for i in range(18)], None, "", mode)
    assert many.data[0].texttemplate is None


@pytest.mark.parametrize("mode", MODES)
def test_the_map_of_sources_has_the_sums_above(mode):
    sources = np.array([[1.0, -2.0, 0.5, 0], [0.25, 4.0, 0.0, 0]])
    fig = figures.source_map(sources, ["a", "<b>", "c", "d"], 3, 1, 2, mode)
    cells, sums = fig.data
    assert np.allclose(cells.z, sources[:, :3]) and np.allclose(sums.y, [1.25, 2, 0.5])
    assert cells.customdata[0][1] == "`&lt;b&gt;` (position 1)"
    assert list(fig.layout.yaxis.ticktext) == ["head 0   −0.50", "head 1   4.25"]
    nothing = figures.source_map(np.full((2, 4), np.nan), ["a"] * 4, 0, 0, 3, mode)
    assert np.allclose(nothing.data[1].y, 0)
    long = figures.source_map(np.ones((2, 300)), ["x"] * 300, 0, 0, 299, mode)
    assert list(long.layout.xaxis.tickvals[:2]) == [0, 32]


@pytest.mark.parametrize("mode", MODES)
def test_heads_far_from_the_line_have_their_names(mode):
    found = pd.DataFrame(
        {
            "kind": ["head", "head", "head", "attention"],
            "block": [0, 0, 1, 1],
            "head": pd.array([0, 1, 0, None], dtype="Int64"),
            "direct": [1.0, 0.0, -1.0, 9.0],
            "total": [1.0, 5.0, -1.5, 9.0],
            "label": ["block 0 · head 0", "block 0 · head 1", "block 1 · head 0", "block 1 · attention"],
        }
    )
    points = figures.direct_and_total(found, (1, 0), mode).data[0]
    assert list(points.x) == [1, 0, -1] and list(points.y) == [1, 5, -1.5]
    assert list(points.text) == ["", "0·1", "1·0"]
    assert list(points.marker.line.width) == [0, 0, 3]


def test_ghosts_are_the_unchanged_shares_of_the_same_rows():
    table = pd.DataFrame(
        {
            "part": ["embedding", "head", "head", "feed-forward", "edit"],
            "block": pd.array([None, 0, 0, 0, None], dtype="Int64"),
            "head": pd.array([None, 0, 1, None, None], dtype="Int64"),
            "contribution": [0.1, 3.0, -2.0, 0.2, 1.0],
        }
    )
    old = table[:-1].assign(contribution=[0.5, 1.0, -1.0, 0.25])
    steps = numbers.waterfall(table, count=3)
    ghosts = numbers.beside(steps, old)
    assert dict(zip(steps["label"], ghosts, strict=True)) == pytest.approx(
        {"block 0 · head 0": 1.0, "edit": 0.0, "block 0 · head 1": -1.0, "2 other parts": 0.75}
    )
    fig = figures.waterfall(steps, 2.3, None, "light", ghosts)
    assert np.allclose(fig.data[1].x, [*ghosts, 0.75]) and np.allclose(fig.data[1].base, [*steps["start"], 0])


def test_the_sums_of_the_sources_have_ghosts():
    new, old = np.array([[1.0, 2.0, 9.0], [0.5, np.nan, 9.0]]), np.array([[3.0, 2.0, 9.0], [1.0, 1.0, 9.0]])
    fig = figures.source_map(new, ["<a>", "b", "c"], 0, 1, 1, "dark", old)
    assert list(fig.data[2].y) == [4.0, 3.0] and fig.data[2].hovertext[0].startswith(
        "`&lt;a&gt;` (position 0)"
    )
