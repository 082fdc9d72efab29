"""Two bars side by side, and a square of weights with its numbers."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import UNCHANGED, ghost_bars
from gptviz.figures.marks import SHARES
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]

UNDIVIDED, DIVIDED = "q · k", "q · k ÷ √d"
READABLE = 8  # rows of a square whose numbers are written into it
LEGEND = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}


def pairs_of_bars(
    values: Sequence[Floats],
    names: tuple[str, str],
    keys: Sequence[str],
    title: str,
    mode: Mode,
    unchanged: Sequence[Floats] | None = None,
    shares: bool = True,
) -> Figure:
    """Two bars a key, side by side: what is undivided (or as it was) orange, the other purple.

    `unchanged` are the same two of the model without its changes: ghosts. `shares`: all lie from 0 to 1.
    """
    colors = palette(mode)
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "x": list(keys),
            "y": np.asarray(row, dtype=np.float64),
            "name": name,
            "marker": {"color": color, "line": {"width": 0}},
            "text": [significant(float(value), 2) for value in row],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": f"%{{x}}, {name}: %{{y:.4g}}<extra></extra>",
            "offsetgroup": name,
        }
        for row, name, color in zip(values, names, (colors.positive, colors.output), strict=True)
    ]
    for row, name in zip(unchanged or (), names, strict=False):
        says = [f"{key}, {name}, {UNCHANGED}: {value:.4g}" for key, value in zip(keys, row, strict=True)]
        place = {"x": list(keys), "offsetgroup": name, "showlegend": name == names[0]}
        traces.append(ghost_bars(row, row, mode, says) | place)
    layout = {
        "barmode": "group",
        "xaxis": {"showgrid": False, "type": "category"},
        "yaxis": (SHARES if shares else {"nticks": 5}) | {"title": {"text": title}},
        "showlegend": True,
        "legend": LEGEND,
        "uniformtext": {"minsize": 9, "mode": "hide"},
    }
    return figure(traces, layout, mode, height=280, t=36)


def weight_grid(values: Floats, labels: Sequence[str], high: float, mode: Mode) -> Figure:
    """A square of weights (T, T), from 0 to `high`, with its numbers where there is room for them."""
    colors = palette(mode)
    shown = [html.escape(label, quote=False) for label in labels]
    places = np.arange(len(labels))
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "colorscale": colors.attention,
        "zmin": 0,
        "zmax": high,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "row %{y}, column %{x}: %{z:.4f}<extra></extra>",
    }
    written = {
        "type": "scatter",
        "x": np.tile(places, len(places)),
        "y": np.repeat(places, len(places)),
        "mode": "text",
        "text": [
            f"{value:.0f}" if value == int(value) else f"{value:.2f}" for value in values.ravel().tolist()
        ],
        "textfont": {"size": 12, "color": np.where(values > 0.55 * high, colors.paper, colors.ink).ravel()},
        "hoverinfo": "skip",
    }
    ticks = {"tickvals": places, "ticktext": shown, "showgrid": False, "ticks": ""}
    layout = {
        "xaxis": ticks | {"tickangle": -50, "constrain": "domain"},
        "yaxis": ticks | {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"},
    }
    return figure([cells, *([written] if len(labels) <= READABLE else [])], layout, mode, height=320, t=8)
