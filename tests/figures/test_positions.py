"""Positions as pictures: arrows stand where the rotation puts them."""

import numpy as np
import pytest

from gptviz.figures.positions import dials, position_rows
from gptviz.lessons.positions import frequencies, rotations, sinusoidal


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_an_arrow_points_where_the_row_is_turned_to(mode):
    speeds = frequencies(16)
    fig = dials({i: float(speeds[i]) for i in (0, 3, 7)}, 9, 4, mode)
    rows = rotations(10, 16)
    for name, position in (("query", 9), ("key", 4)):
        arrows = [trace for trace in fig.data if trace.name and trace.name.startswith(name)]
        for arrow, pair in zip(arrows, (0, 3, 7), strict=True):
            tip = (arrow.x[1] - arrow.x[0], arrow.y[1] - arrow.y[0])
            assert tip == pytest.approx(rows[position, 2 * pair : 2 * pair + 2].tolist())
    assert "5.00 rad" in fig.layout.annotations[0].text


def test_rows():
    rows = sinusoidal(20, 8)
    fig = position_rows(rows.numpy(), list(range(8)), 1.0, 3, "light")
    assert np.allclose(fig.data[0].z, rows) and fig.layout.shapes[0].y0 == 3
    assert not position_rows(rows.numpy(), list(range(8)), 1.0, 50, "light").layout.shapes
