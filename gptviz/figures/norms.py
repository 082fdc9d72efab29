"""LayerNorm before and after: over all norms and tokens, through the depth, and inside one norm.

Shapes: N norms in the order of the network, T tokens, D dimensions. A variance is drawn by its
logarithm, so that the scale's middle, the paper, is a variance of exactly 1.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.analysis.norms import changes
from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import CHANGED, GHOSTED, UNCHANGED, ghost_curve
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.marks import across, frame, heading, line, upright
from gptviz.figures.theme import Mode, figure, palette
from gptviz.figures.token_axis import READABLE, token_categories

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
    unchanged: tuple[Floats, Floats] | None = None,
) -> Figure:
    """Two heatmaps (N, T) side by side on one scale: a row a norm, first on top; a column a token.

    For "variance" the colour is log10 and `limit` counts powers of ten: 2 runs from 0.01 to 100. The
    cell of `norm` and `position` is framed. With `unchanged`, the same two of the model without its changes,
    drawn is what became of them: how many times as large, of means the difference.
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
    at = "%{y} at `%{x}` (position %{customdata[2]}):<br>"
    says = f"{at}{quantity} %{{customdata[0]:.3r}} before, %{{customdata[1]:.3r}} after<extra></extra>"
    drawn = [_log10(grid) if quantity == "variance" else grid for grid in (before, after)]
    if unchanged is not None:
        drawn = [changes(new, old, quantity) for new, old in zip((before, after), unchanged, strict=True)]
        known = np.concatenate([known, np.stack(unchanged, axis=2, dtype=np.float32)], axis=2)  # (N, T, 5)
    # the frame: where every variance is 1, a grid is nothing but paper
    common = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category", "showline": True} | {
        "mirror": True
    }
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "coloraxis": _grid_scale(limit, quantity, mode, unchanged is not None),
        "shapes": [],
        "annotations": [],
    }
    for number, (grid, title) in enumerate(zip(drawn, ("before", "after"), strict=True), start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        if unchanged is not None:
            says = (
                f"{at}{quantity} {title} it %{{customdata[{number + 2}]:.3r}} {UNCHANGED}, "
                f"%{{customdata[{number - 1}]:.3r}} {CHANGED}<extra></extra>"
            )
        traces.append(
            {
                "type": "heatmap",
                "z": grid,
                "x": columns,
                "y": list(names),
                "customdata": known,
                "hovertemplate": says,
                "coloraxis": "coloraxis",
                "xaxis": x[0],
                "yaxis": y[0],
                "xgap": 1 if tokens <= READABLE else 0,
                "ygap": 1,
            }
        )
        layout[x[1]] = common | {
            "domain": [0, 0.485] if number == 1 else [0.515, 1],
            "anchor": y[0],
            "range": [-0.5, tokens - 0.5],
            **token_categories(shown),
        }
        layout[y[1]] = common | {
            "range": [rows - 0.5, -0.5],
            "anchor": x[0],
            "showticklabels": number == 1,
            "tickmode": "linear",
            "tickfont": {"size": 14 if rows <= 16 else 12},
        }
        layout["annotations"].append(heading(f"<b>{quantity} {title}</b>", x_start(number), 1))
        layout["shapes"].append(
            frame(
                (position - 0.5, position + 0.5),
                (norm - 0.5, norm + 0.5),
                line(colors.accent, 2.5),
                (x[0], y[0]),
            )
        )
    height = max(140 + rows * (20 if rows <= 16 else 14), 280)
    return figure(traces, layout, mode, height, t=BAR + 22)  # the bar, and what stands above each grid


def x_start(number: int) -> float:
    return 0.0 if number == 1 else 0.515


def _log10(variance: Floats) -> Floats:
    return np.log10(np.maximum(variance, 1e-12))  # a variance of 0 has no logarithm; this is as deep a blue


def _grid_scale(limit: float, quantity: str, mode: Mode, times: bool) -> dict[str, object]:
    scale = signed_axis(limit, mode, 0.985)
    bar = dict(scale["colorbar"])
    bar["len"] = 0.35
    if quantity == "variance" and times:
        end = significant(10.0**limit, 2)
        bar["tickvals"], bar["ticktext"] = [-limit, 0, limit], [f"÷ {end}", "as it was", f"× {end}"]
    elif quantity == "variance":
        powers = np.floor(limit) * np.arange(-1, 2)  # as many as a phone has room for
        bar["tickvals"], bar["ticktext"] = powers, [significant(10.0**power, 1) for power in powers]
    return {**scale, "colorbar": bar}


def norm_depth(
    curve: pd.DataFrame,
    quantity: str,
    label: str,
    norm: int,
    mode: Mode,
    unchanged: pd.DataFrame | None = None,
) -> Figure:
    """One token through the depth: a norm after the other, `quantity` before and after.

    `curve` is `through_depth`: its columns norm, `quantity` and `quantity`_after. Variances stand on a
    logarithmic axis. `unchanged`, the same of the model without its changes, is drawn as two ghosts.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}; it must be one of {', '.join(QUANTITIES)}")
    colors = palette(mode)
    names = curve["norm"].tolist()
    steps = np.arange(len(names))
    # dashed lines are the unchanged model's, on every page: where there are some, this one is not
    first = (colors.quiet, "dash") if unchanged is None else (colors.ink, "solid")
    lines = (("before", quantity, *first), ("after", f"{quantity}_after", colors.accent, "solid"))
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for when, column, color, dash in lines:
        values = curve[column].to_numpy(dtype=np.float64)
        if unchanged is not None:
            old = unchanged[column].to_numpy(dtype=np.float64)
            says = [
                f"{name}: {quantity} of `{label}` {when} it is {significant(value, 4)} {UNCHANGED}"
                for name, value in zip(names, old, strict=True)
            ]
            traces.append(ghost_curve(steps, old, mode, says, showlegend=when == "before"))
        traces.append(
            {
                "type": "scatter",
                "x": steps,
                "y": values,
                "mode": "lines+markers",
                "name": when,
                "showlegend": False,
                "customdata": names,
                "meta": f"`{html.escape(label, quote=False)}`",
                "line": line(color, 3, dash),
                "marker": {"size": 8},
                "hovertemplate": f"%{{customdata}}: {quantity} of %{{meta}} {when} it is %{{y:.4g}}"
                "<extra></extra>",
            }
        )
        notes.append(
            {
                "x": len(names) - 1,
                "y": _axis_place(values[-1], quantity),
                "text": f"<b>{when}</b>",
                "xanchor": "left",
                "xshift": 10,
                "font": {"color": color, "size": 15},
            }
        )
    wanted = 1.0 if quantity == "variance" else 0.0
    layout = {
        "shapes": [
            across(wanted, line(colors.quiet, 1)),
            upright(norm, line(colors.accent, 1, "dot")),
        ],
        "annotations": notes,
        "xaxis": {"tickvals": steps, "ticktext": names, "range": [-0.4, len(names) - 0.2], "tickangle": -40},
        "yaxis": {"title": {"text": quantity}}
        | ({"type": "log", "dtick": 1} if quantity == "variance" else {}),
    } | ({} if unchanged is None else GHOSTED)
    return figure(traces, layout, mode, height=380, r=60)  # room for the words at the lines' ends


def _axis_place(value: float, quantity: str) -> float:
    """Annotations on a logarithmic axis are placed by the logarithm."""
    return float(np.log10(max(value, 1e-12))) if quantity == "variance" else value
