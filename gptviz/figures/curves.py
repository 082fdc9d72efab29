"""Curves: numbers over the same places, a line each; the unchanged model's are dashed."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gptviz.both import Both
from gptviz.digits import significant
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import Figure, Mode, figure, palette

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")


def curves(
    lines: Mapping[str, Both[Floats]],
    names: Sequence[str],
    mode: Mode,
    unit: str,
    at: int | None = None,
    log: bool = False,
    rest: float | None = None,
    rests: Sequence[tuple[float, str]] = (),
    height: int = 380,
    axis: Mapping[str, Any] | None = None,
    many: bool = False,
    dots: bool = False,
    used: int = 0,
    up: Mapping[str, Any] | None = None,
    written: Callable[[Any], str] | None = None,
    main: str | None = None,
) -> Figure:
    """Lines over n places, labelled at their ends: (n,) each, over `names`; the last one is drawn in colour.

    `at` is the chosen place, `rest` where nothing would have happened, `rests` are dashed levels with their
    words; `axis` is the x axis, where `names` are not its labels (see `marks.token_ticks`), `up` what else
    the y axis has. `many` lines, the first of which matters most, are told apart by colour, dashes and marks,
    and named in a legend. `written` is how a number stands in a hover. NaN is a gap; with `dots` nothing
    joins the numbers. The first `used` places stand on another ground. Of many lines, the one called `main` is
    drawn through, in colour and without marks.
    """
    colors = palette(mode)
    x = np.arange(len(names))
    # in another order than heads have: those of a few lines are far from each other
    other_colors = (*(colors.heads[i] for i in (1, 2, 0, 7)), colors.quiet)
    old = [values.was is not None for values in lines.values()]
    changed = any(old)
    long = len(names) > 60
    labels = [*map(marks.safe, names)]
    quick = long and written is None  # a sentence for each of thousands of numbers takes long
    written = written or (lambda y: significant(float(y), 4))
    traces: list[dict[str, Any]] = []
    notes = []
    for number, (name, values) in enumerate(lines.items(), start=1):
        last = number == len(lines)
        # dashed lines are the unchanged model's, on every page: where there are some, this one is not
        color = colors.quiet
        if last:
            color = colors.accent
        dash = None if last or changed else "dash"
        symbol = SYMBOLS[(number - 1) % len(SYMBOLS)]
        if many:
            if number == 1:
                color = colors.accent
            else:
                color = other_colors[(number - 2) % len(other_colors)]
            dash = DASHES[(number - 1) % len(DASHES)]
        if values.was is not None:
            old_hovers = _says(names, values.was, name, unit, written, f" {marks.UNCHANGED}")
            mark = {"size": 6, "symbol": f"{symbol}-open", "color": colors.ghost}
            if many and name != main:
                marked = {"mode": "lines+markers", "marker": mark}
            else:
                marked = {}
            is_first = number == 1 + next(i for i, line in enumerate(old) if line)
            ghost = marks.ghost_curve(
                x, np.asarray(values.was), mode, old_hovers, showlegend=is_first
            )
            traces.append(ghost | marked)
        numbers = np.asarray(values.now, dtype=np.float64)
        finite = np.isfinite(numbers)
        joined = long and finite.sum() > 1  # one number alone would not be seen
        if quick:
            if name != unit:
                quantity = f"{unit} %{{fullData.name}}"
            else:
                quantity = unit
            hover = {
                "text": labels,
                "hovertemplate": f"%{{text}}: {quantity} %{{y:.4~r}}<extra></extra>",
            }
        else:
            hover = marks.says(map(marks.safe, _says(names, values.now, name, unit, written)))
        mode_of_line = "lines+markers"
        if name == main:
            color = colors.accent
            dash = None
        if joined or name == main:
            mode_of_line = "lines"
        drawn: dict[str, Any] = {"mode": "markers" if dots else mode_of_line}
        drawn |= {"line": marks.line(color, 3, dash), "zorder": len(lines) - number if many else 0}
        named = {"name": marks.safe(name), "showlegend": many, "unselected": marks.WHOLE}
        marker = {"size": 8 if finite.sum() > 1 else 14, "symbol": symbol if many else "circle"}
        traces.append(marks.dots(x, numbers, marker, **drawn, **named, **hover))
        # a log axis puts a note at the logarithm
        end = float(np.log10(max(numbers[-1], 1e-12))) if log else float(numbers[-1])
        notes.append(
            marks.note(f"<b>{marks.safe(name)}</b>", len(names) - 1, end, color, 15, xshift=10)
        )
    if len(lines) > 1 and not many and not log:
        # a name has some 20 pixels, and the axis the height less its ticks
        drawn_values = np.concatenate([line.now for line in lines.values()])
        room = 20 / (height - 90) * float(np.nanmax(drawn_values) - np.nanmin(drawn_values))
        for note, end in zip(notes, _apart([note["y"] for note in notes], room), strict=True):
            note["y"] = end
    if rest is None:
        shapes = []
    else:
        shapes = [marks.across(rest, marks.line(colors.quiet, 1))]
    if used:
        shapes.append(marks.band(-0.5, used - 0.5, colors.panel))
    shapes += [marks.across(level, marks.line(colors.quiet, 1.5, "dash")) for level, _ in rests]
    if at is not None:
        shapes.append(marks.upright(at, marks.line(colors.accent, 1, "dot")))
    ticks = {"tickvals": x, "ticktext": labels, "tickangle": -40}
    layout: dict[str, Any] = {
        "xaxis": ({"range": [-0.4, len(names) - 0.2]} | ticks) if axis is None else dict(axis),
        "yaxis": {"title": {"text": marks.safe(unit)}}
        | ({"type": "log", "dtick": 1} if log else {})
        | dict(up or {}),
        "shapes": shapes,
        "annotations": [
            *(notes if len(lines) > 1 and not many else []),
            *marks.level_notes(
                rests, np.concatenate([line.now for line in lines.values()]), mode, "left"
            ),
        ],
    }
    if many or changed:
        layout |= marks.GHOSTED
    if many:
        layout["legend"] = marks.legend(0, **marks.STILL)
    return figure(traces, layout, mode, height, r=60 if len(lines) > 1 and not many else 8)


def _apart(ends: Sequence[float], room: float) -> list[float]:
    """The heights of names, in their order, the higher of two moved up where there is less than `room` between."""
    apart = [*ends]
    order = sorted(range(len(ends)), key=ends.__getitem__)
    for lower, upper in pairwise(order):
        apart[upper] = max(apart[upper], apart[lower] + room)
    return apart


def _says(
    names: Sequence[str],
    values: Floats,
    name: str,
    unit: str,
    written: Callable[[Any], str],
    when: str = "",
) -> list[str]:
    if name == unit:
        quantity = unit
    else:
        quantity = f"{unit} {name}"
    return [
        f"{place}: {quantity} {written(y)}{when}" for place, y in zip(names, values, strict=True)
    ]
