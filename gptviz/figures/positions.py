"""Tables of positions."""

from collections.abc import Sequence

import numpy as np

from gptviz.figures.marks import BAR, Drawn, Floats, across, cells, line, note, signed_axis
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


def hands(before: Floats, after: Floats, mode: Mode) -> Figure:
    """Two points of a plane as hands from its origin, the query's and the key's, (2, 2): x and y of each.

    They stand side by side, `before` turning and `after` it, at one scale.
    """
    colors = palette(mode)
    reach = 1.15 * max(float(np.abs(before).max()), float(np.abs(after).max()), 1e-9)
    ends = [-reach, reach]
    traces: list[Drawn] = []
    notes = []
    layout: dict[str, object] = {"showlegend": False}
    for number, (points, title) in enumerate(((before, "before turning"), (after, "turned")), 1):
        nth = "" if number == 1 else "2"
        layout[f"xaxis{nth}"] = {
            "range": ends,
            "domain": [0.52 * (number - 1), 0.52 * (number - 1) + 0.48],
            "anchor": f"y{nth}",
            "constrain": "domain",
            "title": {"text": title},
            "nticks": 5,
        }
        layout[f"yaxis{nth}"] = {
            "range": ends,
            "anchor": f"x{nth}",
            "scaleanchor": f"x{nth}",
            "nticks": 5,
        }
        for (x, y), name, color in zip(
            points.tolist(), ("query", "key"), (colors.query, colors.key), strict=True
        ):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": [0, x],
                    "y": [0, y],
                    "name": name,
                    "xaxis": f"x{nth}",
                    "yaxis": f"y{nth}",
                    "line": line(color, 3),
                    "marker": {"color": color, "size": [0, 9]},
                    "hovertemplate": f"{name}: %{{x:.3f}}, %{{y:.3f}}<extra></extra>",
                }
            )
            up = 12 if y >= 0 else -12
            notes.append(note(name, x, y, color, 13, xref=f"x{nth}", yref=f"y{nth}", yshift=up))
    layout["annotations"] = notes
    return figure(traces, layout, mode, height=HEIGHT, t=BAR)
