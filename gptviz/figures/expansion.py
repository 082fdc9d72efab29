"""D -> 4D -> D: what a feed-forward is given, its units before and after GELU, and what comes out, as strips.

Shapes: D emb_dim, U = 4D units.
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
        layout["annotations"].append(marks.heading(words, 0.5, 1 - down / height, xanchor="center"))
        for which, values in enumerate(pair):
            number = len(traces) + 1
            axes, (xaxis, yaxis) = marks.axis_names(number)
            grid = _grid(values, rows)
            across, half, top = grid.shape[1], grid.shape[1] / wide / 2, 1 - down / height
            bare = marks.BARE | {"showticklabels": False, "showline": not which, "mirror": True}
            layout[xaxis] = bare | {"domain": [0.5 - half, 0.5 + half], "anchor": axes[1]}
            layout[yaxis] = bare | {"domain": [top - HIGH / height, top], "anchor": axes[0]}
            layout[yaxis]["autorange"] = "reversed"
            traces.append(
                {
                    "type": "heatmap",
                    "name": marks.UNCHANGED if which else marks.CHANGED,
                    "z": grid,
                    "hoverongaps": False,
                    "zmin": -limit,
                    "zmax": limit,
                    "colorscale": colors.signed,
                    "showscale": False,
                }
                | marks.on(number)
                | _says(pair, rows, head, "unit" if part in UNITS else "dimension")
            )
            if which:
                wholly = (-0.5, across - 0.5), (-0.5, rows - 0.5)
                layout["shapes"].append(marks.frame(*wholly, marks.ghost_stroke(mode), axes))
            if part in UNITS:
                row, column = divmod(unit, across)
                layout["shapes"].append(marks.around(row, column, marks.line(colors.accent, 2), axes))
            down += HIGH + BETWEEN
    return figure(traces, layout, mode, height=height, t=0, b=0)


def _grid(values: Floats, rows: int) -> NDArray[np.float32]:
    """(n,) -> (rows, n / rows), the last row filled up with NaN."""
    across = math.ceil(len(values) / rows)
    cells = np.full(rows * across, np.nan, dtype=np.float32)
    cells[: len(values)] = values
    return cells.reshape(rows, across)


def _says(pair: Sequence[Floats], rows: int, head: str, what: str) -> dict[str, Any]:
    """Return what a cell says: its number, and where there are two strips those of both."""
    grids = [_grid(values, rows) for values in pair]
    which = np.arange(grids[0].size, dtype=np.float32).reshape(grids[0].shape)
    said = "is %{customdata[1]:.3r}"
    if len(pair) > 1:
        said += f" {marks.CHANGED}, %{{customdata[2]:.3r}} {marks.UNCHANGED}"
    return {
        "customdata": np.stack([which, *grids], axis=2),  # (rows, n, 2 or 3)
        "hovertemplate": f"{head}: {what} %{{customdata[0]}} {said}<extra></extra>",
    }


def _limit(values: Floats) -> float:
    """The largest magnitude of all but the outermost hundredth, so that a few do not pale the rest."""
    return float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
