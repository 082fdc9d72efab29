"""The bars of the losses: their heights, the two lines, and what is marked."""

import numpy as np
import pytest

from gptviz.figures.loss import loss_bars
from gptviz.figures.theme import palette

LOSSES = np.array([2.0, 0.5, 11.0])


def drawn(losses=LOSSES, selected=1, mode="light"):
    targets = [f"·<{i}>" for i in range(len(losses))]
    return loss_bars(losses, targets, ["a < b"] * len(losses), 4.5, 9.01, 8192, selected, mode)


def test_bars_lines_and_the_selected_one():
    fig = drawn()
    (bars,) = fig.data
    assert np.allclose(bars.y, LOSSES) and bars.hovertext[0] == "a &lt; b"
    assert list(bars.marker.line.color) == [
        palette("light").quiet,
        palette("light").accent,
        palette("light").quiet,
    ]
    assert [shape.y0 for shape in fig.layout.shapes] == [9.01, 4.5]
    assert fig.layout.yaxis.range[1] > 11 and fig.layout.xaxis.ticktext[2] == "·&lt;2&gt;"
    assert "8,192" in fig.layout.annotations[0].text and "4.5000" in fig.layout.annotations[1].text
    assert bars.marker.color[1] != bars.marker.color[2]  # the deeper the dearer


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_unchanged_losses_are_ghosts_with_a_mean_of_their_own(mode):
    was = np.array([1.0, 14.0, 3.0])
    ghosts = was, ["a < b"] * 3
    fig = loss_bars(LOSSES, ["a", "b", "c"], ["x"] * 3, 4.5, 9.01, 8192, None, mode, ghosts)
    changed, ghost = fig.data
    assert np.allclose(changed.y, LOSSES) and np.allclose(ghost.y, was) and np.allclose(ghost.x, changed.x)
    assert (changed.name, ghost.name, ghost.hovertext[0]) == ("changed", "unchanged", "a &lt; b")
    assert [shape.y0 for shape in fig.layout.shapes] == [9.01, 4.5, 6.0]
    assert fig.layout.shapes[2].line.color == palette(mode).ghost and "6.00" in fig.layout.annotations[2].text
    assert fig.layout.yaxis.range[1] > 14 and fig.layout.barmode == "overlay"


def test_one_bar_is_no_wall_and_many_have_positions():
    assert drawn(LOSSES[:1], None).layout.xaxis.range[1] > 6
    many = drawn(np.ones(300), None, "dark")
    assert many.layout.xaxis.ticktext is None and many.layout.xaxis.title.text == "position"
