"""Lines, bands, frames and words over a picture, as Plotly's layout has them: shapes and annotations."""

from typing import Any

Axes = tuple[str, str]  # as traces call them: ("x2", "y2")

# The axis of bars of probabilities and of other shares of 1, on every page: one length is one share, whatever
# else is drawn. Beyond 1 is room for the number at a bar's end.
SHARES: dict[str, Any] = {"range": [0, 1.18], "tickvals": [0, 0.25, 0.5, 0.75, 1], "fixedrange": True}


def line(color: str, width: float, dash: str | None = None) -> dict[str, Any]:
    return {"color": color, "width": width} | ({"dash": dash} if dash else {})


def across(y: float, stroke: dict[str, Any], axes: Axes = ("x", "y")) -> dict[str, Any]:
    """A line at the height y, as long as the picture is wide."""
    ends = {"xref": f"{axes[0]} domain", "x0": 0, "x1": 1, "yref": axes[1], "y0": y, "y1": y}
    return {"type": "line", "line": stroke} | ends


def upright(x: float, stroke: dict[str, Any], axes: Axes = ("x", "y")) -> dict[str, Any]:
    """A line at x, as long as the picture is high."""
    ends = {"xref": axes[0], "x0": x, "x1": x, "yref": f"{axes[1]} domain", "y0": 0, "y1": 1}
    return {"type": "line", "line": stroke} | ends


def band(x0: float, x1: float, fill: str, axes: Axes = ("x", "y")) -> dict[str, Any]:
    """The ground between x0 and x1 in another colour, below everything."""
    ground = {"type": "rect", "fillcolor": fill, "line": {"width": 0}, "layer": "below"}
    return ground | {"xref": axes[0], "x0": x0, "x1": x1, "yref": f"{axes[1]} domain", "y0": 0, "y1": 1}


def frame(
    x: tuple[float, float], y: tuple[float, float], stroke: dict[str, Any], axes: Axes = ("x", "y")
) -> dict[str, Any]:
    """A rectangle around what lies between."""
    corners = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "rect", "xref": axes[0], "yref": axes[1], "line": stroke} | corners


def heading(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """Words that stand on the point (x, y) of the paper, 0 to 1, and go on to the right."""
    at = {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper"}
    return at | {"xanchor": "left", "yanchor": "bottom", "align": "left"} | more
