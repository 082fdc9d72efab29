"""Tables of positions, their dot products by distance, and RoPE's arrows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import BAR, Floats, across, line, signed_axis, upright
from gptviz.figures.theme import Mode, figure, palette

HEIGHT = 330


def position_rows(rows: Floats, dimensions: Sequence[int], limit: float, position: int, mode: Mode) -> Figure:
    """(n, d) signed numbers, a row per position; `dimensions` are the columns. A line at the selected one."""
    cells = {
        "type": "heatmap",
        "z": rows.astype(np.float32),
        "customdata": np.broadcast_to(np.asarray(dimensions, dtype=np.int32), rows.shape),
        "coloraxis": "coloraxis",
        "hovertemplate": "position %{y}, dimension %{customdata}: %{z:.3f}<extra></extra>",
    }
    ends = [0, len(dimensions) // 2, len(dimensions) - 1]
    ticks = {"showgrid": False, "tickvals": ends, "ticktext": [str(dimensions[i]) for i in ends]}
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "xaxis": {"title": {"text": "dimension"}} | ticks,
        "yaxis": {"title": {"text": "position"}, "autorange": "reversed", "showgrid": False},
        "shapes": [across(position, line(palette(mode).accent, 2))] if position < len(rows) else [],
    }
    return figure([cells], layout, mode, height=HEIGHT, t=BAR)


def by_distance(table: pd.DataFrame, distance: int, mode: Mode) -> Figure:
    """`products_by_distance`: the mean as a line, what lies between least and most shaded."""
    colors, numbers = palette(mode), table.astype(np.float32)
    both = {"type": "scatter", "mode": "lines", "x": table["distance"].to_numpy(dtype=np.int32)}
    edge = both | {"line": line(colors.accent, 0), "hoverinfo": "skip"}
    mean = both | {
        "y": numbers["mean"].to_numpy(),
        "line": line(colors.accent, 2.5),
        "customdata": numbers[["least", "most"]].to_numpy(),
        "hovertemplate": "%{x} apart: %{y:.3f} on average, from %{customdata[0]:.3f} to %{customdata[1]:.3f}"
        "<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "how many tokens apart"}},
        "yaxis": {"title": {"text": "dot product of the two rows"}},
        "shapes": [across(0, line(colors.quiet, 1)), upright(distance, line(colors.positive, 1.5, "dot"))],
    }
    least, most = (edge | {"y": numbers[name].to_numpy()} for name in ("least", "most"))
    return figure(
        [least, most | {"fill": "tonexty", "opacity": 0.4}, mean], layout, mode, height=HEIGHT, t=BAR
    )


def scores_along(scores: pd.DataFrame, at: int, mode: Mode) -> Figure:
    """A pair's score at every place of the text, a line per scheme: flat where only the distance counts."""
    colors = palette(mode)
    strokes = (
        line(colors.output, 2.5),
        line(colors.positive, 2),
        line(colors.value, 3),
        line(colors.quiet, 2, "dash"),
    )
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": scores.index.to_numpy(dtype=np.int32),
            "y": scores[name].to_numpy(dtype=np.float32),
            "name": name,
            "line": stroke,
            "hovertemplate": f"{name}, query at position %{{x}}: %{{y:.3f}}<extra></extra>",
        }
        for name, stroke in zip(scores, strokes[: scores.shape[1] - 1] + strokes[-1:], strict=True)
    ]
    layout = {
        "xaxis": {"title": {"text": f"position of the query; the key is {scores.index[0]} before it"}},
        "yaxis": {"title": {"text": "score"}},
        "shapes": [upright(at, line(colors.accent, 1.5, "dot"))],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    }
    return figure(traces, layout, mode, height=300, t=34)


def dials(frequencies: dict[int, float], query: int, key: int, mode: Mode) -> Figure:
    """An arrow for the query's position (blue) and one for the key's (red) in some pairs of dimensions.

    `frequencies` are the radians per token by which each pair, by its number, turns.
    """
    colors, circle = palette(mode), np.linspace(0, 2 * math.pi, 73)
    traces, notes = [], []
    for place, (pair, frequency) in enumerate(frequencies.items()):
        middle, angles = 3 * place, (query * frequency, key * frequency)
        between = np.linspace(*angles, 49) if abs(angles[0] - angles[1]) < 2 * math.pi else circle
        for turn, size, stroke in (
            (circle, 1.0, line(colors.grid, 1.5)),
            (between, 0.45, line(colors.output, 5)),
        ):
            x, y = middle + size * np.cos(turn), size * np.sin(turn)
            traces.append(
                {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": stroke, "hoverinfo": "skip"}
            )
        traces.append(_arrow(middle, angles[1], colors.key, f"key at position {key}, pair {pair}"))
        traces.append(_arrow(middle, angles[0], colors.query, f"query at position {query}, pair {pair}"))
        turns = 2 * math.pi / frequency
        words = (
            f"<b>pair {pair}</b><br>once round: {significant(turns) if turns < 100 else f'{turns:,.0f}'} "
            f"tokens<br>between: {fixed(angles[0] - angles[1], 2)} rad"
        )
        notes.append({"text": words, "x": middle, "y": 1.3, "yanchor": "bottom"})
    plain: dict[str, Any] = {"visible": False, "fixedrange": True}
    layout = {
        "xaxis": plain | {"range": [-1.5, 3 * len(frequencies) - 1.5]},
        "yaxis": plain | {"range": [-1.1, 2.8], "scaleanchor": "x"},
        "annotations": notes,
    }
    return figure(traces, layout, mode, height=250)


def _arrow(middle: float, angle: float, color: str, name: str) -> dict[str, Any]:
    """A line from a dial's middle to its circle, with a head that points along it."""
    x, y = math.cos(angle), math.sin(angle)
    said = f"{name}: turned by {fixed(angle, 2)} rad, to ({fixed(x, 2)}, {fixed(y, 2)})"
    return {
        "type": "scatter",
        "x": [middle, middle + x],
        "y": [0.0, y],
        "mode": "lines+markers",
        "line": line(color, 4),
        "marker": {"symbol": "arrow", "angleref": "previous", "size": [0, 16], "color": color, "opacity": 1},
        "hovertext": [said, said],
        "hoverinfo": "text",
        "name": name,
    }
