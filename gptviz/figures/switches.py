"""Trainings beside a common one: a panel for each variant, its seeds as thin lines, their mean as a strong one.

Shapes: n points of a curve, S seeds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import fixed
from gptviz.figures import marks
from gptviz.figures.theme import Figure, Mode, figure, palette

ACROSS = 3  # panels in a row
GAP = 0.03  # of the width, between two panels
BETWEEN = 0.17  # of the height, between two rows of panels: room for a heading
UNITS = {"loss": "loss, nats per token", "change": "change of the loss, nats"}


def signed(change: float) -> str:
    """A change in nats, with its sign: "+0.021", "−0.24"."""
    decimals = 2 if abs(change) >= 0.1 else 3
    text = fixed(change, decimals)
    if change > 0 and float(text):
        return f"+{text}"
    return text


def switch_curves(
    points: pd.DataFrame,
    variants: Sequence[str],
    base: str,
    last: int,
    mode: Mode,
    shown: str = "loss",
) -> Figure:
    """A panel for each of the `variants` but `base`: their validation losses over the steps, up to `last`.

    `points` has the columns variant, seed, step and validation, in nats per token; a variant without points has an
    empty panel. "loss" draws the base beside each variant, dashed. "change" draws the variant's loss minus the
    base's with the same seed. Of both there are only the seeds that they have in common.
    """
    grids = {name: _grid(points, name) for name in variants}
    others = [name for name in variants if name != base]
    rows = -(-len(others) // ACROSS)
    width = (1 - GAP * (ACROSS - 1)) / ACROSS
    height = (1 - BETWEEN * (rows - 1)) / rows
    pairs = [_in_common(grids[name], grids[base]) for name in others]
    ends = _ends(pairs, shown)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "shapes": []}
    for number, (name, (own, common)) in enumerate(zip(others, pairs, strict=True), start=1):
        axes, (xaxis, yaxis) = marks.axis_names(number)
        row, column = divmod(number - 1, ACROSS)
        left = column * (width + GAP)
        top = 1 - row * (height + BETWEEN)
        color = palette(mode).heads[number - 1]
        traces += [
            trace | marks.on(number)
            for trace in _lines(name, base, own, common, color, mode, shown)
        ]
        heading = f"<b>{marks.safe(name)}</b>"
        if not own.empty:
            heading += f"  {signed(float((own - common).mean(axis=1).iloc[-1]))}"
        font = {"color": color, "size": 15}
        layout["annotations"].append(marks.heading(heading, left, top, font=font))
        is_lowest = number + ACROSS > len(others)
        layout[xaxis] = {
            "domain": [left, left + width],
            "anchor": axes[1],
            "range": [0, 1.02 * last],
            "showticklabels": is_lowest,
        }
        layout[yaxis] = {
            "domain": [top - height, top],
            "anchor": axes[0],
            "range": ends,
            "showticklabels": column == 0,
        }
        if is_lowest:
            layout[xaxis] |= {"title": {"text": "steps of training"}}
        if column == 0:
            layout[yaxis] |= {"title": {"text": UNITS[shown]}}
        if shown == "change":
            level = marks.across(0, marks.ghost_stroke(mode), axes)
            layout["shapes"].append(level | {"layer": "below"})
    note = _base_note(pairs, base, ends[0], last, mode, shown)
    layout["annotations"].append(note)
    return figure(traces, layout, mode, height=240 * rows, t=30)


def _lines(
    name: str,
    base: str,
    own: pd.DataFrame,
    common: pd.DataFrame,
    color: str,
    mode: Mode,
    shown: str,
) -> list[dict[str, Any]]:
    """The traces of a panel, of losses (n, S): the base dashed, each seed thin, the mean of the seeds strong."""
    if own.empty:
        return []
    traces = []
    values = own
    if shown == "change":
        values = own - common
    else:
        mean = common.mean(axis=1)
        hover = [f"{base}, step {step:,}: {fixed(y, 3)} nats" for step, y in mean.items()]
        traces.append(marks.ghost_curve(mean.index.to_numpy(), mean.to_numpy(), mode, hover))
    steps = values.index.to_numpy()
    for seed in values.columns:
        thin = marks.stroke(steps, values[seed].to_numpy(), marks.line(color, 1), opacity=0.5)
        traces.append(thin)
    mean = values.mean(axis=1)
    written = signed if shown == "change" else _plain
    hover = [marks.safe(f"{name}, step {step:,}: {written(y)} nats") for step, y in mean.items()]
    strong = marks.stroke(steps, mean.to_numpy(), marks.line(color, 3), name=marks.safe(name))
    return [*traces, strong | marks.says(hover)]


def _plain(loss: float) -> str:
    return fixed(loss, 3)


def _grid(points: pd.DataFrame, name: str) -> pd.DataFrame:
    """The validation losses of a variant, (n, S): a row for each step, a column for each seed."""
    own = points[points["variant"] == name]
    return own.pivot(index="step", columns="seed", values="validation")


def _in_common(mine: pd.DataFrame, base: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The seeds that both have, (n, S) each."""
    seeds = [seed for seed in mine.columns if seed in base.columns]
    return mine[seeds], base[seeds]


def _ends(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]], shown: str) -> list[float]:
    """The range of all numbers that are drawn, which all panels share; 0 is in it where changes are."""
    if shown == "change":
        tables = [own - common for own, common in pairs]
    else:
        tables = [table for pair in pairs for table in pair]
    numbers = np.concatenate([table.to_numpy().ravel() for table in tables])
    if shown == "change" or not len(numbers):
        numbers = np.append(numbers, 0.0)
    low = float(numbers.min())
    high = float(numbers.max())
    room = 0.08 * (high - low) or 0.1
    return [low - room, high + room]


def _base_note(
    pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]],
    base: str,
    lowest: float,
    last: int,
    mode: Mode,
    shown: str,
) -> dict[str, Any]:
    """The name of the dashed line at half of the steps, in the panel where it is farthest from the other line."""
    far = [
        abs(float((own - common).to_numpy().mean())) if own.size else 0.0 for own, common in pairs
    ]
    place = int(np.argmax(far))
    common = pairs[place][1]
    y = 0.0
    if shown == "loss":
        y = lowest
        if common.size:
            y = float(common.mean(axis=1).iloc[len(common) // 2])
    axes, _ = marks.axis_names(place + 1)
    where = {"xref": axes[0], "yref": axes[1], "yanchor": "bottom"}
    return marks.note(f"dashed: {marks.safe(base)}", last / 2, y, palette(mode).quiet, 13, **where)
