"""The pictures of means over many texts: bars with their standard errors, and a map of rows and columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz.both import Both
from gptviz.digits import fixed, plus_minus
from gptviz.figures.maps import Map, Scale, maps
from gptviz.figures.marks import Floats
from gptviz.ui import sheet
from gptviz.ui.sheet import Scene
from gptviz.ui.words import counted

ROW = 26  # pixels of one


@dataclass(frozen=True)
class Grid:
    """A map of means: the names of its rows and columns, its cells row by row, and what is said of it.

    `cells` are the means that stand in it, by their row of the table; None: all. `in_place_of_bars` leaves out the
    bars of the largest means. `scale` is that of its colours, as `figures.maps` has it. A click on a cell is `pick`
    of its row and column.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    caption: str
    alt: str
    cells: Sequence[int] | None = None
    in_place_of_bars: bool = False
    scale: Scale = "signed"
    pick: Callable[[int, int], Any] | None = None


@dataclass(frozen=True)
class Means:
    """What is drawn: means and standard errors, (rows,) each, the rows' names, the unit, and over how many texts."""

    values: Both[tuple[NDArray[np.float64], NDArray[np.float64]]]
    names: Sequence[str]
    unit: str
    n: int
    muted: str


def draw_bars(scene: Scene, means: Means, rows: Sequence[int], color: str | None) -> None:
    """Draw a bar for each of the largest means."""
    caption = f"Largest means, with their standard errors: {len(rows)} of {len(means.names)}."
    if means.values.was is not None:
        caption += (
            " Outlines show the unchanged model. Where a line names no token and none is chosen above, each "
            "model is measured on its own first choice."
        )
    st.caption(caption)
    alt = (
        f"The largest means over {means.n} texts, with standard errors: {means.unit}.{means.muted}"
    )
    sheet.bars(
        scene,
        "many",
        means.values.map(lambda pair: pair[0][rows]),
        [means.names[i] for i in rows],
        means.unit,
        alt.rstrip("."),
        says=means.values.map(
            lambda estimates: [
                f"{means.names[i]}: {plus_minus(estimates[0][i], estimates[1][i])} {means.unit}, n = {means.n}"
                for i in rows
            ]
        ),
        lying=True,
        signed=color is None,
        colors=color,
        errors=means.values.now[1][rows],
        height=ROW * len(rows) + 80,
    )


def draw_map(scene: Scene, means: Means, grid: Grid) -> None:
    """Draw the means as a map of rows and columns; a hover says the standard error."""
    st.caption(grid.caption)
    size = (len(grid.rows), len(grid.columns))
    chosen = range(len(means.names)) if grid.cells is None else grid.cells
    # (rows,) -> (R * C,) -> (R, C)
    cells: Both[Floats] = means.values.map(lambda pair: pair[0][[*chosen]].reshape(size))
    errors: Any = means.values.now[1][[*chosen]].reshape(size)
    if np.isnan(errors).all():
        errors = None
    texts = _in_cells(cells.now)
    panel = Map("", cells, grid.scale, means.unit, errors=errors, texts=texts)
    place = f"at %{{x}} (mean of {counted(means.n, 'text')})"
    fig = maps([panel], grid.rows, grid.columns, None, scene.mode, large=True, place=place)
    alt = f"{grid.alt}: means over {counted(means.n, 'text')}, in {means.unit}"
    scene.chart(fig, key="many_map", alt=alt, on_cell=grid.pick)


def _in_cells(cells: Floats) -> list[list[str]]:
    """What stands in the cells of a map; nothing where that is 0.

    To two decimals; to one where some are above 10, to three where all are below a tenth.
    """
    decimals = 2
    if np.abs(cells).max() >= 10:
        decimals = 1
    elif np.abs(cells).max() < 0.1:
        decimals = 3
    written = np.vectorize(lambda value: fixed(float(value), decimals), otypes=[object])(cells)
    written[np.abs(cells) < 0.5 * 10**-decimals] = ""  # (R, C)
    return [[*row] for row in written]
