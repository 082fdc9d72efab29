"""D -> 4D -> D: what a feed-forward is given, its units before and after GELU, and what comes out, as strips.

Shapes: D emb_dim, U = 4D units.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.marks import (
    CHANGED,
    UNCHANGED,
    Axes,
    Floats,
    axis_names,
    frame,
    ghost_stroke,
    heading,
    line,
)
from gptviz.figures.theme import Figure, Mode, figure, palette

ACROSS = 128  # units side by side
HEADS = ("what norm2 gives", "units before GELU", "units after GELU", "what comes out")
UNITS = (1, 2)  # those of them that hold units: they share a scale
ROOM, HIGH, BETWEEN = 26, 68, 5  # pixels: for what stands over a strip, for it, down to the unchanged one


def expansion(
    strips: Sequence[Floats],
    unit: int,
    mode: Mode,
    unchanged: Sequence[Floats | None] = (None, None, None, None),
) -> Figure:
    """The four of `HEADS`, (D,), (U,), (U,) and (D,): strips of real values, one below the other.

    A number is a cell, row after row from the left; blue below 0, orange above, each strip on a scale of its
    own but for the two of the units, which share one. The unit's cells are framed. `unchanged` are those of
    the model without its changes: drawn below theirs, in a ghost's frame, where they are not None.
    """
    colors = palette(mode)
    rows = max(1, math.ceil(len(strips[UNITS[0]]) / ACROSS))
    wide = math.ceil(len(strips[UNITS[0]]) / rows)
    pairs = [[new] if old is None else [new, old] for new, old in zip(strips, unchanged, strict=True)]
    together = [values for part in UNITS for values in pairs[part]]
    height = sum(ROOM + len(pair) * (HIGH + BETWEEN) for pair in pairs)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "shapes": []}
    down = 0.0  # pixels from the top
    for part, (pair, head) in enumerate(zip(pairs, HEADS, strict=True)):
        limit = _limit(np.concatenate(together if part in UNITS else pair))
        down += ROOM
        words = f"<b>{head}</b>: {len(pair[0]):,} numbers, full colour at ±{significant(limit, 2)}"
        layout["annotations"].append(heading(words, 0.5, 1 - down / height, xanchor="center"))
        for which, values in enumerate(pair):
            number = len(traces) + 1
            x, y = axis_names(number, "x"), axis_names(number, "y")
            grid = _grid(values, rows)
            half, top = grid.shape[1] / wide / 2, 1 - down / height
            bare = {"showgrid": False, "showticklabels": False, "ticks": "", "fixedrange": True}
            bare |= {"showline": not which, "mirror": True}
            layout[x[1]] = bare | {"domain": [0.5 - half, 0.5 + half], "anchor": y[0]}
            layout[y[1]] = bare | {"domain": [top - HIGH / height, top], "anchor": x[0]}
            layout[y[1]]["autorange"] = "reversed"
            traces.append(
                {
                    "type": "heatmap",
                    "name": UNCHANGED if which else CHANGED,
                    "z": grid,
                    "hoverongaps": False,
                    "zmin": -limit,
                    "zmax": limit,
                    "colorscale": colors.signed,
                    "showscale": False,
                    "xaxis": x[0],
                    "yaxis": y[0],
                }
                | _says(pair, rows, head, "unit" if part in UNITS else "dimension")
            )
            if which:
                layout["shapes"].append(_around(grid, ghost_stroke(mode), (x[0], y[0])))
            if part in UNITS:
                layout["shapes"].append(_cell(unit, grid, line(colors.accent, 2), (x[0], y[0])))
            down += HIGH + BETWEEN
    return figure(traces, layout, mode, height=height, t=0, b=0)


def _grid(values: Floats, rows: int) -> NDArray[np.float32]:
    """(n,) -> (rows, n / rows), the last row filled up with NaN."""
    across = math.ceil(len(values) / rows)
    cells = np.full(rows * across, np.nan, dtype=np.float32)
    cells[: len(values)] = values
    return cells.reshape(rows, across)


def _says(pair: Sequence[Floats], rows: int, head: str, what: str) -> dict[str, Any]:
    """What a cell says: its number, and where there are two strips those of both."""
    grids = [_grid(values, rows) for values in pair]
    which = np.arange(grids[0].size, dtype=np.float32).reshape(grids[0].shape)
    said = "is %{customdata[1]:.3r}"
    if len(pair) > 1:
        said += f" {CHANGED}, %{{customdata[2]:.3r}} {UNCHANGED}"
    return {
        "customdata": np.stack([which, *grids], axis=2),  # (rows, n, 2 or 3)
        "hovertemplate": f"{head}: {what} %{{customdata[0]}} {said}<extra></extra>",
    }


def _cell(unit: int, grid: NDArray[np.float32], stroke: dict[str, Any], axes: Axes) -> dict[str, Any]:
    row, column = divmod(unit, grid.shape[1])
    return frame((column - 0.5, column + 0.5), (row - 0.5, row + 0.5), stroke, axes)


def _around(grid: NDArray[np.float32], stroke: dict[str, Any], axes: Axes) -> dict[str, Any]:
    high, wide = grid.shape
    return frame((-0.5, wide - 0.5), (-0.5, high - 0.5), stroke, axes)


def _limit(values: Floats) -> float:
    """The largest magnitude of all but the outermost hundredth, so that a few do not pale the rest."""
    return float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
