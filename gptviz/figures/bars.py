"""Bars: one number for each of some places; the unchanged model's are outlined."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.both import Both
from gptviz.digits import significant
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import Figure, Mode, figure, palette

THIN = 100  # bars; where there are more, a line goes through the chosen one


def bars(
    values: Both[Floats],
    names: Sequence[str],
    mode: Mode,
    unit: str,
    at: int | None = None,
    says: Both[Sequence[str]] | None = None,
    colors: Sequence[str] | str | None = None,
    rests: Sequence[tuple[float, str]] = (),
    axis: dict[str, Any] | None = None,
    height: int = 250,
    lying: bool = False,
    signed: bool = False,
    text: Both[Sequence[str]] | None = None,
    called: tuple[str, str] = (marks.CHANGED, marks.UNCHANGED),
    base: Floats | None = None,
    part: tuple[str, Floats, str] | None = None,
    errors: Floats | None = None,
) -> Figure:
    """A bar for each of n places, (n,), over `names`; the one `at` has the accent's colour, or its outline.

    `unit` is what they measure; `says` are hovers, made of name, unit and number where there are none.
    `rests` are levels with their words, drawn across, or upright through `lying` bars. `axis` is the axis of
    the places, where `names` are not its labels (see `marks.token_ticks`). `lying` bars go to the right, the
    first on top, with `text` at their ends; those of shares of 1 then have an axis from 0 to 1 (`unit`
    "probability" or "share"), as all of attention have ("weight"). `signed` bars are orange above 0 and blue
    below. A waterfall has its bars begin at `base` (n,), each where the one before it ended; the unchanged
    ones begin there as well. `called` are the names of now and was. `part` is what a part of each gives: its
    name, (n,) and colour; it lies within them, thinner. `errors` (n,) are whiskers to both sides of a bar's
    end, none where NaN.
    """
    theme = palette(mode)
    n = len(names)
    x, y = ("y", "x") if lying else ("x", "y")
    places = np.arange(n).astype(str if axis is not None and "labelalias" in axis else int)
    if signed and colors is None:
        colors = [theme.positive if value >= 0 else theme.negative for value in values.now]
    if colors is None:
        fills = [theme.quiet] * n
    elif isinstance(colors, str):
        fills = [colors] * n
    else:
        fills = list(colors)
    edge: dict[str, Any] = {"width": 0}
    if at is not None and colors is None:
        fills[at] = theme.accent
    elif at is not None:
        edge = {"color": theme.accent, "width": [3 * (i == at) for i in range(n)]}

    def sentences(quantity: str, numbers: Floats) -> list[str]:
        return [
            f"{name}: {quantity} {significant(float(number), 4)}"
            for name, number in zip(names, numbers, strict=True)
        ]

    def ends(numbers: Floats) -> tuple[marks.Places, marks.Places]:
        if lying:
            return (numbers, places)
        return (places, numbers)

    hovers = says or values.map(lambda v: sentences(unit, v))
    new = np.asarray(values.now)
    if lying:
        direction: dict[str, Any] = {"orientation": "h"}
    else:
        direction = {}
    if base is not None:
        direction["base"] = base
    main = marks.bar(*ends(new), {"color": fills, "line": edge}, name=called[0])
    main |= marks.says(map(marks.safe, hovers.now)) | marks.KEPT | direction
    outside = {"textposition": "outside", "cliponaxis": False}
    if text is not None:
        main |= outside | {"text": [*map(marks.safe, text.now)]}
    if errors is not None:
        whiskers = {"type": "data", "array": np.nan_to_num(errors), "color": theme.ink}
        main[f"error_{y}"] = whiskers | {"thickness": 1.2, "width": 4}
    traces = [main]
    if values.was is not None:
        assert hovers.was is not None
        old = np.asarray(values.was)
        old_hovers = [f"{called[1]}: {sentence}" for sentence in hovers.was]
        ghost = marks.ghost_bars(*ends(old), mode, old_hovers, **direction, name=called[1])
        if text is not None:  # at the end of the longer of the two
            longer = (old * new > 0) & (abs(old) > abs(new))
            ghost |= outside | {"text": np.where(longer, main["text"], "")}
            main["text"] = np.where(longer, "", main["text"])
        traces.append(ghost)
    if part is not None:
        part_name, part_values, part_color = part
        drawn = marks.bar(*ends(part_values), {"color": part_color}, name=part_name, width=0.4)
        traces.append(
            drawn | marks.says(map(marks.safe, sentences(part_name, part_values))) | direction
        )
    ticks = {"tickvals": places, "ticktext": [*map(marks.safe, names)]}
    level_line = marks.upright if lying else marks.across
    if lying:
        above = {"yref": "paper", "yanchor": "bottom", "xanchor": "center"}
        level_words = [
            marks.note(marks.safe(words), level, 1, theme.quiet, 14, **above)
            for level, words in rests
        ]
    else:
        level_words = marks.level_notes(rests, [0, *new], mode, "right")
    layout: dict[str, Any] = {
        f"{x}axis": dict(axis) if axis is not None else ticks | {"showgrid": False},
        f"{y}axis": {"title": {"text": unit}}
        | (
            marks.SHARES if unit == "weight" or (lying and unit in ("probability", "share")) else {}
        ),
        "shapes": [level_line(level, marks.line(theme.quiet, 1.5, "dash")) for level, _ in rests],
        "annotations": level_words,
        "bargap": 0.15,
    }
    if lying and text is not None and "range" not in layout["xaxis"]:
        layout["xaxis"] |= _with_text(values, max(map(len, text.now)), base, rests)
    if at is not None and n > THIN and not lying:
        layout["shapes"].append(marks.upright(at, marks.line(theme.accent, 1, "dot")))
    if signed:
        layout["shapes"].append(
            (marks.upright if lying else marks.across)(0, marks.line(theme.quiet, 1))
        )
    if base is not None:
        stops = base + new
        joint = marks.line(theme.quiet, 1)
        for i in range(n - 1):
            corners = {f"{y}0": stops[i], f"{y}1": stops[i], f"{x}0": i + 0.3, f"{x}1": i + 0.7}
            layout["shapes"].append({"type": "line", "line": joint} | corners)
    if lying:
        layout["yaxis"] |= {"range": marks.names_down(n)["range"], "ticklabelstandoff": 7}
    return figure(traces, layout | (marks.GHOSTED if len(traces) > 1 else {}), mode, height)


def _with_text(
    values: Both[Floats], longest: int, base: Floats | None, rests: Sequence[tuple[float, str]]
) -> dict[str, list[float]]:
    """An axis that ends with its bars and levels, and leaves room for texts of `longest` characters at their ends."""
    start = np.zeros(1) if base is None else base
    levels = [level for level, _ in rests]
    ends = np.concatenate([[0.0], levels, start, *(start + v for v in values.all)])
    low = float(ends.min())
    high = 1.0
    if ends.any():
        high = float(ends.max())
    room = 0.3 if longest < 8 else 0.5
    # to the left stand the names
    if low < 0:
        left = low - room * (high - low)
    else:
        left = low
    right = high + (high - low) / 1000  # a bar that ends past it by rounding would have no text
    return {"range": [left, right], "domain": [0.0, 1 / (1 + room)]}
