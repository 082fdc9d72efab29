"""The pictures of one norm carry the values that they are given."""

import numpy as np

from gptviz.analysis.norms import norm_steps, norms_of
from gptviz.both import Both
from gptviz.figures.norms import DRAWN, norm_histograms


def steps(lm, x):
    return norm_steps(norms_of(lm.model)[0], x)


def test_histograms_show_counts_moments_and_the_marked_dimension(lm):
    x, old = np.random.default_rng(2).normal(size=(2, 32)) + 1
    fig = norm_histograms(Both(steps(lm, x), steps(lm, old)), 7, "dark")
    bars = [trace for trace in fig.data if trace.type == "bar"]
    assert [bar.y.sum() for bar in bars] == [32] * 3
    outlines = [trace for trace in fig.data if trace.name == "unchanged"]
    assert [sum(trace.y[1:-1]) for trace in outlines] == [32] * 3
    marks = [trace.x[0] for trace in fig.data if trace.type == "scatter" and trace.mode == "markers"]
    assert marks == [s.stage(stage)[7] for stage in DRAWN for s in (steps(lm, x), steps(lm, old))]
    bands = [shape for shape in fig.layout.shapes if shape.type == "rect"]
    assert np.allclose([bands[0].x0, bands[0].x1], [x.mean() - x.std(), x.mean() + x.std()])
    texts = [annotation.text for annotation in fig.layout.annotations]
    # a mean that is 0 but for rounding is written as 0
    assert texts[1].startswith("<b>normalised</b><br>mean 0<br>")
