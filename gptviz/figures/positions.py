"""Tables of positions."""

from collections.abc import Sequence

import numpy as np

from gptviz.figures.marks import BAR, Floats, across, cells, line, signed_axis
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
