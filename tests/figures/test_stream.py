"""The ladder of the residual stream where a changed run is beside the unchanged one."""

import numpy as np

from gptviz.analysis.stream import Stream
from gptviz.both import Both
from gptviz.figures.stream import ladder

SIZES = np.array([[1.0], [5.0], [6.0]])
WRITES = np.array([[4.0], [2.0]])
COSINES = np.array([[0.1], [-0.5]])


def test_the_ladders_ghosts_stand_on_their_bars():
    now = Stream(SIZES, WRITES, COSINES, COSINES * 10, SIZES, 0.0, 0.0)
    old = Stream(SIZES * 2, WRITES * 3, COSINES / 2, COSINES, SIZES, 0.0, 0.0)
    fig = ladder(Both(now, old), 0, "·<b>", 0, "light")
    ghosts = fig.data[5:]
    assert [trace.name for trace in ghosts] == ["unchanged"] * 3
    assert [list(trace.y) for trace in ghosts] == [
        list(v[:, 0]) for v in (old.sizes, old.writes, old.cosines)
    ]
    assert list(ghosts[0].x) == list(fig.data[0].x) and ghosts[2].yaxis == "y2"
    assert sorted([*fig.data[1].x, *fig.data[2].x]) == list(ghosts[1].x)
    assert "`·&lt;b&gt;`" in fig.data[0].hovertext[0]
    assert len(ladder(Both(now), 0, "·<b>", 0, "light").data) == 5
