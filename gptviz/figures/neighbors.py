"""The tokens whose rows of the embedding matrix are most like one token's, as bars with their numbers."""

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import fixed
from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, figure, palette

MEASURES = {"cosine": "cosine similarity", "dot": "dot product"}


def neighbor_bars(
    tokens: Sequence[str],
    ids: Sequence[int],
    values: NDArray[np.floating],
    measure: str,
    label: str,
    mode: Mode,
) -> Figure:
    """A bar a token, the nearest on top. `measure` is "cosine" (the axis then ends at 1) or "dot"."""
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    colors = palette(mode)
    name = MEASURES[measure]
    shown = [html.escape(token, quote=False) for token in tokens]
    rows = np.arange(len(shown))
    bars = {
        "type": "bar",
        "x": values,
        "y": rows,
        "orientation": "h",
        "text": [fixed(float(value), 3 if measure == "cosine" else 2) for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 14},
        "marker": {"color": colors.accent},
        "customdata": [list(pair) for pair in zip(shown, ids, strict=True)],
        "meta": f"`{html.escape(label, quote=False)}`",
        "hovertemplate": f"`%{{customdata[0]}}` (id %{{customdata[1]}}) and %{{meta}}: {name} %{{x:.4f}}"
        "<extra></extra>",
    }
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    layout = {
        "xaxis": {
            "title": {"text": name},
            "range": [min(low * 1.15, 0), 1.08] if measure == "cosine" else [low * 1.15, high * 1.15 or 1],
            "fixedrange": True,
        },
        "yaxis": {
            "tickvals": rows,
            "ticktext": shown,
            "range": [len(shown) - 0.5, -0.5],
            "showgrid": False,
            "ticks": "",
            "fixedrange": True,
            "tickfont": {"size": 15},
        },
        "bargap": 0.3,
    }
    return figure([bars], layout, mode, height=90 + 30 * len(shown))
