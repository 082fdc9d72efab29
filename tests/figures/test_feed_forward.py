"""The feed-forward's pictures where a changed run is beside the unchanged one."""

import numpy as np

from gptviz.figures.feed_forward import gated_dots, gelu_dots
from gptviz.figures.still.charts import chart

BEFORE = np.array([2.0, -1.0, 9.0])
AFTER = np.array([1.95, -0.16, 9.0])
WRITES = np.abs(AFTER)
CURVE = np.array([-4.0, 9.0]), np.array([0.0, 9.0])


def test_the_chosen_unit_has_a_ghost_where_it_was():
    fig = gelu_dots(BEFORE, AFTER, WRITES, 1, CURVE, "light", (2.5, 2.48))
    assert len(fig.data) == 8 and len(gelu_dots(BEFORE, AFTER, WRITES, 1, CURVE, "light").data) == 6
    for ghost in fig.data[6:]:
        assert (list(ghost.x), list(ghost.y)) == (
            [2.5, -1.0],
            [2.48, -0.16],
        ) and ghost.name == "unchanged"
    words = [note.text for note in fig.layout.annotations]
    assert "2 fire" in words[0] and "1 does not" in words[1] and "unit 1, unchanged" in words[3]
    far = gelu_dots(BEFORE, AFTER, WRITES, 2, CURVE, "dark", (2.5, 2.48))
    assert len(far.data[6].x) == 2 and len(far.data[7].x or ()) == 0  # the inset ends at 3
    chart(far.to_dict())  # nothing is said of a point that is not there


def test_the_inset_lies_over_no_dot():
    """Where most units fire, and strongly, the picture goes on to the left, so that there is room for it."""
    for low, high in ((-4.0, 9.0), (-1.0, 40.0), (-60.0, 1.0), (-60.0, 0.01)):
        before = np.array([low, high])
        curve = np.array([low, high]), np.maximum(before, 0)
        layout = gelu_dots(before, np.maximum(before, 0), WRITES[:2], 1, curve, "light").layout
        first, last = layout.xaxis.range
        zero = -first / (last - first)
        start, end = layout.xaxis2.domain
        floor, ceiling = layout.yaxis.range
        assert -floor / (ceiling - floor) < layout.yaxis2.domain[0]  # 0 is below it
        assert first <= low and end - start > 0.25 and end < zero


def test_a_gated_unit_is_coloured_by_its_gate_and_its_output():
    gate = np.array([2.0, 1.0, -1.5])
    up = np.array([0.5, -3.0, 2.0])
    output = gate / (1 + np.exp(-gate)) * up
    x = np.linspace(-4, 4, 81)
    curve = x, x / (1 + np.exp(-x))
    fig = gated_dots((gate, up, output, np.abs(output)), 1, curve, "light", (0.5, 3.5))
    dots, _, silu, chosen, ghost = fig.data
    order = list(dots.customdata)
    assert sorted(order) == [0, 1, 2] and order[-1] == 1  # the chosen one on top
    sign = {0: 1, 1: -1, 2: 0}
    assert [sign[i] for i in order] == list(dots.marker.color)
    assert (chosen.x[0], chosen.y[0]) == (1.0, np.float64(1 / (1 + np.exp(-1))))
    assert (list(ghost.x), list(ghost.y)) == ([0.5, 1.0], [3.5, -3.0])
    low, high = fig.layout.xaxis.range
    assert low < -1.5 and 2 < high < 3 and fig.layout.yaxis.range[1] > 3.5
    assert silu.name == "SiLU" and ghost.name == "unchanged"
    words = " ".join(note.text for note in fig.layout.annotations)
    assert "1 gives more than 0" in words and "1 gives less" in words and "1 gate is shut" in words
    chart(fig.to_dict())
