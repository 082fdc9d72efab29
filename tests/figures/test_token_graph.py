"""Small graphs over tokens: every edge is there once, as thick as its share; what it says."""

import json
import re

import numpy as np
import pytest
from plotly.io import to_json

from gptviz.analysis.flow import contribution_graph
from gptviz.analysis.paths import paths
from gptviz.figures.theme import palette
from gptviz.figures.token_graph import THICKEST, Edge, Node, flow_graph, paths_graph, token_graph
from tests.conftest import random_lm
from tests.specs import decoded

IDS = [5, 300, 17, 17, 4000, 8]
LABELS = ["a", "<b>", "·c", "·c", "`d", "e"]


@pytest.fixture(scope="module")
def lm():
    return random_lm(5, n_layers=3)


@pytest.fixture(scope="module")
def trace(lm):
    return lm.trace(IDS)


def spec(fig):
    found = decoded(json.loads(to_json(fig, validate=False)))
    found["data"][0]["customdata"] = np.array(found["data"][0]["customdata"])
    return found


def ends(shape):
    """Where a curve begins and ends."""
    numbers = [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", shape["path"])]
    return tuple(numbers[:2]), tuple(numbers[-2:])


def test_paths_are_drawn_as_they_are_found(trace, lm):
    found = paths(lm, trace, 50, 60, least=0.0)
    drawn = found.above(0.0001)
    fig = spec(paths_graph(drawn, LABELS, 5, "·word", 3, "light"))
    middles, nodes = fig["data"][:2]
    keys = [
        "part",
        "block",
        "head",
        "position",
        "to_block",
        "to_head",
        "to_position",
        "by",
        "exact",
    ]
    merged = drawn.groupby(keys, dropna=False)["logits"].sum()
    assert sorted(middles["customdata"][:, 0]) == pytest.approx(sorted(merged))
    assert np.allclose(
        middles["customdata"][:, 1], np.abs(middles["customdata"][:, 0]) / found.scale
    )
    shapes = fig["layout"]["shapes"]
    assert len(shapes) == len(merged) and {shape["line"]["dash"] for shape in shapes} == {
        "solid",
        "dot",
    }
    widths = [shape["line"]["width"] for shape in shapes]
    assert max(widths) == pytest.approx(THICKEST)
    assert np.argmax(widths) == np.argmax(middles["customdata"][:, 1])
    places = {(x, y) for x, y in zip(nodes["x"], nodes["y"], strict=True)}
    for shape in shapes:
        (x0, y0), (x1, y1) = ends(shape)
        assert {(x0, y0), (x1, y1)} <= places and y0 < y1  # from what writes up to what reads
    assert nodes["text"][0] == "·word" and max(nodes["y"]) == nodes["y"][0]
    assert len({(round(x, 6), y) for x, y in places}) == len(nodes["x"])  # no two in one place
    names = [entry["name"] for entry in fig["data"][2:]]
    assert names == ["to the word", "value", "query, first order", "key, first order"]
    ticks = fig["layout"]["xaxis"]["ticktext"]
    assert ticks[-1] == "<b>e</b>" and "·c <sub>3</sub>" in ticks
    for shape, says in zip(shapes, middles["hovertext"], strict=True):  # what is exact is full
        assert (shape["line"]["dash"] == "dot") == says.endswith("to first order")
    colors = palette("light")
    used = {shape["line"]["color"] for shape in shapes}
    assert used == {colors.output, colors.value, colors.query, colors.key}
    nothing = spec(paths_graph(found.above(2.0), LABELS, 5, "w", 3, "light"))  # but the word
    assert len(nothing["data"][1]["x"]) == 1 and not nothing["layout"].get("shapes")


def test_the_flow_is_drawn_as_it_is_found(trace, lm):
    edges = contribution_graph(lm, trace, -1, 0.03).edges
    fig = spec(flow_graph(edges, LABELS, 5, 3, "light"))
    assert sorted(fig["data"][0]["customdata"][:, 0]) == pytest.approx(
        sorted(edges["contribution"])
    )
    assert len(fig["layout"]["shapes"]) == len(edges)
    used = [shape["line"]["color"] for shape in fig["layout"]["shapes"]]
    colors = palette("light")
    for via, color in (("shortcut", colors.quiet), ("feed-forward", colors.feed_forward)):
        assert used.count(color) == (edges["via"] == via).sum()
    assert any("`d (position 4)" in says for says in fig["data"][0]["hovertext"])
    assert any("&lt;b&gt;" in tick for tick in fig["layout"]["xaxis"]["ticktext"])


def test_an_edge_goes_around_what_stands_between():
    nodes = [Node((i,), 0, i, "", "#000000", "here") for i in range(3)]
    edges = [Edge((0,), (2,), 1, 1, "#000000", ""), Edge((0,), (1,), 1, 1, "#000000", "")]
    fig = spec(token_graph(nodes, edges, ["a"], ["r"] * 3, 0, {}, "light"))
    past, next_to = fig["data"][0]["x"]
    assert abs(past) > 0.3 and next_to == 0 and set(fig["data"][1]["x"]) == {0.0}
