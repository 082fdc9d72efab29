"""The grid of shares, heads' direct and total effects, and a waterfall: what goes in is what is drawn."""

import numpy as np
import pytest

from gptviz.both import Both
from gptviz.figures.bars import bars
from gptviz.figures.shares import direct_and_total, share_grid
from gptviz.figures.theme import palette

pytestmark = pytest.mark.parametrize("mode", ["light", "dark"])
COLUMNS = ["head 0", "head 1", "attention bias", "feed-forward"]
VALUES = np.array([[1, -2, 0.01, 0.5], [3, 0.25, -0.02, -0.75]])


def test_a_waterfalls_bars_begin_where_they_are_told_and_are_joined(mode):
    values = np.array([3.0, -1.0, 2.0])
    base = np.array([0.0, 3.0, 0.0])
    colors = palette(mode)
    made = bars(
        Both(values, values + 1), ["a", "<b>", "sum"], mode, "", lying=True, signed=True, base=base, at=1,
        text=Both(["3", "−1", "2"]), colors=[colors.positive, colors.negative, colors.ink],
    )  # fmt: skip
    own, ghost = made.data
    assert list(own.x) == list(values) and list(ghost.x) == list(values + 1)
    # past the longer one
    assert list(own.text) == ["", "−1", ""] and list(ghost.text) == ["3", "", "2"]
    longer = bars(
        Both(values / 8, values / 4), ["a", "b", "c"], mode, "", text=Both(["1"] * 3)
    ).data[1]
    assert list(longer.text) == ["1"] * 3
    assert list(own.base) == list(ghost.base) == list(base)
    assert list(own.marker.color) == [colors.positive, colors.negative, colors.ink]
    assert list(own.marker.line.width) == [0, 3, 0]
    joints = [(s.x0, s.x1, s.y0, s.y1) for s in made.layout.shapes if s.yref is None]
    assert joints == [(3, 3, 0.3, 0.7), (2, 2, 1.3, 1.7)]
    low, high = made.layout.xaxis.range
    room = 1 - made.layout.xaxis.domain[1]
    assert low <= 0 and high == pytest.approx(4.004) and 0.2 < room < 0.4  # for the texts
    down = bars(
        Both(-values), ["a", "b", "c"], mode, "", lying=True, base=-base, text=Both(["1"] * 3)
    )
    assert down.layout.xaxis.range[0] < -3


def test_the_grid_is_centred_on_zero_and_frames_the_opened_head(mode):
    fig = share_grid(VALUES, COLUMNS, (1, 0), "its share is", mode, unchanged=VALUES + 1)
    cells = fig.data[0]
    assert np.allclose(cells.z, VALUES) and (
        fig.layout.coloraxis.cmin,
        fig.layout.coloraxis.cmax,
    ) == (-3, 3)
    assert fig.data[1].text[1] == "−2.00"
    assert cells.hovertext[1][3] == "block 1 · feed-forward: its share is −0.750, 0.250 unchanged"
    half = share_grid(np.abs(VALUES), COLUMNS, None, "it is", mode, signed=False).layout.coloraxis
    scale = fig.layout.coloraxis.colorscale
    assert (half.cmin, half.cmax) == (0, 3) and half.colorscale[0][1] == scale[len(scale) // 2][1]
    frame = fig.layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 0.5, 0.5, 1.5)
    assert list(fig.layout.xaxis.ticktext) == ["0", "1", "bias", "ff"]
    many = share_grid(np.ones((12, 18)), [f"head {i}" for i in range(18)], None, "", mode)
    assert len(many.data) == 1  # no numbers


def test_heads_far_from_the_line_have_their_names(mode):
    direct = np.array([[1.0, 0.0], [-1.0, 9.0]])
    total = np.array([[1.0, 5.0], [-1.5, 9.0]])
    points = direct_and_total(direct, total, (1, 0), mode).data[0]
    assert list(points.x) == [1, 0, -1, 9] and list(points.y) == [1, 5, -1.5, 9]
    assert list(points.text) == ["", "0·1", "1·0", ""] and list(points.marker.line.width) == [
        0,
        0,
        3,
        0,
    ]
