"""How much of a text stood in it before, along the text, and how much a head looked at what followed then."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant, weight
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import ghost_curve
from gptviz.figures.marks import across, heading, line
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]


def repetition(
    shares: Mapping[str, Floats],
    attention: Mapping[str, Floats],
    tokens: Mapping[str, Sequence[str]],
    head: str,
    mode: Mode,
    unchanged: tuple[str, Floats] | None = None,
) -> Figure:
    """Two rows over the steps, a line for each text in both, by the text's name.

    `shares` (n,): of all that was written so far, the share that repeats. `attention` (n,): what `head` gave
    to the tokens that had followed before, NaN where there were none. `tokens` is what was written.
    `unchanged`: the name and the shares of a text of the model without its changes.
    """
    colors = palette(mode)
    strokes = dict(zip(shares, (colors.positive, colors.query), strict=False))
    traces: list[dict[str, Any]] = []
    for name, values in shares.items():
        says = [f"{name}, token {i}, {_safe(t)}" for i, t in enumerate(tokens[name], start=1)]
        common = {"type": "scatter", "name": name, "hoverinfo": "text"}
        traces.append(
            common
            | {
                "x": np.arange(1, len(values) + 1, dtype=np.int32),
                "y": 100 * values,
                "mode": "lines" if len(values) > 1 else "markers",
                "line": line(strokes[name], 3),
                "hovertext": [
                    f"{said}:<br>{significant(100 * float(v), 2)} % of what was written repeats"
                    for said, v in zip(says, values, strict=True)
                ],
            }
        )
        given = attention[name]
        traces.append(
            common
            | {
                "x": np.arange(1, len(given) + 1, dtype=np.int32),
                "y": given,
                "yaxis": "y2",
                "mode": "markers",
                "marker": {"color": strokes[name], "size": 6},
                "showlegend": False,
                "hovertext": [
                    "" if np.isnan(v) else f"{said}:<br>{weight(float(v))} to what followed before"
                    for said, v in zip(says, given, strict=True)
                ],
            }
        )
    if unchanged is not None:
        name, values = unchanged
        says = [f"{name}, token {i}: {significant(100 * float(v), 2)} %" for i, v in enumerate(values, 1)]
        x = np.arange(1, len(values) + 1, dtype=np.int32)
        traces.append(ghost_curve(x, 100 * values, mode, says, name=name))
    top = heading("<b>share that repeats, in %</b>", 0, 1)
    layout = {
        "xaxis": {"title": {"text": "token written"}, "anchor": "y2", "showgrid": False},
        "yaxis": {"domain": [0.58, 1], "range": [-3, 103], "nticks": 5},
        "yaxis2": {"domain": [0, 0.4], "range": [-0.04, 1.04], "nticks": 5},
        "annotations": [top, heading(f"<b>{_safe(head)} looks at what followed</b>", 0, 0.4)],
        "shapes": [across(0, line(colors.quiet, 1)), across(0, line(colors.quiet, 1), ("x", "y2"))],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.08, "yanchor": "bottom"},
    }
    return figure(traces, layout, mode, height=440, t=64)


def _safe(token: str) -> str:
    return escape(token, quote=False)
