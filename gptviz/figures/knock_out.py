"""The parts whose muting matters most, as bars: what each takes away, the largest on top."""

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import GHOSTED, ghost_bars
from gptviz.figures.marks import line, upright
from gptviz.figures.theme import Mode, figure, palette

ROW = 25  # pixels of a bar


def ranked_bars(
    labels: Sequence[str],
    lost: NDArray[np.floating],
    written: Sequence[str],
    says: Sequence[str],
    opened: int | None,
    mode: Mode,
    unchanged: NDArray[np.floating] | None = None,
) -> Figure:
    """What each of these parts takes away, (n,), the first on top; `written` stands at the bars' ends.

    Orange where the prediction loses without the part, blue where it gains. The bar `opened` has an
    edge in the accent's colour; `says` is what a hover says. A bar's `y` is its place in the list.
    `unchanged`, (n,), is what muting the same parts takes away in the model without its changes: ghosts.
    """
    colors, n = palette(mode), len(labels)
    ends = np.concatenate([[0.0], lost, [] if unchanged is None else unchanged])
    low, high = float(ends.min()), float(ends.max())
    longest = max(len(text) for text in written)
    room = (0.3 if longest < 8 else 0.5) * ((high - low) or 1.0)  # for what stands at the ends
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(lost, dtype=np.float64),
        "y": np.arange(n),
        "text": [html.escape(one, quote=False) for one in written],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 13},
        "hovertext": [html.escape(one, quote=False) for one in says],
        "hoverinfo": "text",
        "showlegend": False,
        "unselected": {"marker": {"opacity": 1}},  # a click opens a part: it is no selection
        "marker": {
            "color": [colors.positive if value >= 0 else colors.negative for value in lost],
            "line": {"color": colors.accent, "width": [3 if i == opened else 0 for i in range(n)]},
        },
    }
    layout = {
        "shapes": [upright(0, line(colors.quiet, 1))],
        "xaxis": {
            "range": [low - (room if low < 0 else 0), high + room],
            "fixedrange": True,
            "nticks": 5,
        },
        "yaxis": {
            "tickvals": np.arange(n),
            "ticktext": [f"{html.escape(label, quote=False)}  " for label in labels],
            "range": [n - 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
            "ticks": "",
        },
        "bargap": 0.25,
        "hovermode": "closest",
    }
    if unchanged is None:
        return figure([bars], layout, mode, height=ROW * n + 40, t=4, r=8)
    still = {"orientation": "h", "unselected": {"marker": {"opacity": 1}}}
    ghosts = ghost_bars(np.asarray(unchanged, dtype=np.float64), np.arange(n), mode, says, **still)
    return figure([bars, ghosts], layout | GHOSTED, mode, height=ROW * n + 64, t=28, r=8)
