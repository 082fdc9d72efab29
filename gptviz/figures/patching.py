"""Activation patching as maps: a row a block, the first on top; what brings the answer is orange, what loses
it blue. A patch that is made is framed, and what it can reach stands on a tinted ground.

Shapes: L blocks, T tokens, H heads, G groups of heads' parts.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.both import Both
from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import BAR, Floats, signed_axis
from gptviz.figures.marks import frame, heading, line
from gptviz.figures.shares import ROW
from gptviz.figures.theme import Mode, figure, palette
from gptviz.figures.token_axis import READABLE, token_ticks

Cells = Iterable[tuple[int, int]]  # (row, column)
TINT = 0.16  # how much of the accent lies over what a patch reaches


def position_map(
    effects: Both[Floats],
    labels: Sequence[tuple[str, str]],
    says: str,
    patched: Cells,
    reached: NDArray[np.bool_],
    mode: Mode,
    unit: str = "",
) -> Figure:
    """A patch a block and a position, (L, T). `labels` are both texts' tokens, the patched text's first.

    `says` begins a hover's sentence, `unit` stands behind its numbers. `patched` cells are framed; `reached`
    (L, T) is what these can change.
    """
    rows = len(effects.now)
    safe = [tuple(html.escape(one, quote=False) for one in pair) for pair in labels]
    names = [
        f"`{one}` (position {i})" if one == other else f"`{one}`, in the other text `{other}` (position {i})"
        for i, (one, other) in enumerate(safe)
    ]
    said = [[f"{says} block {b} at {name}" for name in names] for b in range(rows)]
    ticks = token_ticks([one if one == other else f"<b>{one} | {other}</b>" for one, other in safe])
    return _map(effects, said, ticks, patched, mode, unit, _tinted(reached, mode), [])


def column_of(group: int, head: int, heads: int) -> int:
    """The column of a head in `head_map`: groups stand side by side, one empty column apart."""
    return group * (heads + 1) + head


def group_and_head(column: int, heads: int) -> tuple[int, int] | None:
    """The reverse; None for the columns in between."""
    group, head = divmod(column, heads + 1)
    return None if head == heads else (group, head)


def head_map(
    effects: Both[Floats], groups: Mapping[str, str], patched: Cells, mode: Mode, unit: str = ""
) -> Figure:
    """A patch of each head's parts at all positions, (G, L, H): the groups side by side.

    `groups` are their names, and the name of each one's colour in the palette. `patched` cells are
    (block, column).
    """
    count, rows, heads = effects.now.shape
    gap = np.full((count, rows, 1), np.nan)
    wide = effects.map(lambda e: np.concatenate(np.concatenate([e, gap], axis=2), axis=1)[:, :-1])
    said = [
        [f"The {name} of block {b} · head {h}" for name in groups for h in range(heads + 1)][:-1]
        for b in range(rows)
    ]
    step = 1 if heads <= 8 else 2 if heads <= 16 else 4
    ticks = {
        "tickvals": [column_of(g, h, heads) for g in range(count) for h in range(0, heads, step)],
        "ticktext": [str(h) for _ in range(count) for h in range(0, heads, step)],
        "tickangle": 0,
        "tickfont": {"size": 12},
        "title": {"text": "head", "standoff": 4},
    }
    notes = [
        heading(f"<b>{name}</b>", 0, 1, font={"color": getattr(palette(mode), color), "size": 14})
        | {"xref": "x", "x": column_of(group, 0, heads) - 0.5}
        for group, (name, color) in enumerate(groups.items())
    ]
    return _map(wide, said, ticks, patched, mode, unit, [], notes)


_PLAIN: dict[str, Any] = {"showgrid": False, "fixedrange": True, "ticks": "", "tickmode": "array"}


def _map(
    effects: Both[Floats],
    said: list[list[str]],
    ticks: dict[str, Any],
    patched: Cells,
    mode: Mode,
    unit: str,
    tint: list[dict[str, Any]],
    notes: list[dict[str, Any]],
) -> Figure:
    """Colours from −1 to 1; NaN is an empty cell. A hover has the unchanged model's number, too."""
    rows, columns = effects.now.shape
    hover = f"%{{customdata}}: %{{z:.3f}}{unit}"
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": effects.now.astype(np.float32),
        "customdata": said,
        "coloraxis": "coloraxis",
        "hoverongaps": False,
        "xgap": 1 if columns <= 2 * READABLE else 0,
        "ygap": 1,
    }
    if effects.was is not None:
        hover += ", in the unchanged model %{hovertext}"
        cells["hovertext"] = [["" if np.isnan(x) else f"{x:.3f}" for x in row] for row in effects.was]
    cells["hovertemplate"] = f"{hover}<extra></extra>"
    stroke = line(palette(mode).accent, 2.5)
    blocks = {"tickvals": np.arange(rows), "ticktext": [f"block {b} " for b in range(rows)]}
    layout = {
        "coloraxis": signed_axis(1.0, mode, 0.97),
        "plot_bgcolor": palette(mode).panel,  # between the cells: those without an effect are paper
        "xaxis": _PLAIN | {"range": [-0.5, columns - 0.5]} | ticks,
        "yaxis": _PLAIN | blocks | {"range": [rows - 0.5, -0.5]},
        "shapes": [*tint, *(frame((c - 0.5, c + 0.5), (r - 0.5, r + 0.5), stroke) for r, c in patched)],
        "annotations": notes,
    }
    height = BAR + 80 + rows * (27 if rows <= 8 else ROW - 3)
    return figure([cells], layout, mode, height, t=BAR + (28 if notes else 0), r=4)


def _tinted(reached: NDArray[np.bool_], mode: Mode) -> list[dict[str, Any]]:
    """A tint over these cells: neighbouring rows that begin and end alike are one rectangle."""
    runs: list[tuple[int, int, int, int]] = []  # row from, to, column from, to
    for row, cells in enumerate(reached):
        edges = np.flatnonzero(np.diff(np.r_[False, cells, False].astype(int)))
        for start, stop in edges.reshape(-1, 2).tolist():
            above = next((run for run in runs if run[1:] == (row, start, stop)), None)
            if above is not None:
                runs.remove(above)
            runs.append((row if above is None else above[0], row + 1, start, stop))
    color = palette(mode).accent
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return [
        frame((c0 - 0.5, c1 - 0.5), (r0 - 0.5, r1 - 0.5), line(color, 1, "dot"))
        | {"fillcolor": f"rgba({red}, {green}, {blue}, {TINT})", "name": "reached"}
        for r0, r1, c0, c1 in runs
    ]
