"""What the unchanged model gives, beside what the changed one gives: outlined bars, a dashed curve.

A run with edits is drawn as any other; the unchanged values stand with it as ghosts, in the palette's `ghost`
on every page. On the screen the two are called as they are here.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.marks import line
from gptviz.figures.theme import Mode, palette

UNCHANGED, CHANGED, DIFFERENCE = "unchanged", "changed", "difference"

Numbers = NDArray[np.floating] | NDArray[np.integer]

# For the layout of a figure with ghosts, whose other traces have the `name` CHANGED (or no place in the
# legend): ghost bars lie over the others, and a legend at the top right says which are which.
GHOSTED: dict[str, Any] = {
    "barmode": "overlay",
    "showlegend": True,
    "legend": {
        "orientation": "h",
        "x": 1,
        "xanchor": "right",
        "y": 1,
        "yanchor": "bottom",
        "itemclick": False,
        "itemdoubleclick": False,
    },
}


def ghost_stroke(mode: Mode, width: float = 2) -> dict[str, Any]:
    """The dashed line of a ghost, for a shape (`figures.marks`) or a trace of one's own."""
    return line(palette(mode).ghost, width, "dash")


def ghost_curve(x: Numbers, y: Numbers, mode: Mode, hover: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """The unchanged curve, (n,) each, as a Plotly trace, dashed: put it before the changed one.

    `hover` are n sentences, escaped here; without any the points say nothing. `more` is added to the trace,
    or replaces what it has.
    """
    trace = {
        "type": "scatter",
        "mode": "lines" if len(x) > 2 else "lines+markers",  # one point alone would not be seen
        "name": UNCHANGED,
        "x": x,
        "y": y,
        "line": ghost_stroke(mode),
    }
    return trace | _says(hover) | more


def ghost_bars(x: Numbers, y: Numbers, mode: Mode, hover: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """The unchanged bars, (n,) each, as outlines: put them after the changed ones, and use `GHOSTED`.

    `orientation="h"` among `more` for bars that lie, whose lengths are `x`. The rest as in `ghost_curve`.
    """
    trace = {
        "type": "bar",
        "name": UNCHANGED,
        "x": x,
        "y": y,
        "marker": {"color": "rgba(0,0,0,0)", "line": {"color": palette(mode).ghost, "width": 2}},
    }
    return trace | _says(hover) | more


def _says(hover: Sequence[str]) -> dict[str, Any]:
    if not hover:
        return {"hoverinfo": "skip"}
    return {"hovertext": [escape(sentence) for sentence in hover], "hoverinfo": "text"}
