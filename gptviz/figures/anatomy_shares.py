"""Which part of a model has which share of its parameters."""

import html
from collections.abc import Mapping

import numpy as np
import pandas as pd

from gptviz.figures.anatomy import part_color, percent
from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, figure, palette


def share_bars(tables: Mapping[str, pd.DataFrame], mode: Mode) -> Figure:
    """A bar for each model, from 0 to 100 %, cut into its parts: curve i is the i-th part of all models.

    `tables`: a name for the screen -> `part_table`. Raises ValueError when there is none.
    """
    if not tables:
        raise ValueError("tables is empty; give at least one model's part_table")
    colors, names = palette(mode), [html.escape(name, quote=False) for name in tables]
    bars = []
    for i, part in enumerate(next(iter(tables.values()))["part"]):
        rows = [table.iloc[i] for table in tables.values()]
        bars.append(
            {
                "type": "bar",
                "x": np.array([100 * row["share"] for row in rows]),
                "y": np.arange(len(rows)),
                "orientation": "h",
                "name": part,
                "marker": {"color": part_color(part, colors), "line": {"color": colors.paper, "width": 1}},
                "text": [f"{part} {percent(row['share'])}" if row["share"] else "" for row in rows],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "insidetextfont": {"color": colors.paper},
                "customdata": [
                    f"{part}: {row['parameters']:,} parameters, {percent(row['share'])} of {name}"
                    for name, row in zip(names, rows, strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    layout = {
        "barmode": "stack",
        "bargap": 0.2,
        "uniformtext": {"minsize": 12, "mode": "hide"},
        "hovermode": "closest",
        "xaxis": {"range": [0, 100], "visible": False, "fixedrange": True},
        "yaxis": {
            "range": [len(names) - 0.5, -0.5],
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "fixedrange": True,
            "showgrid": False,
            "ticks": "",
            "showline": False,
            "showticklabels": len(names) > 1,
        },
    }
    return figure(bars, layout, mode, height=20 + 52 * len(names), l=2, r=2, t=4, b=8)
