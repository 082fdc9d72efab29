"""The feed-forward's pictures where a changed run is beside the unchanged one."""

import numpy as np

from gptviz.figures.feed_forward import gelu_dots
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
