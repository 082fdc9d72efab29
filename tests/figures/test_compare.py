"""Two sides in one figure: what is drawn is what was given."""

import numpy as np

from gptviz.figures import compare
from gptviz.figures.compare import Row

ROWS = [Row("·mill", 0.9, 0.2), Row("<b>", 0.05, None), Row("·x", None, 0.7)]


def test_bars_stand_back_to_back_on_one_scale():
    fig = compare.back_to_back(ROWS, ("left & co", "right"), "light")
    left, right = fig.data
    assert left.x.tolist() == [0.9, 0.05, 0.0] and right.x.tolist() == [0.2, 0.0, 0.7]
    assert right.text[1] == left.text[2] == "not in its vocabulary" and left.text[0] == "0.900"
    texts = [note.text for note in fig.layout.annotations]
    assert texts == ["<b>left &amp; co</b>", "<b>right</b>", "·mill", "&lt;b&gt;", "·x"]
    assert left.marker.color != right.marker.color


def test_a_long_name_of_a_side_is_wrapped_and_has_room():
    """Of some forty letters the chart's edge would cut off the end."""
    changes = ", ".join(f"block {b} head {b} off" for b in range(20))
    for name, lines in (("the other text (model changed)", 2), (changes, 3), ("a" * 33, 2)):
        fig = compare.back_to_back(ROWS, ("mini", name), "light")
        right = fig.layout.annotations[1].text.removeprefix("<b>").removesuffix("</b>").split("<br>")
        assert len(right) == lines and max(map(len, right)) <= 20
        assert fig.layout.margin.t >= 30 + 16 * (lines - 1)
        assert right[-1].endswith("…") == (name == changes)
        plain = compare.back_to_back(ROWS, ("mini", "gpt2"), "light").layout
        bars = (one.height - one.margin.t for one in (fig.layout, plain))
        assert len(set(bars)) == 1


def test_the_map_of_streams_has_a_row_a_depth_and_frames_the_pair():
    distances = np.linspace(0, 0.5, 21).reshape(3, 7)
    fig = compare.streams_map(distances, list("abcdefg"), list("ABCDEFG"), 4, "dark")
    assert np.allclose(fig.data[0].z, distances, atol=1e-7)
    assert (fig.layout.coloraxis.cmin, fig.layout.coloraxis.cmax) == (0, 0.5)
    assert list(fig.layout.coloraxis.colorbar.tickvals) == [0, 0.5]
    assert list(fig.layout.yaxis.ticktext) == ["before block 0 ", "before block 1 ", "at the end "]
    assert (fig.layout.shapes[0].x0, fig.layout.shapes[0].x1) == (3.5, 4.5)
    assert "`c` and `C`" in fig.data[0].customdata[2][2]


def test_a_hundred_pairs_are_numbered_and_rounding_has_no_colour():
    fig = compare.streams_map(np.full((3, 100), 1e-12), ["x"] * 100, ["x"] * 100, 0, "light")
    assert len(fig.layout.xaxis.tickvals) <= 13 and fig.layout.coloraxis.cmax == compare.ROUNDING
