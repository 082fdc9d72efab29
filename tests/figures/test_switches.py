"""The panels of the five switches: every seed a thin line, the mean a strong one, the base beside each."""

import numpy as np
import pandas as pd

from gptviz.figures.switches import signed, switch_curves

LOSSES = {
    ("base", 1): [4.0, 3.0],
    ("base", 2): [4.2, 3.4],
    ("up", 1): [4.0, 3.2],
    ("up", 2): [4.2, 3.5],
    ("down", 1): [3.9, 2.5],
}
NAMES = ["base", "up", "down", "none <yet>", "last"]
POINTS = pd.DataFrame(
    [
        (name, seed, step, loss)
        for (name, seed), losses in LOSSES.items()
        for step, loss in zip((20, 40), losses, strict=True)
    ],
    columns=["variant", "seed", "step", "validation"],
)


def panel(fig, number):
    axis = "x" if number == 1 else f"x{number}"
    return [trace for trace in fig.data if (trace.xaxis or "x") == axis]


def test_losses_stand_beside_those_of_the_base_with_the_same_seeds():
    fig = switch_curves(POINTS, NAMES, "base", 40, "light")
    dashed, *thin, mean = panel(fig, 1)
    assert dashed.line.dash == "dash" and np.allclose(dashed.y, [4.1, 3.2])
    assert [[*line.y] for line in thin] == [LOSSES["up", 1], LOSSES["up", 2]]
    assert np.allclose(mean.y, [4.1, 3.35]) and mean.line.width == 3
    assert mean.hovertext[1] == "up, step 40: 3.350 nats"
    dashed, thin, mean = panel(fig, 2)
    # the base's second seed has no partner here
    assert [*dashed.y] == LOSSES["base", 1] and [*mean.y] == [*thin.y] == LOSSES["down", 1]
    assert not panel(fig, 3)
    headings = [note.text for note in fig.layout.annotations]
    assert headings[:4] == [
        "<b>up</b>  +0.15",
        "<b>down</b>  −0.50",
        "<b>none &lt;yet&gt;</b>",
        "<b>last</b>",
    ]
    note = fig.layout.annotations[4]  # where the two lines are farthest from each other
    assert (note.text, note.xref, note.yref, note.y) == ("dashed: base", "x2", "y2", 3.0)


def test_all_panels_share_a_scale_and_all_that_is_drawn_is_in_it():
    for shown in ("loss", "change"):
        fig = switch_curves(POINTS, NAMES, "base", 40, "dark", shown)
        ranges = {tuple(axis.range) for axis in fig.select_yaxes()}
        assert len(ranges) == 1
        ((low, high),) = ranges
        drawn = np.concatenate([trace.y for trace in fig.data])
        assert low < drawn.min() and drawn.max() < high
        assert {tuple(axis.range) for axis in fig.select_xaxes()} == {(0, 40.8)}


def test_changes_are_from_the_base_of_the_same_seed():
    fig = switch_curves(POINTS, NAMES, "base", 40, "light", "change")
    *thin, mean = panel(fig, 1)
    assert np.allclose([line.y for line in thin], [[0, 0.2], [0, 0.1]])
    assert np.allclose(mean.y, [0, 0.15]) and mean.hovertext[1] == "up, step 40: +0.15 nats"
    low, high = fig.layout.yaxis.range
    assert low < -0.5 and high > 0.2 and fig.layout.annotations[-1].y == 0
    assert len(fig.layout.shapes) == 4  # the level of the base in each panel


def test_before_anything_is_trained_there_are_empty_panels():
    fig = switch_curves(POINTS[:0], NAMES, "base", 40, "light")
    assert not fig.data and [*fig.layout.yaxis.range] == [-0.1, 0.1]


def test_a_change_has_its_sign_and_the_digits_that_it_needs():
    assert [signed(x) for x in (0.2345, -0.2345, 0.0123, -0.0004, 0.0004)] == [
        "+0.23", "−0.23", "+0.012", "0.000", "0.000",
    ]  # fmt: skip
