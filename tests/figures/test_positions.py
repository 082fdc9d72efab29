"""Positions as pictures: arrows stand where the rotation puts them, curves are the table's."""

import numpy as np
import pandas as pd
import pytest

from gptviz.figures.positions import by_distance, dials, position_rows, scores_along
from gptviz.lessons.positions import frequencies, products_by_distance, rotations, sinusoidal


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


def test_rows_and_products():
    rows = sinusoidal(20, 8)
    fig = position_rows(rows.numpy(), list(range(8)), 1.0, 3, "light")
    assert np.allclose(fig.data[0].z, rows) and fig.layout.shapes[0].y0 == 3
    assert not position_rows(rows.numpy(), list(range(8)), 1.0, 50, "light").layout.shapes
    table = products_by_distance(rows)
    curve = by_distance(table, 3, "dark")
    assert np.allclose(curve.data[2].y, table["mean"]) and np.allclose(curve.data[1].y, table["most"])


def test_scores_begin_where_the_first_pair_has_room():
    scores = pd.DataFrame({n: np.arange(5.0) + i for i, n in enumerate("abcd")}, index=range(3, 8))
    fig = scores_along(scores, 6, "light")
    assert [list(trace.x) for trace in fig.data] == [[3, 4, 5, 6, 7]] * 4
    assert [trace.y[0] for trace in fig.data] == [0, 1, 2, 3]
