"""The feed-forward as pictures: GELU with a token's numbers on it, one unit over the text.

Shapes: D emb_dim, U = 4D units, T tokens. A unit that fires is orange, one that does not grey.
"""

from typing import Any

import numpy as np

from gptviz.digits import significant
from gptviz.figures.marks import UNCHANGED, Floats, across, axis_names, ghost_stroke, heading, line
from gptviz.figures.theme import MARGIN, Figure, Mode, figure, palette

NEAR = 3.0  # to each side of 0: where GELU and ReLU differ


def gelu_dots(
    before: Floats,
    after: Floats,
    writes: Floats,
    unit: int,
    curve: tuple[Floats, Floats],
    mode: Mode,
    unchanged: tuple[float, float] | None = None,
) -> Figure:
    """Every unit of a token as a dot, its number before GELU across and after it up; (U,) each.

    Left all of them, right what lies about 0. `curve` is the model's activation (x, y), ReLU is dashed;
    a dot's area is what its unit writes. Curves 0 to 2 are the left panel's ReLU, GELU and dots, 3 to 5 the
    right one's; a ring stands around `unit`. `unchanged` is where that one is, before and after GELU, in the
    model without its changes: a ghost in each panel, the curves 6 and 7.
    """
    colors = palette(mode)
    largest = float(writes.max(initial=0.0)) or 1.0
    sizes = (5 + 13 * np.sqrt(writes / largest)).astype(np.float32)
    order = np.argsort(writes == writes[unit], kind="stable")  # the chosen one on top
    x, y = (values.astype(np.float32) for values in curve)
    fills = {"colorscale": [(0.0, colors.quiet), (1.0, colors.positive)], "cmin": 0, "cmax": 1}
    traces: list[dict[str, Any]] = []
    for number in (1, 2):
        axes = {"xaxis": axis_names(number, "x")[0], "yaxis": axis_names(number, "y")[0]}
        inside = order if number == 1 else order[np.abs(before[order]) <= NEAR]
        flat = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"} | axes
        traces += [
            flat | {"x": x, "y": np.maximum(x, 0), "name": "ReLU", "line": line(colors.quiet, 1.5, "dash")},
            flat | {"x": x, "y": y, "name": "GELU", "line": line(colors.accent, 1.5)},
            {
                "type": "scatter",
                "mode": "markers",
                "x": before[inside].astype(np.float32),
                "y": after[inside].astype(np.float32),
                "name": "units",
                "customdata": inside.astype(np.int32),
                "text": [significant(size) for size in writes[inside].tolist()],
                "marker": {
                    "size": sizes[inside],
                    "color": (before[inside] > 0).astype(np.uint8),  # numbers are sent as they are
                    "opacity": 0.6,
                    "line": {"width": np.where(inside == unit, 3, 0).astype(np.uint8), "color": colors.ink},
                }
                | fills,
                "selected": {"marker": {"opacity": 0.6}},
                "unselected": {"marker": {"opacity": 0.6}},
                "hovertemplate": "unit %{customdata}: %{x:.3r} before, %{y:.3r} after;<br>"
                "it writes a row of size %{text}<extra></extra>",
            }
            | axes,
        ]
    if unchanged is not None:
        now = float(before[unit]), float(after[unit])
        traces += [_moved_dot(unit, unchanged, now, number, mode) for number in (1, 2)]
    words = (
        f"<span style='color:{colors.positive}'>● fires</span>   "
        f"<span style='color:{colors.quiet}'>● does not</span>   "
        f"<span style='color:{colors.accent}'>— GELU</span>   "
        f"<span style='color:{colors.quiet}'>- - ReLU</span>"
    )
    if unchanged is not None:
        # a line of its own: a phone has no room for both
        words += f"<br><span style='color:{colors.ghost}'>○ unit {unit}, {UNCHANGED}</span>"
    top = float(after.max(initial=0.0))
    layout = {
        "clickmode": "event+select",
        "annotations": [heading(words, 0, 1)],
        "xaxis": {
            "domain": [0, 0.6],
            "anchor": "y",
            "title": {"text": "before GELU"},
            "range": _padded(x[0], x[-1]),
        },
        "yaxis": {"anchor": "x", "title": {"text": "after"}, "range": _padded(min(-0.4, -top / 20), top)},
        "xaxis2": {
            "domain": [0.68, 1],
            "anchor": "y2",
            "title": {"text": "about 0"},
            "range": [-NEAR, NEAR],
        },
        "yaxis2": {"anchor": "x2", "range": [-0.35, 1.2]},
        "shapes": [
            across(0, line(colors.grid, 1)),
            across(0, line(colors.grid, 1), ("x2", "y2")),
        ],
    }
    lines = words.count("<br>")
    return figure(traces, layout, mode, height=310 + 18 * lines, t=MARGIN["t"] + 18 * lines)


def _moved_dot(
    unit: int, unchanged: tuple[float, float], now: tuple[float, float], number: int, mode: Mode
) -> dict[str, Any]:
    """From where a unit is in the unchanged model, an open ring, to where it is now."""
    said = f"unit {unit}, {UNCHANGED}: {significant(unchanged[0])} before, {significant(unchanged[1])} after"
    shown = number == 1 or max(abs(unchanged[0]), abs(now[0])) <= NEAR
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": UNCHANGED,
        "x": [unchanged[0], now[0]] if shown else [],
        "y": [unchanged[1], now[1]] if shown else [],
        "line": ghost_stroke(mode),
        "marker": {
            "symbol": ["circle-open", "circle"],
            "size": [14, 0],
            "color": palette(mode).ghost,
            "line": {"width": 3},
            "opacity": 1,
        },
        "hovertext": [said, said],
        "hoverinfo": "text",
        "customdata": [unit, unit],
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "xaxis": axis_names(number, "x")[0],
        "yaxis": axis_names(number, "y")[0],
    }


def _padded(low: float, high: float) -> list[float]:
    gap = 0.04 * max(high - low, 1e-6)
    return [float(low - gap), float(high + gap)]
