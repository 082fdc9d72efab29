"""LayerNorm before and after: over all norms and tokens, through the depth, and inside one norm.

Shapes: N norms in the order of the network, T tokens, D dimensions. A variance is drawn by its
logarithm, so that the scale's middle, the paper, is a variance of exactly 1.
"""

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from gptviz.digits import significant
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.theme import Mode, finish, palette

LABELLED_COLUMNS = 40  # tokens along half a page; above it positions are written
QUANTITIES = ("variance", "mean")


def norm_grids(
    before: Floats,
    after: Floats,
    names: Sequence[str],
    labels: Sequence[str],
    quantity: str,
    limit: float,
    norm: int,
    position: int,
    mode: Mode,
) -> go.Figure:
    """Two heatmaps (N, T) side by side on one scale: a row a norm, first on top; a column a token.

    For "variance" the colour is log10 and `limit` counts powers of ten: 2 runs from 0.01 to 100. The
    cell of `norm` and `position` is framed.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}; it must be one of {', '.join(QUANTITIES)}")
    rows, tokens = before.shape
    if after.shape != before.shape or (len(names), len(labels)) != before.shape:
        raise ValueError(
            f"{len(names)} norms and {len(labels)} tokens do not fit {before.shape} and {after.shape}"
        )
    colors = palette(mode)
    shown = [html.escape(label, quote=False) for label in labels]
    columns = [str(i) for i in range(tokens)]
    positions = np.broadcast_to(np.arange(tokens), before.shape)
    known = np.stack([before, after, positions], axis=2, dtype=np.float32)  # (N, T, 3): what a hover says
    says = (
        f"%{{y}} at `%{{x}}` (position %{{customdata[2]}}):<br>"
        f"{quantity} %{{customdata[0]:.3r}} before, %{{customdata[1]:.3r}} after<extra></extra>"
    )
    fig = go.Figure()
    for number, (grid, title) in enumerate(((before, "before"), (after, "after")), start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        fig.add_trace(
            go.Heatmap(
                z=_log10(grid) if quantity == "variance" else grid,
                x=columns, y=names, customdata=known, hovertemplate=says,
                coloraxis="coloraxis", xaxis=x[0], yaxis=y[0],
                xgap=1 if tokens <= LABELLED_COLUMNS else 0, ygap=1,
            )
        )  # fmt: skip
        fig.update_layout(
            {
                x[1]: {
                    "domain": [0, 0.485] if number == 1 else [0.515, 1],
                    "anchor": y[0],
                    "range": [-0.5, tokens - 0.5],
                    "labelalias": dict(zip(columns, shown, strict=True)),
                    **_column_labels(tokens),
                },
                y[1]: {
                    "range": [rows - 0.5, -0.5],
                    "anchor": x[0],
                    "showticklabels": number == 1,
                    "tickmode": "linear",
                    "tickfont": {"size": 14 if rows <= 16 else 11},
                },
            }
        )
        fig.add_annotation(
            text=f"<b>{quantity} {title}</b>", x=x_start(number), y=1, xref="paper", yref="paper",
            xanchor="left", yanchor="bottom", showarrow=False,
        )  # fmt: skip
        fig.add_shape(
            type="rect", x0=position - 0.5, x1=position + 0.5, y0=norm - 0.5, y1=norm + 0.5, xref=x[0],
            yref=y[0], line={"color": colors.accent, "width": 2.5},
        )  # fmt: skip
    # the frame: where every variance is 1, a grid is nothing but paper
    common = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category", "showline": True}
    fig.update_xaxes(mirror=True, **common)
    fig.update_yaxes(mirror=True, **common)
    fig.update_layout(coloraxis=_grid_scale(limit, quantity, mode))
    finish(fig, mode, height=max(140 + rows * (20 if rows <= 16 else 14), 280))
    fig.layout.margin.t = BAR + 22  # the bar, and what stands above each grid
    return fig


def x_start(number: int) -> float:
    return 0.0 if number == 1 else 0.515


def _log10(variance: Floats) -> Floats:
    return np.log10(np.maximum(variance, 1e-12))  # a variance of 0 has no logarithm; this is as deep a blue


def _grid_scale(limit: float, quantity: str, mode: Mode) -> dict[str, object]:
    scale = signed_axis(limit, mode, 0.985)
    bar = dict(scale["colorbar"])  # type: ignore[call-overload]
    bar["len"] = 0.35
    if quantity == "variance":
        powers = np.floor(limit) * np.arange(-1, 2)  # as many as a phone has room for
        bar["tickvals"], bar["ticktext"] = powers, [significant(10.0**power, 1) for power in powers]
    return {**scale, "colorbar": bar}


def _column_labels(tokens: int) -> dict[str, object]:
    """Tokens below their columns, as many as there is room for; of more than a few, positions."""
    if tokens <= LABELLED_COLUMNS:
        return {"tickangle": -60 if tokens > 5 else 0}
    step = 10 if tokens <= 128 else 32 if tokens <= 512 else 128
    places = [str(i) for i in range(0, tokens, step)]
    return {"tickvals": places, "ticktext": places, "tickangle": 0, "title": "position"}


def norm_depth(curve: pd.DataFrame, quantity: str, label: str, norm: int, mode: Mode) -> go.Figure:
    """One token through the depth: a norm after the other, `quantity` before and after.

    `curve` is `through_depth`: its columns norm, `quantity` and `quantity`_after. Variances stand on a
    logarithmic axis.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}; it must be one of {', '.join(QUANTITIES)}")
    colors = palette(mode)
    names = curve["norm"].tolist()
    steps = np.arange(len(names))
    fig = go.Figure()
    lines = (
        ("before", quantity, colors.quiet, "dash"),
        ("after", f"{quantity}_after", colors.accent, "solid"),
    )
    for when, column, color, dash in lines:
        values = curve[column].to_numpy(dtype=np.float64)
        fig.add_trace(
            go.Scatter(
                x=steps, y=values, mode="lines+markers", name=when, customdata=names,
                meta=f"`{html.escape(label, quote=False)}`",
                line={"color": color, "width": 3, "dash": dash}, marker={"size": 8},
                hovertemplate=f"%{{customdata}}: {quantity} of %{{meta}} {when} it is %{{y:.4g}}"
                "<extra></extra>",
            )
        )  # fmt: skip
        fig.add_annotation(
            x=steps[-1], y=_axis_place(values[-1], quantity), text=f"<b>{when}</b>", showarrow=False,
            xanchor="left", xshift=10, font={"color": color, "size": 15},
        )  # fmt: skip
    wanted = 1.0 if quantity == "variance" else 0.0
    fig.add_hline(wanted, line={"color": colors.quiet, "width": 1})
    fig.add_vline(norm, line={"color": colors.accent, "width": 1, "dash": "dot"})
    fig.update_layout(
        xaxis={"tickvals": steps, "ticktext": names, "range": [-0.4, len(names) - 0.2], "tickangle": -40},
        yaxis={"title": quantity},
    )
    if quantity == "variance":
        fig.update_yaxes(type="log", dtick=1)
    finish(fig, mode, height=380)
    fig.update_layout(margin={"r": 60})  # room for the words at the lines' ends
    return fig


def _axis_place(value: float, quantity: str) -> float:
    """Annotations on a logarithmic axis are placed by the logarithm."""
    return float(np.log10(max(value, 1e-12))) if quantity == "variance" else value
