"""Positions as pictures."""

import numpy as np

from gptviz.figures.positions import position_rows
from gptviz.lessons.positions import sinusoidal


def test_rows():
    rows = sinusoidal(20, 8)
    fig = position_rows(rows.numpy(), list(range(8)), 1.0, 3, "light")
    assert np.allclose(fig.data[0].z, rows) and fig.layout.shapes[0].y0 == 3
    assert not position_rows(rows.numpy(), list(range(8)), 1.0, 50, "light").layout.shapes
