"""The pictures of one norm. Their bars and outlines: tests/pages/test_layernorm.py."""

import numpy as np

from gptviz.analysis.norms import norm_steps, norms_of
from gptviz.both import Both
from gptviz.figures.norms import DRAWN, norm_histograms


def test_histograms_show_moments_and_the_marked_dimension_of_both_runs(lm):
    x, old = np.random.default_rng(2).normal(size=(2, 32)) + 1
    steps = Both(x, old).map(lambda values: norm_steps(norms_of(lm.model)[0], values))
    fig = norm_histograms(steps, 7, "dark")
    marks = [
        trace.x[0] for trace in fig.data if trace.type == "scatter" and trace.mode == "markers"
    ]
    assert marks == [s.stage(stage)[7] for stage in DRAWN for s in (steps.now, steps.was)]
    bands = [shape for shape in fig.layout.shapes if shape.type == "rect"]
    assert np.allclose([bands[0].x0, bands[0].x1], [x.mean() - x.std(), x.mean() + x.std()])
    texts = [annotation.text for annotation in fig.layout.annotations]
    # a mean that is 0 but for rounding is written as 0
    assert texts[1].startswith("<b>normalised</b><br>mean 0<br>")
