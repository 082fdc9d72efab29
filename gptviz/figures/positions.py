"""Tables of positions, and RoPE's arrows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import fixed, significant
from gptviz.figures.marks import BAR, Floats, across, cells, line, says, signed_axis, stroke
from gptviz.figures.theme import Figure, Mode, figure, palette

HEIGHT = 330


def position_rows(
    rows: Floats, dimensions: Sequence[int], limit: float, position: int, mode: Mode
) -> Figure:
    """(n, d) signed numbers, a row per position; `dimensions` are the columns. A line at the selected one."""
    field = "x"
    columns = {}
    if list(dimensions) != [*range(len(dimensions))]:
        field = "customdata"
        columns = {field: np.broadcast_to(np.asarray(dimensions, dtype=np.int32), rows.shape)}
    template = f"position %{{y}}, dimension %{{{field}}}: %{{z:.3f}}"
    drawn = cells(rows.astype(np.float32), template, coloraxis="coloraxis", **columns)
    ends = [0, len(dimensions) // 2, len(dimensions) - 1]
    ticks = {"showgrid": False, "tickvals": ends, "ticktext": [str(dimensions[i]) for i in ends]}
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "xaxis": {"title": {"text": "dimension"}} | ticks,
        "yaxis": {"title": {"text": "position"}, "autorange": "reversed", "showgrid": False},
        "shapes": [across(position, line(palette(mode).accent, 2))] if position < len(rows) else [],
    }
    return figure([drawn], layout, mode, height=HEIGHT, t=BAR)


def dials(frequencies: dict[int, float], query: int, key: int, mode: Mode) -> Figure:
    """An arrow for the query's position (blue) and one for the key's (red) in some pairs of dimensions.

    `frequencies` are the radians per token by which each pair, by its number, turns.
    """
    colors = palette(mode)
    circle = np.linspace(0, 2 * math.pi, 73)
    traces = []
    notes = []
    for place, (pair, frequency) in enumerate(frequencies.items()):
        middle = 3 * place
        angles = (query * frequency, key * frequency)
        if abs(angles[0] - angles[1]) < 2 * math.pi:
            between = np.linspace(*angles, 49)
        else:
            between = circle
        for turn, size, drawn in (
            (circle, 1.0, line(colors.grid, 1.5)),
            (between, 0.45, line(colors.output, 5)),
        ):
            traces.append(stroke(middle + size * np.cos(turn), size * np.sin(turn), drawn))
        traces.append(_arrow(middle, angles[1], colors.key, f"key at position {key}, pair {pair}"))
        traces.append(
            _arrow(middle, angles[0], colors.query, f"query at position {query}, pair {pair}")
        )
        turns = 2 * math.pi / frequency
        if turns < 100:
            turn_text = significant(turns)
        else:
            turn_text = f"{turns:,.0f}"
        words = (
            f"<b>pair {pair}</b><br>once round: {turn_text} tokens"
            f"<br>between: {fixed(angles[0] - angles[1], 2)} rad"
        )
        notes.append({"text": words, "x": middle, "y": 1.3, "yanchor": "bottom"})
    plain: dict[str, Any] = {"visible": False}
    layout = {
        "xaxis": plain | {"range": [-1.5, 3 * len(frequencies) - 1.5]},
        "yaxis": plain | {"range": [-1.1, 2.8], "scaleanchor": "x"},
        "annotations": notes,
    }
    return figure(traces, layout, mode, height=250)


def _arrow(middle: float, angle: float, color: str, name: str) -> dict[str, Any]:
    """A line from a dial's middle to its circle, with a head that points along it."""
    x = math.cos(angle)
    y = math.sin(angle)
    hover = f"{name}: turned by {fixed(angle, 2)} rad, to ({fixed(x, 2)}, {fixed(y, 2)})"
    head = {
        "symbol": "arrow",
        "angleref": "previous",
        "size": [0, 16],
        "color": color,
        "opacity": 1,
    }
    drawn = {"mode": "lines+markers", "marker": head, "name": name} | says([hover, hover])
    return stroke([middle, middle + x], [0.0, y], line(color, 4), **drawn)
