"""Every head as a point by two measures, in the colour of its role: a click opens it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import ROLES
from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import line
from gptviz.figures.theme import Mode, figure, palette

NOTHING = "this text cannot show what these axes are about"
NAMED = 8  # heads whose numbers stand beside their points, beside the chosen one
# of the picture, across and up: half of what a name takes, and a point
NAME, POINT = np.array([0.034, 0.026]), np.array([0.015, 0.024])
SIDES = {"middle right": (1, 0), "middle left": (-1, 0), "top center": (0, 1), "bottom center": (0, -1)}


@dataclass(frozen=True)
class Point:
    """A head: where it stands by the two measures, its role, and whether that was withdrawn."""

    block: int
    head: int
    x: float
    y: float
    role: str
    withdrawn: bool = False


def finder(
    points: Sequence[Point],
    axes: tuple[str, str],
    colors: Mapping[str, str],
    chosen: tuple[int, int],
    mode: Mode,
) -> Figure:
    """A trace a role; `chosen` is ringed.

    A point's customdata is [block, head, what a hover says]. A role that was withdrawn leaves a hollow point.
    `axes` are the two measures' titles. A measure that is not there (NaN) leaves the head out.
    """
    theme = palette(mode)
    seen = [p for p in points if np.isfinite([p.x, p.y]).all()]
    named = _names(seen, chosen)
    traces: list[dict[str, Any]] = []
    for role, label in ((role.name, role.label) for role in ROLES.values()):
        some = [p for p in seen if p.role == role]
        if not some:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": label,
                "x": [p.x for p in some],
                "y": [p.y for p in some],
                "text": [_name(p, named.get((p.block, p.head)), chosen) for p in some],
                "textposition": [named.get((p.block, p.head), "middle right") for p in some],
                "textfont": {"size": 12},
                "customdata": [[p.block, p.head, _says(p, axes, label)] for p in some],
                "hovertemplate": "%{customdata[2]}<extra></extra>",
                "cliponaxis": False,
                "unselected": {"marker": {"opacity": 1}},  # a click opens a head: it is no selection
                "marker": {
                    "size": 12,
                    "color": colors[role],
                    "symbol": ["circle-open" if p.withdrawn else "circle" for p in some],
                    "line": {"width": [2 if p.withdrawn else 0 for p in some], "color": colors[role]},
                },
            }
        )
    ring = [p for p in seen if (p.block, p.head) == chosen]
    around = {"size": 22, "symbol": "circle-open", "color": theme.ink, "line": line(theme.ink, 2.5)}
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [p.x for p in ring],
            "y": [p.y for p in ring],
            "marker": around,
            "unselected": {"marker": {"opacity": 1}},
            "hoverinfo": "skip",
            "cliponaxis": False,
            "showlegend": False,
        }
    )
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": axes[0]}, "fixedrange": True} | _range([p.x for p in seen]),
        "yaxis": {"title": {"text": axes[1]}, "fixedrange": True} | _range([p.y for p in seen]),
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False}
        | {"itemdoubleclick": False, "font": {"size": 12}},
    }
    if not seen:
        layout["annotations"] = [{"text": NOTHING, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}]
    return figure(traces, layout, mode, height=390, t=52, r=36)


def _says(point: Point, axes: tuple[str, str], label: str) -> str:
    what = f"{label}, withdrawn" if point.withdrawn else label
    return (
        f"<b>block {point.block}, head {point.head}</b>: {escape(what, quote=False)}<br>"
        f"{escape(axes[0], quote=False)}: {significant(point.x)}<br>"
        f"{escape(axes[1], quote=False)}: {significant(point.y)}"
    )


def _range(values: Sequence[float]) -> dict[str, Any]:
    """As far as the values go, with room for a point and its name."""
    if not values:
        return {}
    low, high = min(values), max(values)
    room = 0.06 * ((high - low) or 1.0)
    return {"range": [low - room, high + room]}


def _name(point: Point, side: str | None, chosen: tuple[int, int]) -> str:
    """Its numbers, beyond the ring where it is the chosen one; "" where they have no place."""
    own = f"{point.block}·{point.head}"
    if side is None or (point.block, point.head) != chosen:
        return own if side else ""
    space = "\u2003"
    beyond = {
        "middle right": f"{space}{own}",
        "middle left": f"{own}{space}",
        "top center": f"{own}<br>{space}",
        "bottom center": f"{space}<br>{own}",
    }
    return beyond[side]


def _names(points: Sequence[Point], chosen: tuple[int, int]) -> dict[tuple[int, int], str]:
    """The heads whose numbers stand beside them, and on which side: where they cover no point and no name.

    The chosen one, and of the others those that stand farthest from the middle of all.
    """
    if not points:
        return {}
    places = np.array([[p.x, p.y] for p in points], dtype=float)  # (n, 2)
    spread = np.ptp(places, axis=0)
    scaled = (places - np.median(places, axis=0)) / np.where(spread > 0, spread, 1.0)
    heads = [(p.block, p.head) for p in points]
    order = np.argsort(-np.linalg.norm(scaled, axis=1), kind="stable").tolist()
    found: dict[tuple[int, int], str] = {}
    taken: list[NDArray[np.float64]] = []  # the middles of the names
    for i in sorted(order, key=lambda i: heads[i] != chosen):
        own = heads[i] == chosen
        others = np.delete(scaled, i, axis=0)
        for side, towards in SIDES.items():
            middle = scaled[i] + np.array(towards) * (NAME + POINT * (2 if own else 1))
            covers = (np.abs(others - middle) < NAME + POINT).all(axis=1).any()
            if not covers and all((np.abs(name - middle) >= 2 * NAME).any() for name in taken):
                found[heads[i]] = side
                taken.append(middle)
                break
        else:
            if own:
                found[heads[i]] = "middle right"
                taken.append(scaled[i] + np.array([1, 0]) * (NAME + 2 * POINT))
        if len(found) > NAMED:
            break
    return found
