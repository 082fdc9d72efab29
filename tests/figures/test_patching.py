"""The maps of patching: effects as they are, frames where patches are made, a tint where these reach."""

import numpy as np
import pytest

from gptviz.both import Both
from gptviz.figures.patching import column_of, group_and_head, head_map, position_map
from gptviz.figures.theme import palette

MODES = ["light", "dark"]


@pytest.mark.parametrize("mode", MODES)
def test_the_position_map(mode):
    effects = np.array([[0.0, 0.5, -1.2], [0.1, 0.0, 1.0]])
    reached = np.array([[False, False, False], [False, True, True]])
    labels = [("a", "a"), ("<b>", "c"), ("d", "d")]
    made = position_map(Both(effects), labels, "The stream into", [(0, 1)], reached, mode).to_dict()
    cells, layout = made["data"][0], made["layout"]
    assert cells["type"] == "heatmap" and cells["z"]["shape"] == "2, 3"
    assert (layout["coloraxis"]["cmin"], layout["coloraxis"]["cmax"]) == (-1, 1)
    assert layout["coloraxis"]["colorscale"] == [list(stop) for stop in palette(mode).signed]
    assert layout["xaxis"]["ticktext"] == ["a", "<b>&lt;b&gt; | c</b>", "d"]
    assert layout["yaxis"]["range"][0] > layout["yaxis"]["range"][1]  # block 0 on top
    tint, frame = layout["shapes"]
    assert [tint[end] for end in ("x0", "x1", "y0", "y1")] == [0.5, 2.5, 0.5, 1.5]
    assert [frame[end] for end in ("x0", "x1", "y0", "y1")] == [0.5, 1.5, -0.5, 0.5]
    assert "fillcolor" not in frame and tint["fillcolor"].startswith("rgba")


def test_rows_that_are_reached_alike_are_one_rectangle():
    reached = np.zeros((4, 5), dtype=bool)
    reached[1, 2] = reached[2:, 2:] = True
    shapes = position_map(Both(np.zeros((4, 5))), [("a", "a")] * 5, "", [], reached, "light").to_dict()[
        "layout"
    ]["shapes"]
    assert [[s[end] for end in ("x0", "x1", "y0", "y1")] for s in shapes] == [
        [1.5, 2.5, 0.5, 1.5],
        [1.5, 4.5, 1.5, 3.5],
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("blocks", "heads"), [(1, 1), (6, 8), (12, 12)])
def test_the_head_map_has_a_group_for_each_part(mode, blocks, heads):
    groups = {"output z": "output", "queries": "query", "keys": "key"}
    effects = np.arange(3 * blocks * heads, dtype=float).reshape(3, blocks, heads) / 100
    figure = head_map(Both(effects), groups, [(0, column_of(1, 0, heads))], mode)
    wide = np.array(figure.data[0].z)
    for group in range(3):
        start = column_of(group, 0, heads)
        assert np.allclose(wide[:, start : start + heads], effects[group])
        assert group == 2 or np.isnan(wide[:, start + heads]).all()
    names = [note.text for note in figure.layout.annotations]
    assert names == [f"<b>{name}</b>" for name in groups]
    assert [note.font.color for note in figure.layout.annotations] == [
        getattr(palette(mode), color) for color in groups.values()
    ]
    said = figure.data[0].customdata[blocks - 1][column_of(2, heads - 1, heads)]
    assert said == f"The keys of block {blocks - 1} · head {heads - 1}"


def test_a_column_is_a_group_and_a_head():
    heads = 8
    for group in range(5):
        for head in range(heads):
            assert group_and_head(column_of(group, head, heads), heads) == (group, head)
    assert group_and_head(8, heads) is None and group_and_head(17, heads) is None
