"""A circuit drawn: the sheet of heads with those that are in, and F against the number of heads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import BAR, CHANGED, UNCHANGED, across, frame, ghost_stroke, line, signed_axis
from gptviz.figures.theme import Mode, figure, palette

ROW, LOW_ROW = 34, 26  # pixels of a row of the sheet: of up to HIGH_ROWS blocks, of more
HIGH_ROWS = 8  # with them a cell has room for two lines
VISIBLE = 0.005  # below it a cell's two decimals are zeros: the scale and the hover say how little it is
WRITTEN_HEADS = 12  # above it cells have no room for numbers


def circuit_sheet(
    brings: NDArray[np.floating] | None,
    inside: Collection[tuple[int, int]],
    shape: tuple[int, int],
    mode: Mode,
    unchanged: NDArray[np.floating] | None = None,
) -> Figure:
    """Blocks x heads: who is in the circuit has a thick frame, who is not a thin one.

    `brings` (L, H) colours a cell: F with the head less F without it, the others as they are. Without it the
    cells have no colour. `shape` is (L, H). `unchanged` (L, H) is what it brings in the model without its
    changes: in brackets below the number.
    """
    rows, count = shape
    colors = palette(mode)
    values = np.zeros(shape) if brings is None else np.asarray(brings, dtype=np.float64)
    limit = float(np.abs(values).max()) or 1.0
    largest = max(limit, 0.0 if unchanged is None else float(np.abs(unchanged).max()))
    says = [
        [
            f"block {b}, head {h}: {'in the circuit' if (b, h) in inside else 'set to its mean'}"
            + ("" if brings is None else f"; with it F is {_more(float(values[b, h]))} than without it")
            + ("" if unchanged is None else f", in the unchanged model {_more(float(unchanged[b, h]))}")
            + f"<br>a click {'takes it out' if (b, h) in inside else 'puts it in'}"
            for h in range(count)
        ]
        for b in range(rows)
    ]
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "hovertext": says,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "coloraxis": "coloraxis",
        "xgap": 5,
        "ygap": 5,
    }
    if brings is not None and count <= WRITTEN_HEADS and largest >= VISIBLE:
        cells |= {
            "text": _written(values, unchanged if rows <= HIGH_ROWS else None),
            "texttemplate": "%{text}",
            "textfont": {"size": 11},
        }
    stroke, thin = line(colors.accent, 3), line(colors.masked, 1)
    shapes = []
    for b in range(rows):
        for h in range(count):
            x, y = (h - 0.45, h + 0.45), (b - 0.44, b + 0.44)
            shapes.append(frame(x, y, stroke if (b, h) in inside else thin))
    plain = {"showgrid": False, "fixedrange": True, "ticks": "", "tickmode": "array"}
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97)
        if brings is not None
        else {"colorscale": colors.signed, "cmin": -1, "cmax": 1, "showscale": False},
        "xaxis": plain | {"side": "top", "tickvals": np.arange(count), "range": [-0.5, count - 0.5]},
        "yaxis": plain
        | {
            "tickvals": np.arange(rows),
            "ticktext": [f"block {b} " for b in range(rows)],
            "range": [rows - 0.5, -0.5],
        },
        "shapes": shapes,
    }
    height = BAR + 34 + rows * (ROW if rows <= HIGH_ROWS else LOW_ROW)
    return figure([cells], layout, mode, height=height, t=BAR + 26, r=4)


def _written(values: NDArray[np.floating], unchanged: NDArray[np.floating] | None) -> list[list[str]]:
    """The cells' numbers, the unchanged model's below them."""
    own = [[fixed(value, 2) for value in row] for row in values]
    if unchanged is None:
        return own
    return [
        [f"{said}<br>({fixed(value, 2)})" for said, value in zip(*pair, strict=True)]
        for pair in zip(own, unchanged, strict=True)
    ]


def _more(value: float) -> str:
    return f"{significant(abs(value))} {'higher' if value >= 0 else 'lower'}"


@dataclass(frozen=True)
class Curve:
    """F against the number of heads: a search ("remove", "add") or a "random" order; a hover a point."""

    kind: str
    sizes: Sequence[int]
    values: Sequence[float]
    says: Sequence[str]


def circuit_curve(
    curves: Sequence[Curve],
    names: Mapping[str, str],
    levels: tuple[float, float],
    here: tuple[int, float],
    heads: int,
    measure: str,
    mode: Mode,
    unchanged: float | None = None,
) -> Figure:
    """The curves, the whole model's F, and the circuit in hand.

    `levels` are that F, and how far below or above it the prediction counts as kept.
    `names` are the curves' by their kind; `here` is the circuit's size and F. A point's
    customdata is [the curve's kind, its place in the curve]. `unchanged` is F of the model without its
    changes: a ghost's line.
    """
    colors, (whole, allowed) = palette(mode), levels
    style = {
        "remove": line(colors.accent, 2.5),
        "add": line(colors.positive, 2.5),
        "random": line(colors.quiet, 1.5, "dot"),
    }
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": names[curve.kind],
            "x": list(curve.sizes),
            "y": list(curve.values),
            "line": style[curve.kind],
            "marker": {"size": 5},
            "customdata": [[curve.kind, i] for i in range(len(curve.sizes))],
            "hovertext": list(curve.says),
            "hoverinfo": "text",
            "unselected": {"marker": {"opacity": 1}},
        }
        for curve in curves
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "this circuit",
            "x": [here[0]],
            "y": [here[1]],
            "marker": {
                "size": 14,
                "color": colors.output,
                "symbol": "diamond",
                "line": {"color": colors.ink, "width": 1.5},
            },
            "hovertext": [f"this circuit: {here[0]} heads, F = {significant(here[1])}"],
            "hoverinfo": "text",
            "cliponaxis": False,
        }
    )
    everything = [value for curve in curves for value in curve.values] + [here[1], 0.0]
    everything += [whole - allowed, whole + allowed]
    everything += [] if unchanged is None else [unchanged]
    low, high = min(everything), max(everything)
    room = 0.06 * ((high - low) or 1.0)
    layout: dict[str, Any] = {
        "xaxis": {
            "title": {"text": "heads in the circuit"},
            "range": [-0.8, heads + 0.8],
            "fixedrange": True,
        },
        "yaxis": {"title": {"text": measure}, "range": [low - room, high + 2 * room], "fixedrange": True},
        "shapes": [
            across(whole, line(colors.ink, 1)),
            *(across(whole + sign * allowed, line(colors.quiet, 1, "dash")) for sign in (-1, 1)),
        ],
        "annotations": [_named("the whole model" if unchanged is None else f"the model, {CHANGED}", whole)],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    if unchanged is not None:
        layout["shapes"].append(across(unchanged, ghost_stroke(mode)))
        layout["annotations"].append(_named(f"the model, {UNCHANGED}", unchanged, heads // 2))
    return figure(traces, layout, mode, height=360, t=36, r=10)


def _named(text: str, level: float, x: float = 0) -> dict[str, Any]:
    """What stands on a line across."""
    return {"text": text, "x": x, "y": level, "xanchor": "left", "yanchor": "bottom", "font": {"size": 12}}
