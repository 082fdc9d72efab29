"""Inside one LayerNorm: the distribution of one token's values, stage by stage, and scale and shift.

Shapes: D dimensions.
"""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.heatmaps import Floats, axis_names
from gptviz.figures.theme import Mode, finish, palette

STAGES = ("before", "normalised", "after")  # what is drawn of the four stages: see analysis/norms.py


def norm_histograms(
    histograms: dict[str, tuple[NDArray[np.int64], Floats]],
    moments: dict[str, tuple[float, float]],
    marked: dict[str, float],
    dimension: int,
    mode: Mode,
) -> go.Figure:
    """The D values of one token before, normalised and after, each on its own axis.

    By stage: `histograms` counts and edges, `moments` mean and variance, `marked` the value of
    `dimension`. A line stands at the mean, a band of one standard deviation about it.
    """
    colors = palette(mode)
    fig = go.Figure()
    width, gap = 0.3, 0.05
    tallest = max(int(counts.max()) for counts, _ in histograms.values())
    for number, stage in enumerate(STAGES, start=1):
        counts, edges = histograms[stage]
        mean, variance = moments[stage]
        x, y = axis_names(number, "x"), axis_names(number, "y")
        start = (number - 1) * (width + gap)
        fig.add_trace(
            _bins(counts, edges, stage, x[0], y[0], colors.accent if stage == "after" else colors.quiet)
        )
        fig.add_trace(
            go.Scatter(
                x=[marked[stage]], y=[0], mode="markers", xaxis=x[0], yaxis=y[0], cliponaxis=False,
                marker={"symbol": "triangle-up", "size": 13, "color": colors.positive},
                hovertemplate=f"dimension {dimension}, {stage}: %{{x:.4f}}<extra></extra>",
            )
        )  # fmt: skip
        deviation = variance**0.5
        fig.add_vrect(
            mean - deviation, mean + deviation, fillcolor=colors.panel, line_width=0, layer="below",
            xref=x[0], yref=y[0],
        )  # fmt: skip
        fig.add_vline(mean, line={"color": colors.ink, "width": 1.5}, xref=x[0], yref=y[0])
        fig.add_annotation(
            text=f"<b>{stage}</b><br>mean {_near_zero(mean)}<br>variance {significant(variance, 4)}",
            x=start, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom", align="left",
            showarrow=False,
        )  # fmt: skip
        fig.update_layout(
            {
                x[1]: {"domain": [start, start + width], "anchor": y[0]},
                y[1]: {"anchor": x[0], "range": [0, tallest * 1.05], "showticklabels": number == 1},
            }
        )
    fig.update_layout(bargap=0.06, yaxis_title="dimensions")
    finish(fig, mode, height=330)
    fig.update_layout(margin={"t": 70})
    return fig


def _near_zero(value: float) -> str:
    """A mean that is zero but for rounding is written as zero: 2 × 10⁻¹⁷ would read as a discovery."""
    return "0" if abs(value) < 1e-9 else significant(value, 3)


def _bins(counts: NDArray[np.int64], edges: Floats, stage: str, x: str, y: str, color: str) -> go.Bar:
    return go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges) * 0.94,
        marker={"color": color, "line": {"width": 0}},
        customdata=np.stack([edges[:-1], edges[1:]], axis=-1),
        hovertemplate=f"{stage}: %{{y}} dimensions lie between "
        "%{customdata[0]:.3f} and %{customdata[1]:.3f}"
        "<extra></extra>",
        xaxis=x,
        yaxis=y,
    )


def scale_and_shift(scale: Floats, shift: Floats | None, dimension: int, mode: Mode) -> go.Figure:
    """The norm's own weights, a bar a dimension: with a line where it would change nothing: at 1 and at 0.

    Curves 0 and 1 are scale and shift; their x is the dimension. A norm without shift has one panel.
    """
    colors = palette(mode)
    panels = [("scale", scale, 1.0, colors.quiet)] + (
        [("shift", shift, 0.0, colors.output)] if shift is not None else []
    )
    fig = go.Figure()
    dimensions = np.arange(len(scale), dtype=np.int32)
    for number, (name, weights, rest, color) in enumerate(panels, start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        top = 1.0 if number == 1 else 0.44
        fig.add_trace(
            go.Bar(
                x=dimensions, y=weights, xaxis=x[0], yaxis=y[0],
                marker={
                    "color": np.where(dimensions == dimension, colors.accent, color), "line": {"width": 0},
                },
                selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
                hovertemplate=f"{name}[%{{x}}] is %{{y:.4f}}<extra></extra>",
            )
        )  # fmt: skip
        fig.add_vline(
            dimension,
            line={"color": colors.accent, "width": 1, "dash": "dot"},
            xref=x[0],
            yref=y[0],
        )
        fig.update_layout(
            {
                x[1]: {
                    "anchor": y[0], "range": [-1, len(scale)], "showgrid": False,
                    "showticklabels": number == len(panels),
                    "title": "dimension" if number == len(panels) else None,
                },
                y[1]: {
                    "anchor": x[0], "title": name, "fixedrange": True,
                    "domain": [0, 1] if len(panels) == 1 else [top - 0.44, top] if number == 2 else [0.56, 1],
                },
            }
        )  # fmt: skip
        fig.add_hline(rest, line={"color": colors.quiet, "width": 1}, xref=x[0], yref=y[0])
        if number == 2:
            fig.update_layout({x[1]: {"matches": "x"}})
    fig.update_layout(bargap=0, clickmode="event+select")
    return finish(fig, mode, height=200 * len(panels) + 40)
