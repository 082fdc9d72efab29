"""The curves of a training: every number where it belongs, no number where there is none."""

import numpy as np

from gptviz.figures.training import Level, training_curves
from gptviz.training.live.seen import Curves

STEPS = np.array([0, 20, 40])
SCORES = np.linspace(0, 0.9, 12).reshape(3, 2, 2)
LEVELS = [Level("a blind guess", 4.0), Level("bigram", 3.9), Level("floor", 1.0)]


def run(name="one", validation=(4.2, 3.0, 2.0)):
    return Curves(
        name, STEPS, np.array([np.nan, 3.5, 2.5]), np.array(validation), SCORES, SCORES[::-1] * 0.5
    )


def test_every_head_has_a_line_and_the_best_a_strong_one():
    data = training_curves([run()], LEVELS, 20, 60, "light").data
    thin = [trace for trace in data if trace.opacity is not None]
    assert len(thin) == 8  # four heads, two scores
    best = next(trace for trace in data if trace.name == "best induction head")
    assert best.hovertext[2].endswith("induction 0.90, block 1, head 1")


def test_a_loss_beyond_all_bounds_leaves_the_picture_and_not_the_axis():
    fig = training_curves([run(validation=(4.2, 900.0, np.inf))], LEVELS, 20, 60, "dark")
    low, high = fig.layout.yaxis.range
    assert 0 <= low < 1.0 and 4.0 < high < 8
    validation = next(trace for trace in fig.data if trace.name == "validation")
    assert validation.y == (4.2, 900.0, None)


def test_a_second_run_is_dashed_and_named_once():
    data = training_curves([run(), run("two")], LEVELS, 20, 60, "light").data
    dashed = [trace for trace in data if trace.line.dash == "dash"]
    assert len(dashed) == 4 and [t.name for t in dashed if t.showlegend] == ["dashed: two"]


def test_levels_that_nearly_are_one_do_not_cover_each_other():
    notes = training_curves([run()], LEVELS, 20, 60, "light").layout.annotations
    anchors = {note.text.split(":")[0]: note.yanchor for note in notes}
    assert anchors == {"a blind guess": "bottom", "bigram": "top", "floor": "top"}
