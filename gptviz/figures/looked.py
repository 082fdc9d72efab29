"""How much each head gave to one token, step by step as a text was written."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import weight
from gptviz.figures.figure import Figure
from gptviz.figures.marks import frame, line
from gptviz.figures.theme import Mode, figure, palette

SENTENCES = 6000  # cells that have a sentence of their own; more have one for all
NAMED = 40  # steps whose tokens can be read along the axis


def heads_map(
    weights: NDArray[np.floating],
    steps: Sequence[int],
    tokens: Sequence[str],
    key: str,
    n_heads: int,
    chosen: tuple[int, int],
    mode: Mode,
) -> Figure:
    """A row a head, block by block from the top, a column a step: weights (R, S) on the token `key`.

    `steps` are the steps' numbers and `tokens` what was written. NaN is a step that did not have the token
    before it. `chosen` is a row and a column, which are framed.
    """
    colors = palette(mode)
    rows, columns = weights.shape
    names = [f"block {r // n_heads}, head {r % n_heads}" for r in range(rows)]
    shown = [escape(token, quote=False) for token in tokens]
    heat = {
        "type": "heatmap",
        "z": weights.astype(np.float32),
        "x": np.arange(columns, dtype=np.int32),
        "y": np.arange(rows, dtype=np.int32),
        "colorscale": colors.attention,
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "hoverongaps": False,
    }
    if rows * columns <= SENTENCES:
        heat["hovertext"] = [
            [
                f"{names[r]} gave {weight(float(weights[r, c]))} to {escape(key, quote=False)}<br>"
                f"when {shown[c]} was written (step {steps[c]})"
                for c in range(columns)
            ]
            for r in range(rows)
        ]
        heat["hovertemplate"] = "%{hovertext}<extra></extra>"
    else:
        heat["hovertemplate"] = "row %{y}, column %{x}: weight %{z:.2f}<extra></extra>"
    blocks = rows // n_heads
    plain = {"showgrid": False, "fixedrange": True, "ticks": ""}
    few = columns <= NAMED
    every = max(1, columns // 12)
    ticks = np.arange(0, columns, 1 if few else every)
    row, column = chosen
    stroke, edge = line(colors.key, 2), line(colors.paper, 2)
    between = [
        {
            "type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y",
            "y0": b * n_heads - 0.5, "y1": b * n_heads - 0.5, "line": edge,
        }
        for b in range(1, blocks)
    ]  # fmt: skip
    layout = {
        "xaxis": plain
        | {
            "tickvals": ticks,
            "ticktext": [shown[i] if few else str(steps[i]) for i in ticks],
            "tickangle": -60 if few and columns > 5 else 0,
            "title": {"text": "what was written" if few else "token written"},
            "range": [-0.5, max(columns, 12) - 0.5],
        },
        "yaxis": plain
        | {
            "tickvals": [(b + 0.5) * n_heads - 0.5 for b in range(blocks)],
            "ticktext": [f"block {b}  " for b in range(blocks)],
            "range": [rows - 0.5, -0.5],
        },
        "plot_bgcolor": colors.masked if np.isnan(weights).any() else colors.paper,
        "shapes": [
            *between,
            frame((column - 0.5, column + 0.5), (-0.5, rows - 0.5), stroke),
            frame((-0.5, columns - 0.5), (row - 0.5, row + 0.5), stroke),
        ],
    }
    return figure([heat], layout, mode, height=min(900, 110 + max(6, 420 // rows) * rows), t=8)
