"""The feed-forward as pictures: GELU with a token's numbers on it, one unit over the text.

Shapes: D emb_dim, U = 4D units, T tokens. A unit that fires is orange, one that does not grey.
"""

from typing import Any

import numpy as np

from gptviz.digits import significant
from gptviz.figures.marks import KEPT, UNCHANGED, Floats, across, ghost_curve, heading, line, on, words
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
        inside = order if number == 1 else order[np.abs(before[order]) <= NEAR]
        flat = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"} | on(number)
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
            | on(number),
        ]
    if unchanged is not None:
        now = float(before[unit]), float(after[unit])
        traces += [_moved_dot(unit, unchanged, now, number, mode) for number in (1, 2)]
    said = {"● fires": colors.positive, "● does not": colors.quiet}
    said |= {"— GELU": colors.accent, "- - ReLU": colors.quiet}
    above = [words(said)]
    if unchanged is not None:  # a line of its own: a phone has no room for both
        above.append(words({f"○ unit {unit}, {UNCHANGED}": colors.ghost}))
    top = float(after.max(initial=0.0))
    left = {"domain": [0, 0.6], "anchor": "y", "range": _padded(x[0], x[-1])}
    right = {"domain": [0.68, 1], "anchor": "y2", "range": [-NEAR, NEAR]}
    layout = {
        "annotations": [heading("<br>".join(above), 0, 1)],
        "xaxis": left | {"title": {"text": "before GELU"}},
        "yaxis": {"anchor": "x", "title": {"text": "after"}, "range": _padded(min(-0.4, -top / 20), top)},
        "xaxis2": right | {"title": {"text": "about 0"}},
        "yaxis2": {"anchor": "x2", "range": [-0.35, 1.2]},
        "shapes": [across(0, line(colors.grid, 1), axes) for axes in (("x", "y"), ("x2", "y2"))],
    }
    lines = len(above) - 1
    return figure(traces, layout, mode, height=310 + 18 * lines, t=MARGIN["t"] + 18 * lines)


def _moved_dot(
    unit: int, unchanged: tuple[float, float], now: tuple[float, float], number: int, mode: Mode
) -> dict[str, Any]:
    """From where a unit is in the unchanged model, an open ring, to where it is now."""
    said = f"unit {unit}, {UNCHANGED}: {significant(unchanged[0])} before, {significant(unchanged[1])} after"
    shown = number == 1 or max(abs(unchanged[0]), abs(now[0])) <= NEAR
    x, y = ([old, new] if shown else [] for old, new in zip(unchanged, now, strict=True))
    ring = {"symbol": ["circle-open", "circle"], "size": [14, 0], "color": palette(mode).ghost}
    marked = {"mode": "lines+markers", "marker": ring | {"line": {"width": 3}, "opacity": 1}}
    return ghost_curve(x, y, mode, [said, said], customdata=[unit, unit], **KEPT, **on(number)) | marked


def _padded(low: float, high: float) -> list[float]:
    gap = 0.04 * max(high - low, 1e-6)
    return [float(low - gap), float(high + gap)]
