"""The Scaling page's pictures: what is drawn is what was given."""

import numpy as np
import pytest

from gptviz.figures import scaling as figures
from gptviz.lessons import cost
from gptviz.lessons.scaling import by_size


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_each_is_a_figure_with_its_numbers(mode):
    table = by_size()
    fig = figures.by_size(table, "variance", "variance", 64, mode, log=True)
    assert np.allclose(fig.data[0].y, table["variance"]) and fig.layout.yaxis.type == "log"
    bars = figures.pairs_of_bars([np.array([0.2, 0.8]), np.array([0.4, 0.6])], ("a", "b"), "xy", "w", mode)
    assert [list(trace.y) for trace in bars.data] == [[0.2, 0.8], [0.4, 0.6]]
    square = figures.weight_grid(np.eye(3), ["a", "<b>", "c"], 1.0, mode)
    assert len(square.data) == 2 and square.layout.xaxis.ticktext[1] == "&lt;b&gt;"
    assert len(figures.weight_grid(np.eye(9), ["t"] * 9, 1.0, mode).data) == 1


def test_the_line_of_T_squared_ends_at_the_largest_measured():
    table = cost.table([cost.Cost(64, 0.5, 100), cost.Cost(256, 4.0, 1600)])
    fig = figures.cost(table, "seconds", "seconds", "light")
    assert list(fig.data[0].y) == [0.25, 4.0] and list(fig.data[1].y) == [0.5, 4.0]
