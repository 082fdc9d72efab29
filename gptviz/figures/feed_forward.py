"""The feed-forward as pictures: GELU with a token's numbers on it, one unit over the text; and as strips
D -> 4D -> D, what it is given, its units before and after GELU, and what comes out. Of units with gates, each
by its gate and its up.

Shapes: D emb_dim, U units (GPT-2: 4D), T tokens. A unit that fires is orange, one that does not grey; one whose
gate is open and whose output is below 0 is blue.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import Figure, Mode, figure, palette

HEIGHT = 460
GATED_HEIGHT = 560
NEAR = 3.0  # to each side of 0: where GELU and ReLU differ
FREE = 0.45  # of the width, at least: left of 0, where the inset lies over nothing
INSET = (0.5, 0.93)  # of the height
FAINT = {"opacity": 0.6}
KEPT_FAINT: dict[str, Any] = {name: {"marker": FAINT} for name in ("selected", "unselected")}
UNIT_SAYS = (
    "unit %{customdata}: %{x:.3r} before, %{y:.3r} after;<br>it contributes a vector of norm %{text}"
    "<extra></extra>"
)


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

    What lies about 0 is drawn once more, larger, in an inset at the upper left, where no dot is. `curve` is
    the model's activation (x, y), ReLU is dashed; a dot's area is what its unit writes. Curves 0 to 2 are the
    whole picture's ReLU, GELU and dots, 3 to 5 the inset's; a ring stands around `unit`. `unchanged` is where
    that one is, before and after GELU, in the model without its changes: a ghost in each, the curves 6 and 7.
    """
    colors = palette(mode)
    largest = float(writes.max(initial=0.0)) or 1.0
    sizes = (6 + 14 * np.sqrt(writes / largest)).astype(np.float32)
    order = np.argsort(writes == writes[unit], kind="stable")  # the chosen one on top
    x, y = (values.astype(np.float32) for values in curve)
    fills = {"colorscale": [(0.0, colors.quiet), (1.0, colors.positive)], "cmin": 0, "cmax": 1}
    traces: list[dict[str, Any]] = []
    for number in (1, 2):
        if number == 1:
            inside = order
        else:
            inside = order[np.abs(before[order]) <= NEAR]
        ring = {"width": np.where(inside == unit, 3, 0).astype(np.uint8), "color": colors.ink}
        fires = (before[inside] > 0).astype(np.uint8)  # numbers are sent as they are
        marker = fills | FAINT | {"size": sizes[inside], "color": fires, "line": ring}
        across, up = (values[inside].astype(np.float32) for values in (before, after))
        hover: dict[str, Any] = {"customdata": inside.astype(np.int32), "hovertemplate": UNIT_SAYS}
        hover["text"] = [significant(size) for size in writes[inside].tolist()]
        dashed = marks.line(colors.quiet, 1.5, "dash")
        panel = marks.on(number)
        traces.append(marks.stroke(x, np.maximum(x, 0), dashed, name="ReLU", **panel))
        traces.append(marks.stroke(x, y, marks.line(colors.accent, 1.5), name="GELU", **panel))
        traces.append(marks.dots(across, up, marker, name="units", **KEPT_FAINT, **hover, **panel))
    if unchanged is not None:
        changed = float(before[unit]), float(after[unit])
        traces += [_moved_dot(unit, unchanged, changed, number, mode) for number in (1, 2)]
    there = [*before.tolist(), *([unchanged[0]] if unchanged is not None else [])]
    last = max(1.0, *there)
    low = min(-NEAR, -FREE / (1 - FREE) * last, *there)
    wide = _padded(low, last)
    # with 0 below the inset, where all that fires is small
    top = max(0.8, float(after.max(initial=0.0)))
    high = _padded(min(-0.4, -top / 20), top)
    # of the paper: where 0 is, and the inset ends a little left of it
    zero = -wide[0] / (wide[1] - wide[0])
    inset = (0.06, min(zero - 0.05, 0.6))
    layout = {
        "annotations": _key(int((before > 0).sum()), len(before), inset, unit, unchanged, mode),
        "xaxis": {
            "anchor": "y",
            "range": wide,
            "showgrid": False,
            "title": {"text": "number before GELU"},
        },
        "yaxis": {
            "anchor": "x",
            "range": high,
            "showgrid": False,
            "title": {"text": "number after GELU"},
        },
        "xaxis2": {
            "domain": [*inset],
            "anchor": "y2",
            "range": [-NEAR, NEAR],
            "tickvals": [-2, 0, 2],
        },
        "yaxis2": {
            "domain": [*INSET],
            "anchor": "x2",
            "range": [-0.4, 1.2],
            "tickvals": [0, 1],
        },
        "shapes": [
            marks.across(0, marks.line(colors.grid, 1.5)),
            marks.upright(0, marks.line(colors.grid, 1.5)),
            marks.across(0, marks.line(colors.grid, 1.5), ("x2", "y2")),
        ],
    }
    return figure(traces, layout, mode, height=HEIGHT, t=8)


def _key(
    firing: int,
    count: int,
    inset: tuple[float, float],
    unit: int,
    unchanged: tuple[float, float] | None,
    mode: Mode,
) -> list[dict[str, Any]]:
    """The key, written where each thing is."""
    colors = palette(mode)
    rest = count - firing
    fire = "fires" if firing == 1 else "fire"
    do_not = "does not" if rest == 1 else "do not"
    firing_words = marks.words({f"● {firing:,} {fire}": colors.positive})
    rest_words = marks.words({f"● {rest:,} {do_not}": colors.quiet})
    lines = marks.words({"— GELU": colors.accent, "- - ReLU": colors.quiet})
    large = {"font": {"size": 18}}
    notes = [
        marks.heading(firing_words, 1, 0.16, xanchor="right", **large),
        marks.heading(rest_words, inset[0], 0.16, **large),
        marks.heading(f"near 0:   {lines}", inset[0], INSET[1]),
    ]
    if unchanged is not None:
        ghost = marks.words({f"○ unit {unit}, {marks.UNCHANGED}": colors.ghost})
        notes.append(marks.heading(ghost, 1, 0.09, xanchor="right"))
    return notes


def _moved_dot(
    unit: int, unchanged: tuple[float, float], changed: tuple[float, float], number: int, mode: Mode
) -> dict[str, Any]:
    """A line from where a unit is in the unchanged model, an open ring, to where it is in the changed one."""
    old, new = map(significant, unchanged)
    sentence = f"unit {unit}, {marks.UNCHANGED}: {old} before, {new} after"
    shown = number == 1 or max(abs(unchanged[0]), abs(changed[0])) <= NEAR
    x, y = ([*ends] if shown else [] for ends in zip(unchanged, changed, strict=True))
    ring = {"symbol": ["circle-open", "circle"], "size": [14, 0], "color": palette(mode).ghost}
    marked = {"mode": "lines+markers", "marker": ring | {"line": {"width": 3}, "opacity": 1}}
    placed = marks.KEPT | marks.on(number) | {"customdata": [unit for _ in x]}
    return marks.ghost_curve(x, y, mode, [sentence for _ in x], **placed) | marked


def _padded(low: float, high: float) -> list[float]:
    gap = 0.04 * max(high - low, 1e-6)
    return [float(low - gap), float(high + gap)]


# ---- gate and up ----

PLANE = (0.36, 1.0)  # of the height: the units by gate and up
BELOW = (0.0, 0.24)  # and what SiLU makes of a gate
GATED_SAYS = "unit %{customdata}: gate %{x:.3r}, up %{y:.3r};<br>%{text}<extra></extra>"


def gated_dots(
    units: tuple[Floats, Floats, Floats, Floats],
    unit: int,
    curve: tuple[Floats, Floats],
    mode: Mode,
    unchanged: tuple[float, float] | None = None,
) -> Figure:
    """Every unit of a token as a dot, its gate across and its up upward; below it SiLU over the same gates.

    `units` are gate, up, output and what each writes, (U,) each; a dot's area is the last. `curve` is SiLU
    (x, y). Curve 0 are the dots, with a ring around `unit`; 1 is ReLU, 2 is SiLU, 3 the chosen unit's place on
    it. `unchanged` is that unit's gate and up in the model without its changes: a ghost, the curve 4.
    """
    colors = palette(mode)
    gate, up, output, writes = units
    largest = float(writes.max(initial=0.0)) or 1.0
    order = np.argsort(writes == writes[unit], kind="stable")  # the chosen one on top
    sign = np.where(gate > 0, np.sign(output), 0)[order]
    fills = {"colorscale": [(0.0, colors.negative), (0.5, colors.quiet), (1.0, colors.positive)]}
    ring = {"width": np.where(order == unit, 3, 0).astype(np.uint8), "color": colors.ink}
    sizes = (6 + 14 * np.sqrt(writes[order] / largest)).astype(np.float32)
    marker = fills | FAINT | {"cmin": -1, "cmax": 1, "color": sign.astype(np.int8)}
    marker |= {"size": sizes, "line": ring}
    says = [
        f"output {significant(float(output[i]))}; it contributes a vector of norm "
        f"{significant(float(writes[i]))}"
        for i in order
    ]
    hover = {"customdata": order.astype(np.int32), "hovertemplate": GATED_SAYS, "text": says}
    across, upward = (values[order].astype(np.float32) for values in (gate, up))
    x, y = (values.astype(np.float32) for values in curve)
    at = float(gate[unit])
    passed = float(np.interp(at, *curve))
    dashed = marks.line(colors.quiet, 1.5, "dash")
    chosen = {"size": 12, "color": colors.accent}
    below = marks.on(2)
    traces = [
        marks.dots(across, upward, marker, name="units", **KEPT_FAINT, **hover, **marks.on(1)),
        marks.stroke(x, np.maximum(x, 0), dashed, name="ReLU", **below),
        marks.stroke(x, y, marks.line(colors.accent, 1.5), name="SiLU", **below),
        marks.dots([at], [passed], chosen, name="chosen", hoverinfo="skip", **below),
    ]
    ups = [*up.tolist()]
    if unchanged is not None:
        ups.append(unchanged[1])
        traces.append(_moved_gate(unit, unchanged, (at, float(up[unit])), mode))
    gates = [-1.0, 1.0, *gate.tolist()]
    if unchanged is not None:
        gates.append(unchanged[0])
    wide = _padded(min(gates), max(gates))
    reached = y[(x >= wide[0]) & (x <= wide[1])]
    limit = max(1e-3, *map(abs, ups))
    dotted = marks.line(colors.accent, 1, "dot")
    grid = marks.line(colors.grid, 1.5)
    layout = {
        "annotations": _gated_key(gate, output, at, passed, mode),
        "xaxis": {"anchor": "y", "range": wide, "showgrid": False, "showticklabels": False},
        "yaxis": {
            "anchor": "x",
            "domain": [*PLANE],
            "range": _padded(-limit, limit),
            "showgrid": False,
            "title": {"text": "up"},
        },
        "xaxis2": {
            "anchor": "y2",
            "range": wide,
            "matches": "x",
            "showgrid": False,
            "title": {"text": "gate"},
        },
        "yaxis2": {
            "anchor": "x2",
            "domain": [*BELOW],
            "range": _padded(min(-0.4, float(reached.min())), float(reached.max())),
            "showgrid": False,
            "title": {"text": "silu(gate)"},
        },
        "shapes": [
            marks.across(0, grid),
            marks.upright(0, grid),
            marks.across(0, grid, ("x2", "y2")),
            marks.upright(0, grid, ("x2", "y2")),
            marks.upright(at, dotted),
            marks.upright(at, dotted, ("x2", "y2")),
        ],
    }
    return figure(traces, layout, mode, height=GATED_HEIGHT, t=8)


def _gated_key(
    gate: Floats, output: Floats, at: float, passed: float, mode: Mode
) -> list[dict[str, Any]]:
    """The key of `gated_dots`, written where each thing is."""
    colors = palette(mode)
    is_open = gate > 0
    above = int((is_open & (output > 0)).sum())
    under = int((is_open & (output < 0)).sum())
    shut = len(gate) - int(is_open.sum())
    more = "gives" if above == 1 else "give"
    less = "gives" if under == 1 else "give"
    are = "gate is" if shut == 1 else "gates are"
    top = marks.words({f"● {above:,} {more} more than 0": colors.positive})
    bottom = marks.words({f"● {under:,} {less} less than 0": colors.negative})
    left = marks.words({f"● {shut:,} {are} shut": colors.quiet})
    lines = marks.words({"— SiLU": colors.accent, "- - ReLU": colors.quiet})
    chosen = f"{significant(at)} → {significant(passed)}"
    large = {"font": {"size": 18}}
    return [
        marks.heading(top, 1, PLANE[1], xanchor="right", yanchor="top", **large),
        marks.heading(bottom, 1, PLANE[0], xanchor="right", **large),
        marks.heading(left, 0, PLANE[1], yanchor="top", **large),
        marks.heading(f"{lines}   the chosen gate: {chosen}", 0, BELOW[1], yanchor="top"),
    ]


def _moved_gate(
    unit: int, unchanged: tuple[float, float], changed: tuple[float, float], mode: Mode
) -> dict[str, Any]:
    """A line from where a unit is by gate and up in the unchanged model to where it is in the changed one."""
    old, new = map(significant, unchanged)
    sentence = f"unit {unit}, {marks.UNCHANGED}: gate {old}, up {new}"
    x, y = ([*ends] for ends in zip(unchanged, changed, strict=True))
    ring = {"symbol": ["circle-open", "circle"], "size": [14, 0], "color": palette(mode).ghost}
    marked = {"mode": "lines+markers", "marker": ring | {"line": {"width": 3}, "opacity": 1}}
    placed = marks.KEPT | marks.on(1) | {"customdata": [unit for _ in x]}
    return marks.ghost_curve(x, y, mode, [sentence for _ in x], **placed) | marked


# ---- D -> 4D -> D ----

ACROSS = 128  # units side by side
HEADS = ("what norm2 gives", "units before GELU", "units after GELU", "what comes out")
GATED_HEADS = (HEADS[0], "gates of the units", "ups of the units", "silu(gate) × up", HEADS[-1])
ROOM = 26  # pixels for what stands over a strip
HIGH = 68  # of a strip
BETWEEN = 5  # from one down to the unchanged one


def expansion(
    strips: Sequence[Floats],
    unit: int,
    mode: Mode,
    unchanged: Sequence[Floats | None] = (None, None, None, None),
    heads: Sequence[str] = HEADS,
) -> Figure:
    """The four of `HEADS`, (D,), (U,), (U,) and (D,): strips of real values, one below the other.

    Of units with gates they are those of `GATED_HEADS`, with (U,) three times.

    A number is a cell, row after row from the left; blue below 0, orange above, each strip on a scale of its
    own but for those of the units, which share one. The unit's cells are framed. `unchanged` are those of
    the model without its changes: drawn below theirs, in a ghost's frame, where they are not None.
    """
    colors = palette(mode)
    of_units = range(1, len(heads) - 1)
    rows = max(1, math.ceil(len(strips[1]) / ACROSS))
    columns = math.ceil(len(strips[1]) / rows)
    pairs = [
        [new] if old is None else [new, old] for new, old in zip(strips, unchanged, strict=True)
    ]
    unit_values = [values for part in of_units for values in pairs[part]]
    height = sum(ROOM + len(pair) * (HIGH + BETWEEN) for pair in pairs)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "shapes": []}
    down = 0.0  # pixels from the top
    for part, (pair, head) in enumerate(zip(pairs, heads, strict=True)):
        limit = _limit(np.concatenate(unit_values if part in of_units else pair))
        down += ROOM
        words = f"<b>{head}</b>: {len(pair[0]):,} numbers, full colour at ±{significant(limit, 2)}"
        layout["annotations"].append(marks.heading(words, 0.5, 1 - down / height, xanchor="center"))
        for which, values in enumerate(pair):
            number = len(traces) + 1
            axes, (xaxis, yaxis) = marks.axis_names(number)
            grid = _grid(values, rows)
            across = grid.shape[1]
            half = grid.shape[1] / columns / 2
            top = 1 - down / height
            bare = marks.BARE | {"showticklabels": False, "showline": not which, "mirror": True}
            layout[xaxis] = bare | {"domain": [0.5 - half, 0.5 + half], "anchor": axes[1]}
            layout[yaxis] = bare | {"domain": [top - HIGH / height, top], "anchor": axes[0]}
            layout[yaxis]["autorange"] = "reversed"
            scale = {"zmin": -limit, "zmax": limit, "colorscale": colors.signed, "showscale": False}
            if which:
                name = marks.UNCHANGED
            else:
                name = marks.CHANGED
            template, numbers = _says(pair, rows, head, "unit" if part in of_units else "dimension")
            drawn = marks.cells(
                grid, template, customdata=numbers, hoverongaps=False, name=name, **scale
            )
            traces.append(drawn | marks.on(number))
            if which:
                whole_strip = (-0.5, across - 0.5), (-0.5, rows - 0.5)
                layout["shapes"].append(marks.frame(*whole_strip, marks.ghost_stroke(mode), axes))
            if part in of_units:
                row, column = divmod(unit, across)
                layout["shapes"].append(
                    marks.around(row, column, marks.line(colors.accent, 2), axes)
                )
            down += HIGH + BETWEEN
    return figure(traces, layout, mode, height=height, t=0, b=0)


def _grid(values: Floats, rows: int) -> NDArray[np.float32]:
    """(n,) -> (rows, n / rows), the last row filled up with NaN."""
    across = math.ceil(len(values) / rows)
    cells = np.full(rows * across, np.nan, dtype=np.float32)
    cells[: len(values)] = values
    return cells.reshape(rows, across)  # (rows * across,) -> (rows, across)


def _says(pair: Sequence[Floats], rows: int, head: str, cell_name: str) -> tuple[str, Floats]:
    """The sentence of a cell with its number, or those of two strips, and the numbers."""
    grids = [_grid(values, rows) for values in pair]
    index = np.arange(grids[0].size, dtype=np.float32).reshape(grids[0].shape)  # (rows, n)
    sentence = "is %{customdata[1]:.3r}"
    if len(pair) > 1:
        sentence += f" {marks.CHANGED}, %{{customdata[2]:.3r}} {marks.UNCHANGED}"
    numbers = np.stack([index, *grids], axis=2)  # (rows, n, 2 or 3)
    return f"{head}: {cell_name} %{{customdata[0]}} {sentence}", numbers


def _limit(values: Floats) -> float:
    """The largest magnitude but for the outermost hundredth: outliers do not wash out the colours."""
    return float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
