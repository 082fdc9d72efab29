"""Inside one LayerNorm: the distribution of one token's values, stage by stage, and scale and shift.

Shapes: D dimensions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import UNCHANGED, ghost_curve
from gptviz.figures.heatmaps import Floats, axis_names
from gptviz.figures.marks import Axes, across, band, heading, line, upright
from gptviz.figures.theme import Mode, figure, palette

STAGES = ("before", "normalised", "after")  # what is drawn of the four stages: see analysis/norms.py


def norm_histograms(
    histograms: dict[str, tuple[NDArray[np.int64], Floats]],
    moments: dict[str, tuple[float, float]],
    marked: dict[str, float],
    dimension: int,
    mode: Mode,
    unchanged: dict[str, tuple[NDArray[np.int64], float]] | None = None,
) -> Figure:
    """The D values of one token before, normalised and after, each on its own axis.

    By stage: `histograms` counts and edges, `moments` mean and variance, `marked` the value of
    `dimension`. A line stands at the mean, a band of one standard deviation about it. `unchanged` counts, in
    the same bins, and the dimension's value are those of the model without its changes: a ghost's outline
    and an open mark.
    """
    colors = palette(mode)
    width, gap = 0.3, 0.05
    unchanged = unchanged or {}
    tallest = max(int(counts.max()) for counts, _ in [*histograms.values(), *unchanged.values()])
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"bargap": 0.06, "shapes": [], "annotations": []}
    for number, stage in enumerate(STAGES, start=1):
        mean, variance = moments[stage]
        x, y = axis_names(number, "x"), axis_names(number, "y")
        axes, start, deviation = (x[0], y[0]), (number - 1) * (width + gap), variance**0.5
        traces += [
            _bins(*histograms[stage], stage, axes, colors.accent if stage == "after" else colors.quiet),
            _mark(marked[stage], stage, dimension, axes, colors.positive),
        ]
        if stage in unchanged:
            counts, value = unchanged[stage]
            traces[-2]["opacity"] = 0.5  # so that the outline is seen where it lies on them
            traces += [
                _outline(counts, histograms[stage][1], stage, axes, mode),
                _mark(value, f"{stage}, {UNCHANGED}", dimension, axes, colors.ghost, "triangle-up-open"),
            ]
        layout["shapes"] += [
            band(mean - deviation, mean + deviation, colors.panel, axes),
            upright(mean, line(colors.ink, 1.5), axes),
        ]
        words = f"<b>{stage}</b><br>mean {_near_zero(mean)}<br>variance {significant(variance, 4)}"
        layout["annotations"].append(heading(words, start, 1))
        layout[x[1]] = {"domain": [start, start + width], "anchor": y[0]}
        layout[y[1]] = {"anchor": x[0], "range": [0, tallest * 1.05], "showticklabels": number == 1}
    layout["yaxis"]["title"] = {"text": "dimensions"}
    return figure(traces, layout, mode, height=330, t=70)


def _near_zero(value: float) -> str:
    """A mean that is zero but for rounding is written as zero: 2 × 10⁻¹⁷ would read as a discovery."""
    return "0" if abs(value) < 1e-9 else significant(value, 3)


def _bins(counts: NDArray[np.int64], edges: Floats, stage: str, axes: Axes, color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts,
        "width": np.diff(edges) * 0.94,
        "marker": {"color": color, "line": {"width": 0}},
        "customdata": np.stack([edges[:-1], edges[1:]], axis=-1),
        "hovertemplate": f"{stage}: %{{y}} dimensions lie between "
        "%{customdata[0]:.3f} and %{customdata[1]:.3f}<extra></extra>",
        "xaxis": axes[0],
        "yaxis": axes[1],
    }


def _outline(counts: NDArray[np.int64], edges: Floats, stage: str, axes: Axes, mode: Mode) -> dict[str, Any]:
    """The unchanged histogram, as a line of steps around where its bars would be."""
    says = [
        f"{stage}, {UNCHANGED}: {count} dimensions lie between {low:.3f} and {high:.3f}"
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
    ]
    stroke = line(palette(mode).ghost, 2) | {"shape": "hv"}
    ends = np.concatenate([edges[:1], edges])  # up from the axis, and down to it again
    steps = np.concatenate([[0], counts, [0]])
    return ghost_curve(
        ends, steps, mode, [says[0], *says, says[-1]], line=stroke, xaxis=axes[0], yaxis=axes[1]
    )


def _mark(
    value: float, stage: str, dimension: int, axes: Axes, color: str, symbol: str = "triangle-up"
) -> dict[str, Any]:
    """A triangle on the axis, below the chosen dimension's value."""
    return {
        "type": "scatter",
        "x": [value],
        "y": [0],
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"symbol": symbol, "size": 13, "color": color},
        "hovertemplate": f"dimension {dimension}, {stage}: %{{x:.4f}}<extra></extra>",
        "xaxis": axes[0],
        "yaxis": axes[1],
    }


def scale_and_shift(scale: Floats, shift: Floats | None, dimension: int, mode: Mode) -> Figure:
    """The norm's own weights, a bar a dimension: with a line where it would change nothing: at 1 and at 0.

    Curves 0 and 1 are scale and shift; their x is the dimension. A norm without shift has one panel.
    """
    colors = palette(mode)
    panels = [("scale", scale, 1.0, colors.quiet)] + (
        [("shift", shift, 0.0, colors.output)] if shift is not None else []
    )
    dimensions = np.arange(len(scale), dtype=np.int32)
    bars: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"bargap": 0, "clickmode": "event+select", "shapes": []}
    for number, (name, weights, rest, color) in enumerate(panels, start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        axes, last = (x[0], y[0]), number == len(panels)
        fills = np.where(dimensions == dimension, colors.accent, color)
        bars.append(
            {
                "type": "bar",
                "x": dimensions,
                "y": weights,
                "xaxis": x[0],
                "yaxis": y[0],
                "marker": {"color": fills, "line": {"width": 0}},
                "selected": {"marker": {"opacity": 1}},
                "unselected": {"marker": {"opacity": 1}},
                "hovertemplate": f"{name}[%{{x}}] is %{{y:.4f}}<extra></extra>",
            }
        )
        layout["shapes"] += [
            upright(dimension, line(colors.accent, 1, "dot"), axes),
            across(rest, line(colors.quiet, 1), axes),
        ]
        layout[x[1]] = {
            "anchor": y[0],
            "range": [-1, len(scale)],
            "showgrid": False,
            "showticklabels": last,
        }
        if last:
            layout[x[1]]["title"] = {"text": "dimension"}
        if number == 2:
            layout[x[1]]["matches"] = "x"
        upper, lower = [0.56, 1], [0, 0.44]
        layout[y[1]] = {
            "anchor": x[0],
            "title": {"text": name},
            "fixedrange": True,
            "domain": [0, 1] if len(panels) == 1 else (upper, lower)[number - 1],
        }
    return figure(bars, layout, mode, height=200 * len(panels) + 40)
