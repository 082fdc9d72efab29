"""Signed numbers as colour, blue below zero, paper at zero, orange above; and likeness of positions.

Every picture of signed numbers takes its scale and its colour bar from here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import across, band, line, upright
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]


BAR = 34  # pixels at the top of a figure that the scale's bar and its three numbers take


def signed_axis(limit: float, mode: Mode, right: float) -> dict[str, Any]:
    """The shared signed scale; its bar lies along the figure's upper edge and ends at `right` of the paper.

    The figure's upper margin must be at least `BAR`.
    """
    end = significant(limit, 2)
    right -= 0.01 * max(0, len(end) - 4)  # a label that runs over the figure's edge would not be drawn
    return {
        "colorscale": palette(mode).signed,
        "cmin": -limit,
        "cmax": limit,
        "colorbar": {
            "orientation": "h", "x": right, "xanchor": "right", "len": 0.3,
            "y": 1, "yref": "container", "yanchor": "top", "thickness": 8, "outlinewidth": 0,
            "tickvals": [-limit, 0, limit], "ticktext": [f"−{end}", "0", end],
            "ticks": "", "tickfont": {"size": 12}, "ypad": 4, "xpad": 0,
        },
    }  # fmt: skip


def share_axis(limit: float, mode: Mode, right: float) -> dict[str, Any]:
    """The half of the same scale that stands for numbers above 0, for what is never below it."""
    axis = signed_axis(limit, mode, right)
    bar = axis["colorbar"] | {"tickvals": [0, limit], "ticktext": ["0", significant(limit, 2)]}
    return axis | {"colorscale": upper_half(mode), "cmin": 0.0, "colorbar": bar}


def upper_half(mode: Mode) -> list[tuple[float, str]]:
    """The part of the signed scale that stands for numbers above 0, from paper on."""
    return [(2 * (at - 0.5), color) for at, color in palette(mode).signed if at >= 0.5]


def axis_names(number: int, letter: str) -> tuple[str, str]:
    """How a trace and the layout call the same axis: ("x3", "xaxis3"); the first has no number."""
    suffix = "" if number == 1 else str(number)
    return letter + suffix, f"{letter}axis{suffix}"


def similarity_matrix(
    similarity: Floats, positions: NDArray[np.integer], position: int, mode: Mode
) -> Figure:
    """Cosines between positions (n, n), for the positions given (n,); a cross marks the selected one."""
    cosines = {
        "type": "heatmap",
        "z": similarity.astype(np.float32),
        "x": positions,
        "y": positions,
        "coloraxis": "coloraxis",
        "hovertemplate": "positions %{y} and %{x}: cosine %{z:.3f}<extra></extra>",
    }
    title, stroke = {"text": "position"}, line(palette(mode).accent, 1.5, "dot")
    square = {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"}
    layout = {
        "coloraxis": signed_axis(1.0, mode, 0.97),
        "xaxis": {"title": title, "constrain": "domain", "showgrid": False},
        "yaxis": {"title": title} | square,
        "shapes": [across(position, stroke), upright(position, stroke)],
    }
    return figure([cosines], layout, mode, height=430, t=BAR)


def similarity_curve(row: Floats, position: int, used: int, mode: Mode) -> Figure:
    """One position's cosine with every position of the context, (C,); the prompt's `used` ones are shaded."""
    colors = palette(mode)
    curve = {
        "type": "scatter",
        "x": np.arange(len(row), dtype=np.int32),
        "y": row.astype(np.float32),
        "mode": "lines",
        "line": line(colors.accent, 2),
        "hovertemplate": f"position {position} and position %{{x}}: cosine %{{y:.3f}}<extra></extra>",
    }
    itself = {
        "type": "scatter",
        "x": [position],
        "y": [float(row[position])],
        "mode": "markers+text",
        "text": [f"position {position}"],
        "textposition": "middle right" if position < len(row) * 0.7 else "middle left",
        "marker": {"color": colors.accent, "size": 10},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    layout = {
        "xaxis": {"title": {"text": "position"}, "range": [-0.5, len(row) - 0.5]},
        "yaxis": {"title": {"text": f"cosine with position {position}"}, "range": [-1.05, 1.1]},
        "shapes": [band(-0.5, used - 0.5, colors.panel), across(0, line(colors.quiet, 1))],
    }
    return figure([curve, itself], layout, mode, height=430)
