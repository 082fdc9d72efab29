"""Probabilities of the same tokens before and after something was changed, two bars each."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.figure import Figure
from gptviz.figures.marks import SHARES
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode, figure, palette


def before_after(
    tokens: Sequence[str], before: NDArray[np.floating], after: NDArray[np.floating], mode: Mode
) -> Figure:
    """A row a token, the first on top: grey as it was, orange as it became. (n,) each, from 0 to 1."""
    colors = palette(mode)
    rows = np.arange(len(tokens), dtype=np.int32)

    def bars(values: NDArray[np.floating], color: str, name: str, verb: str, at: float) -> dict[str, object]:
        return {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": rows + at,
            "x": values.astype(np.float64),
            "width": 0.38,
            "marker": {"color": color, "line": {"width": 0}},
            "text": [probability_text(float(p)) for p in values],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertext": [
                f"{escape(token, quote=False)} {verb} {probability_text(float(p))}"
                for token, p in zip(tokens, values, strict=True)
            ],
            "hoverinfo": "text",
        }

    layout = {
        "barmode": "overlay",
        "xaxis": SHARES | {"title": {"text": "probability"}},
        "yaxis": {
            "tickvals": rows,
            "ticktext": [f"{escape(token, quote=False)}  " for token in tokens],
            "range": [len(tokens) - 0.5, -0.5],
            "showgrid": False,
        },
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
    }
    return figure(
        [
            bars(before, colors.quiet, "before", "had", -0.2),
            bars(after, colors.positive, "after", "has", 0.2),
        ],
        layout,
        mode,
        height=90 + 40 * len(tokens),
    )
