"""A figure as it is written is what Plotly's own objects would send; whoever looks into it finds those."""

import copy
import json
import pickle

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.io import to_json

from gptviz.both import Both
from gptviz.figures import Figure
from gptviz.figures.bars import bars
from gptviz.figures.next_token import back_to_back
from gptviz.figures.theme import LISTED, figure, packed, palette
from tests.figures.conftest import without_empty
from tests.specs import decoded

BAR = {"type": "bar", "x": np.arange(3), "y": np.array([1.5, -2.0, 0.25], np.float32)}


def sent(fig):
    return json.loads(to_json(fig, validate=False))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_is_sent_as_plotlys_own_figure_would_be(mode):
    fig = figure([BAR], {"xaxis": {"title": {"text": "dimension"}}}, mode, height=200, t=3)
    own = go.Figure(sent(fig)).update_layout(template=None)
    assert without_empty(sent(own)["layout"]) == sent(fig)["layout"]
    assert list(decoded(sent(fig))["data"][0]["y"]) == BAR["y"].tolist()
    assert (fig.layout.height, fig.layout.margin.t, fig.layout.margin.b) == (200, 3, 8)
    assert fig.layout.paper_bgcolor == palette(mode).paper
    assert fig.layout.xaxis.gridcolor == palette(mode).grid


def test_an_axis_has_a_grid_unless_bars_stand_on_it_no_line_and_stays_where_it_is():
    aside = {"type": "bar", "orientation": "h", "xaxis": "x2", "yaxis": "y2"}
    layout = figure(
        [BAR, BAR | aside, {"type": "scatter", "xaxis": "x3"}], {}, "light", height=200
    ).layout
    axes = ("xaxis", "yaxis", "xaxis2", "yaxis2", "xaxis3")
    assert [layout[name].showgrid for name in axes] == [False, True, True, False, True]
    assert not any(layout[name].showline for name in axes)
    assert (
        all(layout[name].fixedrange for name in axes) and layout.barmode == "overlay"
    )  # ghosts lie over bars


def test_only_what_changes_it_changes_what_is_drawn():
    fig = figure([BAR], {}, "light", height=200)
    first = sent(fig)
    assert sent(fig) == first  # drawing, and reading, leave it as it is
    assert list(fig.data[0].y) == BAR["y"].tolist() == list(decoded(sent(fig))["data"][0]["y"])
    assert sent(fig)["layout"] == first["layout"]
    assert sent(fig.laid_out(datarevision=1))["layout"] == first["layout"] | {"datarevision": 1}
    assert fig.layout.datarevision is None
    fig.update_layout(height=333)
    fig.add_trace(BAR)
    assert sent(fig)["layout"]["height"] == 333 and len(sent(fig)["data"]) == 2
    # what all share is as it was
    assert figure([BAR], {}, "light", height=200).layout.height == 200


def test_what_plotly_does_not_know_is_refused_when_it_is_read(figures):
    with pytest.raises(ValueError, match="colour"):
        _ = Figure({"data": [BAR | {"colour": "red"}], "layout": {}}).data
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = figure([BAR], {}, "light", height=200).no_such_thing
    figures.clear()  # conftest's check of all figures is for those that are right


def test_it_can_be_copied_and_kept():
    fig = figure([BAR], {}, "light", height=200)
    for twin in (copy.deepcopy(fig), pickle.loads(pickle.dumps(fig))):
        assert list(decoded(sent(twin))["data"][0]["y"]) == BAR["y"].tolist()
        assert twin.layout.height == 200


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.arange(6, dtype=np.uint8),
        # not contiguous
        np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 1, 0),
        np.broadcast_to(np.float64(0.5), (2, 2)),
        np.array([2**40, 1]),
        np.array(["a", "b"]),
        np.array([True, False]),
        np.array([], dtype=np.float32),
    ],
)
def test_arrays_arrive_as_they_are(array):
    # a long one is sent as bytes
    for some in (array, np.resize(array, LISTED + 1) if array.size else array):
        found = decoded(json.loads(json.dumps(packed({"a": [some]}))))["a"][0]
        assert np.array_equal(np.asarray(found, dtype=some.dtype), some)


def test_what_is_no_number_is_a_gap_and_numbers_of_numpy_are_numbers():
    assert packed(np.array([[0.5, np.nan], [-np.inf, 0]], np.float32)) == [[0.5, None], [None, 0]]
    assert packed((np.float32(0.5), np.int64(3), None, "x")) == [0.5, 3, None, "x"]


def test_larger_is_larger_type_points_and_room_and_the_same_numbers():
    marked = BAR | {
        "textfont": {"size": 12},
        "marker": {"color": "#123456", "pattern": {"size": 4}},
    }
    bins = {
        "type": "histogram",
        "x": BAR["y"],
        "xbins": {"size": 0.5},
        "marker": {"color": "#123456"},
    }
    layout = {
        "annotations": [{"text": "a", "xshift": 8, "font": {"size": 10}}],
        "xaxis": {"range": [0, 3]},
    }
    fig = figure([marked, bins], layout, "dark", height=200, t=40)
    large = fig.larger(1.25)
    assert (large.layout.height, large.layout.margin.t, large.layout.margin.l) == (250, 50, 10)
    assert large.layout.font.size == 1.25 * fig.layout.font.size
    assert large.layout.xaxis.title.font.size == 1.25 * 14
    assert (large.layout.annotations[0].xshift, large.layout.annotations[0].font.size) == (10, 12.5)
    assert large.data[0].textfont.size == 15 and large.data[1].xbins.size == 0.5
    assert large.layout.xaxis.range == (0, 3) and list(large.data[0].y) == BAR["y"].tolist()
    assert fig.layout.height == 200 and fig.data[0].textfont.size == 12  # the first is as it was
    assert large.larger(0.8).layout.height == 200


PAIR = np.array([1.0, 0.0])
OF_SHARES = {  # a figure whose largest bar is the share p, and the axes that its bars lie along
    "softmax": (lambda p: bars(Both(p * PAIR), ["a", "b"], "light", "weight"), ["yaxis"]),
    "compare": (
        lambda p: back_to_back(["a"], p * PAIR[:1], p * PAIR[:1], ("left", "right"), "light"),
        ["xaxis", "xaxis2"],
    ),
    "bars": (
        lambda p: bars(Both(p * PAIR, p * PAIR), ["a", "a"], "light", "probability", lying=True),
        ["xaxis"],
    ),
}


@pytest.mark.parametrize(("draw", "axes"), OF_SHARES.values(), ids=OF_SHARES)
def test_one_length_of_a_bar_is_one_share_whatever_is_drawn(draw, axes):
    """All bars of probabilities, weights and shares: .025 must not look as .91 does."""
    small, large = ([sorted(draw(p).layout[axis].range) for axis in axes] for p in (0.025, 0.91))
    assert small == large
    assert all(low == 0 and 1 <= high <= 1.3 for low, high in large)
