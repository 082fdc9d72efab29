"""Labels of heads: as a sheet, all of them as points, what one looks at and writes, and what it is worth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import ROLES
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures import marks
from gptviz.figures.theme import Figure, Mode, figure, mixed, palette

WRITTEN = 9  # heads across: with more, a cell has no room for a word
MARKS = {"holds": "✓", "not shown": "○", "not decided": "?"}
KEY = 34  # pixels below the cells
GROUND = 0.42  # of the role's colour in its cell: the word on it stays readable
POINTED = {"showlegend": True, "legend": marks.legend(1, 1.02)}


@dataclass(frozen=True)
class Cell:
    """A head's role, what a hover says, and how its trial ended, "" where it was not tried.

    `hidden`: the role is one that this text cannot show.
    """

    role: str
    says: str
    verdict: str = ""
    hidden: bool = False


def role_sheet(cells: Sequence[Sequence[Cell]], chosen: tuple[int, int], mode: Mode) -> Figure:
    """A row a block and a column a head, (L, H): a colour and a word for each role; the chosen is framed.

    A label that was withdrawn is struck out, any other that was tried has a mark. The key stands below:
    what heads of a colour look for.
    """
    theme = palette(mode)
    roles = list(ROLES)
    grounds = [mixed(theme.paper, color, GROUND) for color in marks.role_colors(mode).values()]
    grounds.append(theme.masked)
    codes = np.array(
        [[len(roles) if cell.hidden else roles.index(cell.role) for cell in row] for row in cells]
    )
    rows, columns = codes.shape
    n = len(grounds)
    steps = [(edge / n, color) for i, color in enumerate(grounds) for edge in (i, i + 1)]
    scale = {"zmin": -0.5, "zmax": n - 0.5, "colorscale": steps, "showscale": False}
    hovers = [[marks.safe(cell.says) for cell in row] for row in cells]
    heat = marks.cells(
        codes.astype(np.int32), "%{customdata}", customdata=hovers, xgap=2, ygap=2, **scale
    )
    if columns <= WRITTEN:
        heat |= {
            "text": [[_word(cell, theme.quiet) for cell in row] for row in cells],
            "texttemplate": "%{text}",
            "textfont": {"size": 12, "color": theme.ink},
        }
    across = {"side": "top", "tickvals": np.arange(columns), "range": [-0.5, columns - 0.5]}
    down = marks.names_down(rows) | {"ticktext": [f"{b} " for b in range(rows)]}
    families = marks.family_colors(mode)
    key = {f"■ {family}": color for family, color in families.items()}
    key["■ none of these"] = theme.quiet
    below = {"yanchor": "top", "yshift": -6}
    layout = {
        "xaxis": marks.BARE | across | {"title": {"text": "head"}},
        "yaxis": marks.BARE | down | {"title": {"text": "block"}},
        "shapes": [marks.around(*chosen, marks.line(theme.accent, 3))],
        "annotations": [marks.heading(f"looks for {marks.words(key)}", 0, 0, **below)],
    }
    tall = 25
    if rows <= 6:
        tall = 56
    elif rows <= 8:
        tall = 46
    return figure([heat], layout, mode, height=44 + KEY + rows * tall, t=44, r=4, b=KEY)


def _word(cell: Cell, quiet: str) -> str:
    label = ROLES[cell.role].label
    mark = MARKS.get(cell.verdict, "")
    word = label.replace(" ", "<br>")
    if cell.hidden:
        return f'<i style="color:{quiet}">{word}</i>'
    if cell.verdict == "withdrawn":
        return f"<s>{word}</s>"
    if not mark:
        return word
    between = " " if " " in label else "<br>"  # a label of one word leaves a line below it
    return f"{word}{between}{mark}"


# ---- all heads as points ----

NOTHING = "this text cannot show what these axes are about"
NAMED = 8  # heads whose numbers stand beside their points, beside the chosen one
# of the picture, across and up: half of what a name takes, and a point
NAME = np.array([0.034, 0.026])
POINT = np.array([0.015, 0.024])
SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "x",
    "star",
    "pentagon",
    "hexagram",
)
SIDES = {
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top center": (0, 1),
    "bottom center": (0, -1),
}
HEAD = "%{customdata[2]}<extra></extra>"  # a hover over a head


def finder(
    heads: pd.DataFrame, axes: tuple[str, str], chosen: tuple[int, int], mode: Mode
) -> Figure:
    """All heads as points in their roles' colours and shapes; `chosen` is ringed, and those apart are named.

    `heads` has block, head, x, y, role and withdrawn, whose point is hollow. A head without an x or y (NaN)
    is left out. A point's customdata is [block, head, what a hover says]; `axes` are the measures' titles.
    """
    theme = palette(mode)
    colors = marks.role_colors(mode)
    seen = [head for head in heads.itertuples() if math.isfinite(head.x) and math.isfinite(head.y)]
    # (n, 2), of no heads (0, 2)
    places = np.array([(head.x, head.y) for head in seen]).reshape(-1, 2)
    is_chosen = np.array([(head.block, head.head) == chosen for head in seen], dtype=bool)
    sides = _names(places, is_chosen)
    traces = []
    # colour does not stand alone
    for symbol, role in zip(cycle(SYMBOLS), ROLES.values(), strict=False):
        indices = [i for i, head in enumerate(seen) if head.role == role.name]
        if not indices:
            continue
        says = [[seen[i].block, seen[i].head, _says(seen[i], role.label, axes)] for i in indices]
        withdrawn = np.array([seen[i].withdrawn for i in indices])
        hollow = {"symbol": np.where(withdrawn, f"{symbol}-open", symbol)}
        edge = {"line": {"width": np.where(withdrawn, 2, 0), "color": colors[role.name]}}
        marker = {"size": 12, "color": colors[role.name]} | hollow | edge
        names: dict[str, Any] = {
            "text": [_name(seen[i], sides.get(i), is_chosen[i]) for i in indices],
            "textposition": [sides.get(i, "middle right") for i in indices],
            "textfont": {"size": 12},
        }
        look = names | {"mode": "markers+text", "hovertemplate": HEAD}
        traces.append(
            _dots(role.label, places[indices, 0], places[indices, 1], says, marker, **look)
        )
    ring = {
        "size": 22,
        "symbol": "circle-open",
        "color": theme.ink,
        "line": marks.line(theme.ink, 2.5),
    }
    unseen = {
        "hoverinfo": "skip",
        "showlegend": False,
        "unselected": marks.WHOLE,
        "cliponaxis": False,
    }
    traces.append(marks.dots(places[is_chosen, 0], places[is_chosen, 1], ring, **unseen))
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": axes[0]}} | _range(places[:, 0]),
        "yaxis": {"title": {"text": axes[1]}} | _range(places[:, 1]),
        "legend": marks.legend(0, 1.02, font={"size": 12}, **marks.STILL),
    }
    if not seen:
        layout["annotations"] = [
            {"text": NOTHING, "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        ]
    return figure(traces, POINTED | layout, mode, height=390, t=52, r=36)


def _dots(
    name: str, x: Any, y: Any, says: list[Any], marker: dict[str, Any], **extra: Any
) -> dict[str, Any]:
    """Points, each with what a hover says of it."""
    hover = {
        "customdata": says,
        "hovertemplate": "%{customdata}<extra></extra>",
        "unselected": marks.WHOLE,
    }
    x, y = (np.asarray(places, dtype=np.float64) for places in (x, y))
    return marks.dots(x, y, marker, name=name, cliponaxis=False, **hover | extra)


def _says(point: Any, label: str, axes: tuple[str, str]) -> str:
    numbers = zip(axes, (point.x, point.y), strict=True)
    measures = "".join(f"<br>{marks.safe(axis)}: {significant(value)}" for axis, value in numbers)
    withdrawn = ""
    if point.withdrawn:
        withdrawn = ", withdrawn"
    return f"<b>block {point.block}, head {point.head}</b>: {label}{withdrawn}{measures}"


def _range(values: Sequence[float] | NDArray[np.float64]) -> dict[str, Any]:
    """As far as the values go, with room for a point and its name."""
    if not len(values):
        return {}
    room = 0.07 * ((max(values) - min(values)) or 1.0)
    return {"range": [min(values) - room, max(values) + room]}


def _name(point: Any, side: str | None, is_chosen: bool) -> str:
    """A head's numbers, beyond the ring where it is the chosen one; "" where they have no place."""
    name = f"{point.block}·{point.head}"
    space = "\u2003"
    if side is None or not is_chosen:
        if side:
            return name
        return ""
    beyond = {"middle right": f"{space}{name}", "middle left": f"{name}{space}"}
    return beyond.get(side, f"{name}<br>{space}" if side == "top center" else f"{space}<br>{name}")


def _names(places: NDArray[np.float64], is_chosen: NDArray[np.bool_]) -> dict[int, str]:
    """The points (n, 2) whose names are written, and on which side: where they cover no point and no name.

    That is the chosen one, and of the others those that stand farthest from the middle of all.
    """
    if not len(places):
        return {}
    spread = np.ptp(places, axis=0)
    scaled = (places - np.median(places, axis=0)) / np.where(spread > 0, spread, 1.0)
    sides: dict[int, str] = {}
    taken = np.empty((0, 2))  # the middles of the names
    for i in np.argsort(-np.linalg.norm(scaled, axis=1) - 1e9 * is_chosen, kind="stable").tolist():
        other_points = np.delete(scaled, i, axis=0)
        for side, towards in SIDES.items():
            middle = scaled[i] + np.array(towards) * (NAME + POINT * (2 if is_chosen[i] else 1))
            covers = (np.abs(other_points - middle) < NAME + POINT).all(axis=1).any()
            if not covers and not (np.abs(taken - middle) < 2 * NAME).all(axis=1).any():
                sides[i] = side
                taken = np.vstack([taken, middle])
                break
        else:
            if is_chosen[i]:  # it has a name in any case
                sides[i] = "middle right"
        if len(sides) > NAMED:
            break
    return sides


# ---- what a head looks at, and what it writes ----

# of the answer, and of what might be said instead: colour does not stand alone
OF_WORDS = (("circle", 4), ("diamond", 2))  # of the palette's heads: purple and green
ROOM_TO_THE_LEFT = 0.03  # of the axis, before an attention of 0: there is none below


def looked_and_written(
    points: Both[pd.DataFrame], names: Mapping[str, str], axes: tuple[str, str], mode: Mode
) -> Figure:
    """A point a text and word: how much a head looks at the word, and what it writes for it.

    `points` has name, text, attention, projection and says: a hover. `names` is what the key calls each name; a
    point's customdata is [text, says]. The line is the best straight one through all of them; the unchanged
    model's points are hollow.
    """
    theme = palette(mode)
    x, y = (points.now[column].to_numpy(float) for column in ("attention", "projection"))
    ends = np.array([x.min(), x.max()])  # (2,)
    traces: list[Any] = []
    if points.was is not None:
        hollow = {"size": 10, "color": theme.ghost, "symbol": "circle-open"}
        traces.append(_words(points.was, marks.UNCHANGED, hollow))
    for (symbol, color), (name, called) in zip(OF_WORDS, names.items(), strict=True):
        own = points.now[points.now["name"] == name]
        if len(own):
            look = {"color": theme.heads[color], "symbol": symbol}
            marker = look | {"size": 12, "opacity": 0.8}
            traces.append(_words(own, called, marker))
    if ends[0] < ends[1]:
        slope, start = np.polyfit(x, y, 1)
        best = marks.line(theme.quiet, 2)
        traces.append(marks.stroke(ends, start + slope * ends, best, name="best straight line"))
    every = pd.concat(points.all)
    farthest = max(0.1, 1.07 * every["attention"].max())
    across = {"range": [-ROOM_TO_THE_LEFT * farthest, farthest]}
    layout = {
        "xaxis": {"title": {"text": axes[0]}} | across,
        "yaxis": {"title": {"text": axes[1]}} | _range([0.0, *every["projection"]]),
        "legend": marks.legend(0, 1.02, font={"size": 14}, **marks.STILL),
        "shapes": [marks.across(0, marks.line(theme.quiet, 1))],
    }
    return figure(traces, POINTED | layout, mode, height=390, t=44, r=16)


def _words(points: pd.DataFrame, name: str, marker: dict[str, Any]) -> dict[str, Any]:
    """The points of one kind of word."""
    says = [
        [int(point.text), marks.safe(point.says).replace("\n", "<br>")]
        for point in points.itertuples()
    ]
    hover = {"hovertemplate": "%{customdata[1]}<extra></extra>"}
    return _dots(name, points["attention"], points["projection"], says, marker, **hover)


# ---- the trial ----


@dataclass(frozen=True)
class Cost:
    """The rise of the loss by a change, in nats per token: of the head on trial, and of `others` (by head).

    `what` says on which passages and how; `whole` is the model's own loss there.
    """

    what: str
    whole: float
    rise: float
    others: Mapping[int, float]


def costs(found: Sequence[Cost], block: int, head: int, mode: Mode) -> Figure:
    """A row a change: how much the loss rises by it, of the head (large) and of each other head (grey)."""
    colors = palette(mode)
    n = len(found)
    other_points = [
        (row, h, rise) for row, cost in enumerate(found) for h, rise in cost.others.items()
    ]
    head_points = [(row, head, cost.rise) for row, cost in enumerate(found)]
    small = {"size": 11, "color": colors.quiet, "opacity": 0.6}
    large = {"size": 18, "color": colors.accent, "symbol": "diamond"}
    traces = []
    for name, points, marker in (
        ("others of its block", other_points, small),
        (f"head {head}", head_points, large),
    ):
        says = []
        for row, h, rise in points:
            loss = significant(found[row].whole + rise)
            way = "more" if rise >= 0 else "less"
            change = f"{significant(abs(rise))} {way}"
            says.append(
                f"block {block}, head {h}: {marks.safe(found[row].what)}<br>loss {loss}, {change}"
            )
        traces.append(
            _dots(name, [rise for *_, rise in points], [row for row, *_ in points], says, marker)
        )
    losses = [f"{fixed(cost.whole, 2)} → {fixed(cost.whole + cost.rise, 2)}" for cost in found]
    layout = {
        "xaxis": {"title": {"text": "how much the loss rises, in nats per token"}}
        | _range([0.0, *(rise for *_, rise in (*other_points, *head_points))]),
        "yaxis": {"visible": False, "range": [n - 0.5, -0.65]},
        "annotations": [
            marks.heading(f"<b>{marks.safe(cost.what)}</b>: {loss}", 0, row - 0.24, yref="y")
            for row, (cost, loss) in enumerate(zip(found, losses, strict=True))
        ],
        "shapes": [marks.upright(0, marks.line(colors.quiet, 1))],
    }
    return figure(traces, POINTED | layout, mode, height=100 + 66 * n, t=34, r=16)
