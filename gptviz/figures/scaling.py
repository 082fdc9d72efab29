"""What the square root of d does, softmax made sharper, dropout's mask, and what attention costs."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import UNCHANGED, ghost_bars
from gptviz.figures.marks import SHARES, line, upright
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]

UNDIVIDED, DIVIDED = "q · k", "q · k ÷ √d"
READABLE = 8  # rows of a square whose numbers are written into it
POWERS = {"type": "log", "dtick": 1}
LEGEND = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}


def by_size(table: pd.DataFrame, column: str, title: str, d: int, mode: Mode, log: bool = False) -> Figure:
    """One column of `scaling.by_size` for each d, as it is and after the division; a line at the chosen d."""
    colors = palette(mode)
    traces = [
        {
            "type": "scatter",
            "x": table["d"].to_numpy(dtype=np.int32),
            "y": table[column + ending].to_numpy(dtype=np.float64),
            "mode": "lines+markers",
            "name": name,
            "line": line(color, 2.5),
            "marker": {"color": color, "size": 7},
            "hovertemplate": f"d = %{{x}}, {name}: {title} %{{y:.4g}}<extra></extra>",
        }
        for ending, name, color in (("", UNDIVIDED, colors.positive), ("_scaled", DIVIDED, colors.output))
    ]
    layout = {
        "xaxis": {"title": {"text": "d"}, "type": "log", "tickvals": [1, 4, 16, 64, 256, 1024]},
        "yaxis": {"title": {"text": title}} | (POWERS if log else {"range": [0, 1.05]}),
        "shapes": [upright(d, line(colors.accent, 1.5, "dot"))],
        "showlegend": True,
        "legend": LEGEND,
    }
    return figure(traces, layout, mode, height=265, t=30)


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


def cost(table: pd.DataFrame, column: str, title: str, mode: Mode) -> Figure:
    """Seconds or bytes for each T, measured, and a dashed line that grows as T^2 from the largest down."""
    colors = palette(mode)
    x, y = table["tokens"].to_numpy(dtype=np.int32), table[column].to_numpy(dtype=np.float64)
    squared = y[-1] * (x / x[-1]) ** 2
    traces = [
        {"type": "scatter", "x": x, "y": squared, "mode": "lines", "name": "∝ T²",
         "line": line(colors.quiet, 2, "dash"), "hovertemplate": "T²: %{y:.3g}<extra></extra>"},
        {"type": "scatter", "x": x, "y": y, "mode": "lines+markers", "name": "measured",
         "line": line(colors.output, 2.5), "marker": {"color": colors.output, "size": 9},
         "hovertemplate": f"%{{x}} tokens: %{{y:.3g}} {title}<extra></extra>"},
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "tokens T"}, "type": "log", "tickvals": x},
        "yaxis": {"title": {"text": title}} | POWERS,
        "showlegend": True,
        "legend": LEGEND,
    }
    return figure(traces, layout, mode, height=290, t=34)
