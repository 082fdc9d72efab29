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
    assert "unit 1, unchanged" in fig.layout.annotations[0].text
    far = gelu_dots(BEFORE, AFTER, WRITES, 2, CURVE, "dark", (2.5, 2.48))
    assert len(far.data[6].x) == 2 and len(far.data[7].x or ()) == 0  # the right panel ends at 3
    chart(far.to_dict())  # nothing is said of a point that is not there
