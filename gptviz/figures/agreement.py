"""Which earlier tokens count, by rank, a row for each way to tell; and how alike the ways rank them."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, figure, palette

WRITTEN = 32  # columns in which there is room for a rank


def rank_map(table: pd.DataFrame, ranks: pd.DataFrame, labels: Sequence[str], mode: Mode) -> Figure:
    """A row a way and a column a token, rank 1 darkest and written in its cell; NaN stays empty.

    `table` and `ranks` are those of `gptviz.analysis.agreement`: position, and a column a way; `labels`
    names every position.
    """
    colors = palette(mode)
    ways = [way for way in ranks if way != "position"]
    z = ranks[ways].to_numpy(dtype=np.float32).T  # (ways, n)
    n = z.shape[1]
    shown = [html.escape(labels[p], quote=False) for p in ranks["position"]]
    says = [
        [
            f"{way} ranks {token} (position {p})<br>{_rank(rank)} of {n}: {significant(float(value))}"
            if not np.isnan(rank)
            else f"{way} has no number for {token} (position {p})"
            for token, p, rank, value in zip(shown, ranks["position"], ranks[way], table[way], strict=True)
        ]
        for way in ways
    ]
    plain = {"showgrid": False, "fixedrange": True, "ticks": ""}
    names = [f"{way}  " for way in ways]  # a little room before the first column
    heat = {
        "type": "heatmap",
        "z": z,
        "colorscale": [[1 - at, color] for at, color in reversed(colors.attention)],
        "zmin": 1,
        "zmax": max(n, 2),
        "showscale": False,
        "text": [[_rank(rank) for rank in row] for row in z] if n <= WRITTEN else None,
        "texttemplate": "%{text}",
        "textfont": {"size": 12},
        "hovertext": says,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "xgap": 1,
        "ygap": 2,
    }
    layout = {
        "xaxis": plain | {"tickvals": np.arange(n), "ticktext": shown, "tickangle": -60 if n > 5 else 0},
        "yaxis": plain
        | {"tickvals": np.arange(len(ways)), "ticktext": names, "range": [len(ways) - 0.5, -0.5]},
    }
    return figure([heat], layout, mode, height=130 + 34 * len(ways), t=8)


def correlation_matrix(correlations: pd.DataFrame, mode: Mode) -> Figure:
    """Ways against ways, -1 to 1, the number in its cell; where there is none, a dash."""
    colors, ways = palette(mode), list(correlations)
    z = correlations.to_numpy(dtype=np.float64)
    says = [[_alike(one, two, z[i, j]) for j, two in enumerate(ways)] for i, one in enumerate(ways)]
    plain: Mapping[str, Any] = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category"}
    heat = {
        "type": "heatmap",
        "z": z,
        "x": ways,
        "y": ways,
        "colorscale": colors.signed,
        "zmin": -1,
        "zmax": 1,
        "showscale": False,
        "text": [["–" if np.isnan(value) else fixed(float(value), 2) for value in row] for row in z],
        "texttemplate": "%{text}",
        "textfont": {"size": 14},
        "hovertext": says,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "hoverongaps": True,
        "xgap": 2,
        "ygap": 2,
    }
    layout = {
        "xaxis": {**plain, "tickangle": -40},
        "yaxis": {**plain, "ticksuffix": "  ", "range": [len(ways) - 0.5, -0.5]},
    }
    return figure([heat], layout, mode, height=130 + 34 * len(ways), t=8)


def _rank(rank: float) -> str:
    """ "3", or "3.5" where two share the third and fourth rank; nothing where there is none."""
    if np.isnan(rank):
        return ""
    return str(int(rank)) if rank == int(rank) else f"{rank:.1f}"


def _alike(one: str, two: str, value: float) -> str:
    if np.isnan(value):
        return f"{one} and {two}: no rank correlation,<br>too few tokens, or all of them equal"
    return f"{one} and {two} rank the tokens<br>with a correlation of {fixed(float(value), 2)}"
