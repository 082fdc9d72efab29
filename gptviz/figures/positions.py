"""Tables of positions, their dot products by distance, scores along a text, and RoPE's arrows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.marks import across, heading, line, upright
from gptviz.figures.theme import Mode, figure, palette

HEIGHT = 330


def position_rows(rows: Floats, dimensions: Sequence[int], limit: float, position: int, mode: Mode) -> Figure:
    """(n, d) signed numbers, a row a position; `dimensions` are their columns. A line at the selected one."""
    colors = palette(mode)
    cells = {
        "type": "heatmap",
        "z": rows.astype(np.float32),
        "customdata": np.broadcast_to(np.asarray(dimensions, dtype=np.int32), rows.shape),
        "coloraxis": "coloraxis",
        "hovertemplate": "position %{y}, dimension %{customdata}: %{z:.3f}<extra></extra>",
    }
    ends = [0, len(dimensions) // 2, len(dimensions) - 1]
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "xaxis": {
            "title": {"text": "dimension"},
            "showgrid": False,
            "tickvals": ends,
            "ticktext": [str(dimensions[i]) for i in ends],
        },
        "yaxis": {"title": {"text": "position"}, "autorange": "reversed", "showgrid": False},
        "shapes": [across(position, line(colors.accent, 2))] if position < len(rows) else [],
    }
    return figure([cells], layout, mode, height=HEIGHT, t=BAR)


def by_distance(table: pd.DataFrame, distance: int, mode: Mode) -> Figure:
    """`products_by_distance`: the mean as a line, what lies between least and most shaded."""
    colors = palette(mode)
    x = table["distance"].to_numpy(dtype=np.int32)
    edge = {"type": "scatter", "x": x, "mode": "lines", "line": line(colors.accent, 0), "hoverinfo": "skip"}
    mean = {
        "type": "scatter",
        "x": x,
        "y": table["mean"].to_numpy(dtype=np.float32),
        "mode": "lines",
        "line": line(colors.accent, 2.5),
        "customdata": table[["least", "most"]].to_numpy(dtype=np.float32),
        "hovertemplate": "%{x} apart: %{y:.3f} on average, from %{customdata[0]:.3f} to %{customdata[1]:.3f}"
        "<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "how many tokens apart"}},
        "yaxis": {"title": {"text": "dot product of the two rows"}},
        "shapes": [across(0, line(colors.quiet, 1)), upright(distance, line(colors.positive, 1.5, "dot"))],
    }
    traces = [
        edge | {"y": table["least"].to_numpy(dtype=np.float32)},
        edge | {"y": table["most"].to_numpy(dtype=np.float32), "fill": "tonexty", "opacity": 0.4},
        mean,
    ]
    return figure(traces, layout, mode, height=HEIGHT, t=BAR)


def scores_along(scores: Mapping[str, Floats], distance: int, at: int, mode: Mode) -> Figure:
    """A pair's score at every place of the text, a line a scheme: flat where only the distance counts."""
    colors = palette(mode)
    strokes = (
        line(colors.output, 2.5),
        line(colors.positive, 2),
        line(colors.value, 3),
        line(colors.quiet, 2, "dash"),
    )
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "x": np.arange(distance, distance + len(values), dtype=np.int32),
            "y": values.astype(np.float32),
            "mode": "lines",
            "name": name,
            "line": stroke,
            "hovertemplate": f"{name}, query at position %{{x}}: %{{y:.3f}}<extra></extra>",
        }
        for (name, values), stroke in zip(scores.items(), strokes, strict=True)
    ]
    layout = {
        "xaxis": {"title": {"text": f"position of the query; the key is {distance} before it"}},
        "yaxis": {"title": {"text": "score"}},
        "shapes": [upright(at, line(colors.accent, 1.5, "dot"))],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    }
    return figure(traces, layout, mode, height=300, t=34)


@dataclass(frozen=True)
class Dial:
    """One pair of dimensions: its number, and by how many radians a token it turns."""

    pair: int
    frequency: float


def dials(pairs: Sequence[Dial], query: int, key: int, mode: Mode) -> Figure:
    """An arrow for the query's position (blue) and one for the key's (red) in each of these pairs."""
    colors = palette(mode)
    circle = np.linspace(0, 2 * math.pi, 73)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "shapes": []}
    width = 1 / len(pairs)
    for number, dial in enumerate(pairs, start=1):
        (x, x_axis), (y, y_axis) = axis_names(number, "x"), axis_names(number, "y")
        axes = {"xaxis": x, "yaxis": y}
        place = {
            "showgrid": False,
            "showticklabels": False,
            "ticks": "",
            "range": [-1.3, 1.3],
            "fixedrange": True,
        }
        layout[x_axis] = place | {"domain": [(number - 1) * width + 0.01, number * width - 0.01], "anchor": y}
        layout[y_axis] = place | {"anchor": x, "scaleanchor": x, "domain": [0, 0.76]}
        angles = [query * dial.frequency, key * dial.frequency]
        between = (
            np.linspace(angles[0], angles[1], 49) if abs(angles[0] - angles[1]) < 2 * math.pi else circle
        )
        traces += [
            _path(np.cos(circle), np.sin(circle), line(colors.grid, 1.5)) | axes,
            _path(0.45 * np.cos(between), 0.45 * np.sin(between), line(colors.output, 5)) | axes,
            *(
                _arrow(angle, color, f"{name} at position {position}, pair {dial.pair}") | axes
                for angle, color, name, position in (
                    (angles[1], colors.key, "key", key),
                    (angles[0], colors.query, "query", query),
                )
            ),
        ]
        turns = 2 * math.pi / dial.frequency
        round_in = significant(turns) if turns < 100 else f"{turns:,.0f}"
        layout["annotations"].append(
            heading(
                f"<b>pair {dial.pair}</b><br>once round: {round_in} tokens"
                f"<br>between: {fixed(angles[0] - angles[1], 2)} rad",
                (number - 0.5) * width,
                0.78,
                xanchor="center",
                align="center",
            )
        )
    return figure(traces, layout, mode, height=250, t=BAR)


def _path(x: Floats, y: Floats, stroke: dict[str, Any]) -> dict[str, Any]:
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": stroke, "hoverinfo": "skip"}


def _arrow(angle: float, color: str, name: str) -> dict[str, Any]:
    """A line from the middle to the circle, with a head that points along it."""
    x, y = math.cos(angle), math.sin(angle)
    said = f"{name}: turned by {fixed(angle, 2)} rad, to ({fixed(x, 2)}, {fixed(y, 2)})"
    return {
        "type": "scatter",
        "x": [0.0, x],
        "y": [0.0, y],
        "mode": "lines+markers",
        "line": line(color, 4),
        "marker": {"symbol": "arrow", "angleref": "previous", "size": [0, 16], "color": color, "opacity": 1},
        "hovertext": [said, said],
        "hoverinfo": "text",
        "name": name,
    }
