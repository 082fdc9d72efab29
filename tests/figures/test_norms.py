"""The LayerNorm pictures carry the values that they are given."""

import numpy as np
import pandas as pd
import pytest

from gptviz.figures.norm_inside import STAGES, norm_histograms, scale_and_shift
from gptviz.figures.norms import norm_depth, norm_grids

NAMES = ["block 0 · norm1", "block 0 · norm2", "final"]
LABELS = ["The", "·cat", "<b>", "·sat"]


def grids():
    rng = np.random.default_rng(1)
    return np.exp(rng.normal(size=(3, 4), scale=3)), np.exp(rng.normal(size=(3, 4), scale=0.2))


def test_variance_is_drawn_by_its_logarithm_on_one_scale_about_1():
    before, after = grids()
    fig = norm_grids(before, after, NAMES, LABELS, "variance", 4.0, 1, 2, "light")
    for trace, values in zip(fig.data, (before, after), strict=True):
        assert np.allclose(10.0**trace.z, values)
        assert trace.coloraxis == "coloraxis"
    assert (fig.layout.coloraxis.cmin, fig.layout.coloraxis.cmax) == (-4, 4)
    bar = fig.layout.coloraxis.colorbar
    assert dict(zip(bar.tickvals, bar.ticktext, strict=True))[0] == "1"
    assert dict(zip(bar.tickvals, bar.ticktext, strict=True))[-4] == "0.0001"


def test_means_are_drawn_as_they_are():
    before, after = grids()
    fig = norm_grids(before - 1, after - 1, NAMES, LABELS, "mean", 2.0, 0, 0, "dark")
    assert np.array_equal(fig.data[0].z, before - 1) and np.array_equal(fig.data[1].z, after - 1)


@pytest.mark.parametrize("tokens", [4, 1024])
def test_every_cell_knows_its_sentence(tokens):
    rng = np.random.default_rng(3)
    before, after = rng.normal(size=(2, 3, tokens)) ** 2
    labels = ["The", "·cat", "<b>", *["x"] * (tokens - 3)]
    fig = norm_grids(before, after, NAMES, labels, "variance", 4.0, 1, 2, "light")
    for grid, axis in zip(fig.data, (fig.layout.xaxis, fig.layout.xaxis2), strict=True):
        assert grid.type == "heatmap" and grid.y == tuple(NAMES)
        assert [axis.labelalias[x] for x in grid.x[:4]] == ["The", "·cat", "&lt;b&gt;", "x"]
        assert len(set(grid.x)) == tokens  # else Plotly would draw two columns as one
        assert np.allclose(grid.customdata[..., 0], before) and np.allclose(grid.customdata[..., 1], after)
        assert (grid.customdata[..., 2] == np.arange(tokens)).all()
        assert grid.hovertemplate.startswith("%{y} at `%{x}` (position %{customdata[2]}):<br>variance %{c")
    frames = [shape for shape in fig.layout.shapes if shape.type == "rect"]
    assert [(f.x0, f.x1, f.y0, f.y1) for f in frames] == [(1.5, 2.5, 0.5, 1.5)] * 2


def test_columns_are_labelled_with_tokens_until_there_are_too_many():
    few = norm_grids(*grids(), NAMES, LABELS, "variance", 4.0, 1, 2, "light").layout.xaxis
    assert few.ticktext is None and few.type == "category"  # Plotly labels what there is room for
    many = norm_grids(*np.ones((2, 3, 300)), NAMES, ["x"] * 300, "mean", 4.0, 1, 2, "light").layout.xaxis
    assert many.ticktext[:2] == many.tickvals[:2] == ("0", "32")


def test_a_variance_of_zero_can_be_drawn():
    fig = norm_grids(np.zeros((3, 4)), np.ones((3, 4)), NAMES, LABELS, "variance", 1.0, 0, 0, "light")
    assert np.isfinite(fig.data[0].z).all()


def test_grids_that_do_not_fit_are_refused():
    before, after = grids()
    with pytest.raises(ValueError, match="'median'"):
        norm_grids(before, after, NAMES, LABELS, "median", 1.0, 0, 0, "light")
    with pytest.raises(ValueError, match="3 norms and 2 tokens"):
        norm_grids(before, after, NAMES, LABELS[:2], "mean", 1.0, 0, 0, "light")
    with pytest.raises(ValueError, match="'median'"):
        norm_depth(pd.DataFrame(), "median", "a", 0, "light")


def test_the_curve_goes_through_the_norms_in_order():
    curve = pd.DataFrame(
        {"norm": NAMES, "variance": [0.01, 30.0, 700.0], "variance_after": [0.3, 0.9, 1.4],
         "mean": [0.1, -0.2, 0.0], "mean_after": [0.0, 0.0, 0.1]}
    )  # fmt: skip
    for quantity, kind in (("variance", "log"), ("mean", None)):
        fig = norm_depth(curve, quantity, "·cat", 1, "light")
        assert list(fig.data[0].y) == curve[quantity].tolist() and fig.data[0].name == "before"
        assert list(fig.data[1].y) == curve[f"{quantity}_after"].tolist() and fig.data[1].name == "after"
        assert list(fig.layout.xaxis.ticktext) == NAMES
        assert fig.layout.yaxis.type == kind
    label = next(a for a in norm_depth(curve, "variance", "·cat", 1, "light").layout.annotations)
    assert label.y == pytest.approx(np.log10(700))


def test_histograms_show_counts_moments_and_the_marked_dimension():
    values = np.random.default_rng(2).normal(size=256)
    histograms = {stage: np.histogram(values * k, bins=20) for k, stage in enumerate(STAGES, start=1)}
    moments = {stage: (0.5 * k, 1.5 * k) for k, stage in enumerate(STAGES, start=1)}
    fig = norm_histograms(histograms, moments, dict.fromkeys(STAGES, 0.25), 7, "dark")
    bars = [trace for trace in fig.data if trace.type == "bar"]
    assert [bar.y.sum() for bar in bars] == [256] * 3
    assert [trace.x[0] for trace in fig.data if trace.type == "scatter"] == [0.25] * 3
    texts = [annotation.text for annotation in fig.layout.annotations]
    assert texts[1] == "<b>normalised</b><br>mean 1.00<br>variance 3.000"
    bands = [shape for shape in fig.layout.shapes if shape.type == "rect"]
    assert (bands[0].x0, bands[0].x1) == pytest.approx((0.5 - 1.5**0.5, 0.5 + 1.5**0.5))


def test_a_mean_of_nothing_but_rounding_is_zero():
    counts = np.histogram(np.ones(4), bins=2)
    fig = norm_histograms(
        dict.fromkeys(STAGES, counts),
        dict.fromkeys(STAGES, (2e-17, 1.0)),
        dict.fromkeys(STAGES, 0.0),
        0,
        "light",
    )
    assert "mean 0<br>" in fig.layout.annotations[0].text


def test_scale_and_shift_are_the_weights():
    scale, shift = np.linspace(0.5, 1.5, 16), np.linspace(-1, 1, 16)
    fig = scale_and_shift(scale, shift, 3, "light")
    assert np.array_equal(fig.data[0].y, scale) and np.array_equal(fig.data[1].y, shift)
    assert [line.y0 for line in fig.layout.shapes if line.y0 == line.y1] == [1, 0]
    alone = scale_and_shift(scale, None, 3, "light")
    assert len(alone.data) == 1


def test_the_difference_is_how_many_times_as_large_and_says_both():
    before, after = grids()
    old = before * 10, after / 100
    fig = norm_grids(before, after, NAMES, LABELS, "variance", 2.0, 1, 2, "light", unchanged=old)
    assert np.allclose(fig.data[0].z, -1) and np.allclose(fig.data[1].z, 2)
    assert np.allclose(fig.data[0].customdata[..., 3], old[0])
    assert np.allclose(fig.data[1].customdata[..., 4], old[1])
    assert (
        "before it %{customdata[3]:.3r} unchanged, %{customdata[0]:.3r} changed" in fig.data[0].hovertemplate
    )
    assert (
        "after it %{customdata[4]:.3r} unchanged, %{customdata[1]:.3r} changed" in fig.data[1].hovertemplate
    )
    assert fig.layout.coloraxis.colorbar.ticktext == ("÷ 100", "as it was", "× 100")
    means = norm_grids(before, after, NAMES, LABELS, "mean", 2.0, 1, 2, "dark", unchanged=old)
    assert np.allclose(means.data[0].z, before - old[0])


def test_the_unchanged_curve_is_a_ghost():
    curve = pd.DataFrame({"norm": NAMES, "variance": [0.01, 30.0, 700.0], "variance_after": [0.3, 0.9, 1.4]})
    old = curve.assign(variance=[0.01, 31.0, 500.0])
    fig = norm_depth(curve, "variance", "·cat", 1, "light", old)
    lines = {trace.name: list(trace.y) for trace in fig.data if trace.showlegend is not False}
    assert lines == {"unchanged": [0.01, 31.0, 500.0]}
    dashes = {trace.name: trace.line.dash for trace in fig.data}
    assert dashes == {"unchanged": "dash", "before": "solid", "after": "solid"}
