"""The shared signed scale, and the likeness of positions."""

import numpy as np
import pytest

from gptviz.figures.heatmaps import axis_names, signed_axis, similarity_curve, similarity_matrix
from gptviz.figures.theme import palette


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_signed_scale_is_centred_on_zero(mode):
    axis = signed_axis(0.5, mode, 1.0)
    assert axis["cmin"] == -axis["cmax"] == -0.5
    assert axis["colorscale"][len(axis["colorscale"]) // 2] == (0.5, palette(mode).paper)
    assert axis["colorbar"]["ticktext"] == ["−0.50", "0", "0.50"]


def test_names_of_axes():
    assert axis_names(1, "x") == ("x", "xaxis") and axis_names(3, "y") == ("y3", "yaxis3")


def test_the_matrix_and_the_curve_hold_the_cosines_and_mark_the_position():
    cosines = np.linspace(-1, 1, 64).reshape(8, 8).astype(np.float32)
    matrix = similarity_matrix(cosines, np.arange(0, 16, 2), 6, "light")
    assert np.array_equal(matrix.data[0].z, cosines) and list(matrix.data[0].x) == list(range(0, 16, 2))
    assert [line.y0 if line.y0 == line.y1 else line.x0 for line in matrix.layout.shapes] == [6, 6]
    curve = similarity_curve(cosines[3], 3, 5, "dark")
    assert np.array_equal(curve.data[0].y, cosines[3])
    assert (curve.data[1].x[0], curve.data[1].y[0]) == (3, float(cosines[3, 3]))
    assert (curve.layout.shapes[0].x0, curve.layout.shapes[0].x1) == (-0.5, 4.5)
