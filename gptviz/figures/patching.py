"""Activation patching as maps: a row a block, the first on top; what brings the answer is orange, what loses
it blue. A patch that is made is framed, and what it can reach stands on a tinted ground.

Shapes: L blocks, T tokens, H heads, G groups of heads' parts.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import BAR, Floats, signed_axis
from gptviz.figures.marks import frame, heading, line
from gptviz.figures.shares import ROW
from gptviz.figures.theme import Mode, figure, palette
from gptviz.figures.token_axis import READABLE, token_ticks

Cells = Iterable[tuple[int, int]]  # (row, column)
TINT = 0.16  # how much of the accent lies over what a patch reaches


def position_map(
    effects: Floats,
    labels: Sequence[tuple[str, str]],
    says: str,
    patched: Cells,
    reached: NDArray[np.bool_],
    mode: Mode,
    unchanged: Floats | None = None,
    unit: str = "",
) -> Figure:
    """A patch a block and a position, (L, T). `labels` are both texts' tokens, the patched text's first.

    `says` begins a hover's sentence. `patched` cells are framed; `reached` (L, T) is what these can change.
    `unchanged` (L, T), the same in the model without its changes, stands in the hover, too.
    `unit` stands behind its numbers.
    """
    rows, n = effects.shape
    names = [
        f"`{one}` (position {i})" if one == other else f"`{one}`, in the other text `{other}` (position {i})"
        for i, (one, other) in enumerate(_safe(labels))
    ]
    cells = _cells(effects, [names] * rows, f"{says} %{{y}}at %{{customdata}}: %{{z:.3f}}{unit}", unchanged)
    stroke = line(palette(mode).accent, 2.5)
    layout = _layout(rows, mode) | {
        "xaxis": _PLAIN | {"range": [-0.5, n - 0.5]} | token_ticks(_ticks(labels)),
        "shapes": [
            *_tinted(reached, mode),
            *(frame((c - 0.5, c + 0.5), (r - 0.5, r + 0.5), stroke) for r, c in patched),
        ],
    }
    return figure([cells], layout, mode, height=BAR + 78 + rows * (27 if rows <= 8 else ROW - 3), t=BAR, r=4)


def column_of(group: int, head: int, heads: int) -> int:
    """The column of a head in `head_map`: groups stand side by side, one empty column apart."""
    return group * (heads + 1) + head


def group_and_head(column: int, heads: int) -> tuple[int, int] | None:
    """The reverse; None for the columns in between."""
    group, head = divmod(column, heads + 1)
    return None if head == heads else (group, head)


def head_map(
    effects: Floats,
    groups: Mapping[str, str],
    says: str,
    patched: Cells,
    mode: Mode,
    unchanged: Floats | None = None,
    unit: str = "",
) -> Figure:
    """A patch of each head's parts at all positions, (G, L, H): the groups side by side.

    `groups` are their names, and the name of each one's colour in the palette. `patched` cells are
    (block, column). `unchanged` (G, L, H), the same in the model without its changes, stands in the hover,
    and `unit` behind its numbers.
    """
    count, rows, heads = effects.shape
    colors = palette(mode)
    width = count * (heads + 1) - 1
    wide, old = (np.full((rows, width), np.nan, dtype=np.float32) for _ in range(2))
    said = [[""] * width for _ in range(rows)]
    for group, name in enumerate(groups):
        start = column_of(group, 0, heads)
        wide[:, start : start + heads] = effects[group]
        if unchanged is not None:
            old[:, start : start + heads] = unchanged[group]
        for block in range(rows):
            for head in range(heads):
                said[block][start + head] = f"{name} of block {block} · head {head}"
    cells = _cells(
        wide, said, f"{says} %{{customdata}}: %{{z:.3f}}{unit}", None if unchanged is None else old
    )
    cells["hoverongaps"] = False
    step = 1 if heads <= 8 else 2 if heads <= 16 else 4
    ticks = [(column_of(g, h, heads), str(h)) for g in range(count) for h in range(0, heads, step)]
    stroke = line(colors.accent, 2.5)
    layout = _layout(rows, mode) | {
        "xaxis": _PLAIN
        | {
            "range": [-0.5, width - 0.5],
            "tickvals": [column for column, _ in ticks],
            "ticktext": [head for _, head in ticks],
            "tickangle": 0,
            "tickfont": {"size": 12},
            "title": {"text": "head", "standoff": 4},
        },
        "shapes": [frame((c - 0.5, c + 0.5), (r - 0.5, r + 0.5), stroke) for r, c in patched],
        "annotations": [
            heading(f"<b>{name}</b>", 0, 1, font={"color": getattr(colors, color), "size": 14})
            | {"xref": "x", "x": column_of(group, 0, heads) - 0.5}
            for group, (name, color) in enumerate(groups.items())
        ],
    }
    return figure(
        [cells], layout, mode, height=BAR + 84 + rows * (27 if rows <= 8 else ROW - 3), t=BAR + 28, r=4
    )


_PLAIN: dict[str, Any] = {"showgrid": False, "fixedrange": True, "ticks": "", "tickmode": "array"}


def _cells(
    values: Floats, customdata: list[list[str]], says: str, unchanged: Floats | None
) -> dict[str, Any]:
    gap = 1 if values.shape[1] <= 2 * READABLE else 0
    beside: dict[str, Any] = {}
    if unchanged is not None:
        says += ", in the unchanged model %{hovertext}"
        beside["hovertext"] = [["" if np.isnan(old) else f"{old:.3f}" for old in row] for row in unchanged]
    return beside | {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "customdata": customdata,
        "hovertemplate": f"{says}<extra></extra>",
        "coloraxis": "coloraxis",
        "xgap": gap,
        "ygap": 1,
    }


def _layout(rows: int, mode: Mode) -> dict[str, Any]:
    return {
        "coloraxis": signed_axis(1.0, mode, 0.97),
        "plot_bgcolor": palette(mode).panel,  # between the cells: those without an effect are paper
        "yaxis": _PLAIN
        | {
            "tickvals": np.arange(rows),
            "ticktext": [f"block {b} " for b in range(rows)],
            "range": [rows - 0.5, -0.5],
        },
    }


def _safe(labels: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(html.escape(one, quote=False), html.escape(other, quote=False)) for one, other in labels]


def _ticks(labels: Sequence[tuple[str, str]]) -> list[str]:
    """A column's name: where the texts differ, both tokens in bold."""
    return [one if one == other else f"<b>{one} | {other}</b>" for one, other in _safe(labels)]


def _tinted(reached: NDArray[np.bool_], mode: Mode) -> list[dict[str, Any]]:
    """A tint over these cells: neighbouring rows that begin and end alike are one rectangle."""
    runs: list[tuple[int, int, int, int]] = []  # row from, to, column from, to
    for row, cells in enumerate(reached):
        edges = np.flatnonzero(np.diff(np.r_[False, cells, False].astype(int)))
        for start, stop in edges.reshape(-1, 2).tolist():
            above = next((run for run in runs if run[1:] == (row, start, stop)), None)
            if above is None:
                runs.append((row, row + 1, start, stop))
            else:
                runs[runs.index(above)] = (above[0], row + 1, start, stop)
    color = palette(mode).accent
    return [
        frame((c0 - 0.5, c1 - 0.5), (r0 - 0.5, r1 - 0.5), line(color, 1, "dot"))
        | {"fillcolor": _translucent(color, TINT), "name": "reached"}
        for r0, r1, c0, c1 in runs
    ]


def _translucent(color: str, share: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {share})"
