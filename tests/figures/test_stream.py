"""The residual stream's pictures where a changed run is beside the unchanged one."""

import numpy as np

from gptviz.figures.stream import end_shares, ladder
from gptviz.figures.stream_maps import Table, stream_changes

NAMES = ["embedding", "block 0 · attention", "block 0 · feed-forward"]
SIZES, WRITES, COSINES = np.array([1.0, 5.0, 6.0]), np.array([4.0, 2.0]), np.array([0.1, -0.5])


def test_the_ladders_ghosts_stand_on_their_bars():
    old = SIZES * 2, WRITES * 3, COSINES / 2
    fig = ladder(SIZES, WRITES, COSINES, COSINES * 10, "·<b>", 0, "light", old)
    ghosts = fig.data[5:]
    assert [trace.name for trace in ghosts] == ["unchanged"] * 3
    assert [list(trace.y) for trace in ghosts] == [list(values) for values in old]
    assert list(ghosts[0].x) == list(fig.data[0].x) and ghosts[2].yaxis == "y2"
    assert sorted([*fig.data[1].x, *fig.data[2].x]) == list(ghosts[1].x)
    assert len(ladder(SIZES, WRITES, COSINES, COSINES * 10, "·<b>", 0, "light").data) == 5


def test_the_shares_have_ghosts_in_percent():
    fig = end_shares(np.array([0.2, 0.3, 0.5]), NAMES, 0, "dark", np.array([0.1, 0.4, 0.5]))
    assert list(fig.data[1].y) == [10, 40, 50] and fig.layout.barmode == "overlay"


def test_the_maps_of_a_change():
    distances = np.array([[0.0, 0.0], [0.5, 0.0], [np.inf, 0.25]])
    writes, old = np.array([[10.0, 2.0], [0.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 2.0]])
    fig = stream_changes(distances, distances * 90, writes, old, Table(NAMES, ["a", "<b>"], 1, 0), "light")
    moved, times = fig.data
    assert np.array_equal(moved.z, [[0, 0], [0.5, 0], [0.5, 0.25]])  # what has no size to be compared with
    assert np.isnan(times.z[0]).all() and np.allclose(times.z[1:], [[1, 0], [-1, np.log10(2)]])
    assert np.allclose(times.customdata[1:, :, 2], old) and np.allclose(times.customdata[1:, :, 3], writes)
    assert (times.customdata[..., 4] == [0, 1]).all()
    zero = np.zeros((3, 2))
    still = stream_changes(zero, zero, old, old, Table(NAMES, ["a", "b"], 1, 0), "dark")
    assert not still.data[0].z.any() and not still.data[1].z[1:].any()
