"""The pictures of why √d and of dropout: what is drawn is what was given."""

import numpy as np
import pytest

from gptviz.figures import scaling as figures


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_each_is_a_figure_with_its_numbers(mode):
    bars = figures.pairs_of_bars([np.array([0.2, 0.8]), np.array([0.4, 0.6])], ("a", "b"), "xy", "w", mode)
    assert [list(trace.y) for trace in bars.data] == [[0.2, 0.8], [0.4, 0.6]]
    square = figures.weight_grid(np.eye(3), ["a", "<b>", "c"], 1.0, mode)
    assert len(square.data) == 2 and square.layout.xaxis.ticktext[1] == "&lt;b&gt;"
    assert len(figures.weight_grid(np.eye(9), ["t"] * 9, 1.0, mode).data) == 1
