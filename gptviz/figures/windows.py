"""How often each token of a text is a target of its windows: bars along the text."""

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.figure import Figure
from gptviz.figures.theme import Mode, figure, palette


def times_target(times: NDArray[np.integer], mode: Mode) -> Figure:
    """(n_tokens,) counts, a bar a token; the gaps are tokens that no window asks for."""
    bars = {
        "type": "bar",
        "x": np.arange(len(times), dtype=np.int32),
        "y": times.astype(np.int32),
        "marker": {"color": palette(mode).value, "line": {"width": 0}},
        "hovertemplate": "position %{x}: a target of %{y} windows<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "position in the text"}, "showgrid": False},
        "yaxis": {"title": {"text": "times a target"}, "rangemode": "tozero", "nticks": 5},
        "bargap": 0.15 if len(times) <= 64 else 0,
    }
    return figure([bars], layout, mode, height=190)
