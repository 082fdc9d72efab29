"""The shared signed scale, and the likeness of positions."""

import numpy as np
import pytest

from gptviz.figures.heatmaps import axis_names, signed_axis, similarity_curve, similarity_matrix
from gptviz.figures.neighbors import neighbor_bars
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


def test_bars_of_neighbours_carry_their_numbers():
    fig = neighbor_bars(["·dog", "<b>"], [5, 9], np.array([0.71234, 0.5]), "cosine", "·cat", "light")
    bar = fig.data[0]
    assert list(bar.x) == [0.71234, 0.5] and list(bar.text) == ["0.712", "0.500"]
    assert fig.layout.yaxis.ticktext == ("·dog", "&lt;b&gt;")
    assert fig.layout.yaxis.range == (1.5, -0.5)  # the nearest on top
    with pytest.raises(ValueError, match="'l2'"):
        neighbor_bars(["a"], [1], np.array([1.0]), "l2", "b", "light")


def test_bars_reach_below_zero_where_a_number_does():
    fig = neighbor_bars(["a", "b"], [1, 2], np.array([0.1, -0.4]), "dot", "c", "light")
    low, high = fig.layout.xaxis.range
    assert low < -0.4 and high > 0.1
