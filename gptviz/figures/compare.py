"""Two passes side by side: their next tokens back to back, and how far apart their streams are.

The left side is blue and the right one orange, as in every signed difference "right less left".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np

from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import BAR, Floats, share_axis
from gptviz.figures.marks import frame, heading, line
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode, figure, palette

NAMED = 40  # columns whose tokens can be read along the axis
ROUNDING = 1e-6  # of a cosine of two float32 streams: less has no colour
LETTERS, LINES = 20, 3  # of a side's name: on a phone there is no room for more
WHOLE = 1.3  # a side's width, as a probability: beyond 1 is room for the number at a bar's end
MIDDLE = (0.4, 0.6)  # of the width: between these stand the tokens


@dataclass(frozen=True)
class Row:
    """A token in two distributions; None where a side's vocabulary does not have it."""

    shown: str
    left: float | None
    right: float | None


def back_to_back(rows: Sequence[Row], sides: tuple[str, str], mode: Mode) -> Figure:
    """The probabilities of the same tokens: to the left those of the left side, to the right the other's.

    From 0 to 1 on either side, the tokens in between. `sides` are the two sides' names.
    """
    colors = palette(mode)
    places = np.arange(len(rows), dtype=np.int32)
    left, right = (_wrapped(side) for side in sides)
    above = 18 * max(left.count("<br>"), right.count("<br>"))  # pixels of their further lines
    names = [escape(row.shown, quote=False) for row in rows]
    plain = {"showgrid": False, "fixedrange": True, "showticklabels": False, "ticks": ""}
    y_axis = plain | {"range": [len(rows) - 0.5, -0.5]}
    layout: dict[str, Any] = {
        "xaxis": plain | {"domain": [0, MIDDLE[0]], "range": [WHOLE, 0], "anchor": "y"},
        "xaxis2": plain | {"domain": [MIDDLE[1], 1], "range": [0, WHOLE], "anchor": "y2"},
        "yaxis": y_axis | {"anchor": "x"},
        "yaxis2": y_axis | {"anchor": "x2"},
        "bargap": 0.3,
        "annotations": [
            heading(f"<b>{left}</b>", MIDDLE[0], 1, xanchor="right", align="right"),
            heading(f"<b>{right}</b>", MIDDLE[1], 1),
            *(
                {"text": name, "x": sum(MIDDLE) / 2, "xref": "paper", "xanchor": "center", "y": place}
                | {"yref": "y", "yanchor": "middle"}
                for place, name in enumerate(names)
            ),
        ],
    }
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": np.array([p or 0.0 for p in values]),
            "y": places,
            "xaxis": f"x{suffix}",
            "yaxis": f"y{suffix}",
            "marker": {"color": color},
            "text": ["not in its vocabulary" if p is None else probability_text(p) for p in values],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertext": [
                f"`{name}` is not in the vocabulary of {escape(side)}"
                if p is None
                else f"`{name}`: {probability_text(p)} in {escape(side)}"
                for name, p in zip(names, values, strict=True)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for suffix, side, color, values in (
            ("", sides[0], colors.negative, [row.left for row in rows]),
            ("2", sides[1], colors.positive, [row.right for row in rows]),
        )
    ]
    return figure(traces, layout, mode, height=44 + above + 26 * len(rows), t=30 + above)


def _wrapped(name: str) -> str:
    """A side's name over its bars, which have no more room: a list of changes may be any length."""
    lines = wrap(name, LETTERS) or [name]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"{lines[LINES - 1][: LETTERS - 2]} …"]
    return "<br>".join(escape(line, quote=False) for line in lines)


def streams_map(
    distances: Floats, tokens: Sequence[str], others: Sequence[str], chosen: int, mode: Mode
) -> Figure:
    """1 - cosine of two residual streams, (L + 1, P): a row a block's beginning, the last the end.

    Columns are pairs of `tokens` and `others`; column `chosen` is framed.
    """
    rows, columns = distances.shape
    colors = palette(mode)
    depth = [f"before block {b}" for b in range(rows - 1)] + ["at the end"]
    shown, theirs = ([escape(token, quote=False) for token in side] for side in (tokens, others))
    cells = {
        "type": "heatmap",
        "z": distances.astype(np.float32),
        "x": np.arange(columns, dtype=np.int32),
        "y": np.arange(rows, dtype=np.int32),
        "coloraxis": "coloraxis",
        "customdata": [
            [f"{name}, `{a}` and `{b}`" for a, b in zip(shown, theirs, strict=True)] for name in depth
        ],
        "hovertemplate": "%{customdata}: 1 − cosine is %{z:.3g}<extra></extra>",
        "xgap": 1 if columns <= NAMED else 0,
        "ygap": 1,
    }
    plain = {"showgrid": False, "fixedrange": True, "ticks": "", "tickmode": "array"}
    few = columns <= NAMED
    ticks = np.arange(0, columns, 1 if few else max(1, columns // 12))
    layout = {
        "coloraxis": share_axis(max(float(distances.max()), ROUNDING), mode, 0.97),
        "xaxis": plain
        | {
            "tickvals": ticks,
            "ticktext": [shown[i] if few else str(i) for i in ticks],
            "tickangle": -60 if few and columns > 5 else 0,
            "title": {"text": "" if few else "pair"},
            "range": [-0.5, columns - 0.5],
        },
        "yaxis": plain
        | {
            "tickvals": np.arange(rows),
            "ticktext": [f"{name} " for name in depth],
            "range": [rows - 0.5, -0.5],
        },
        "shapes": [frame((chosen - 0.5, chosen + 0.5), (-0.5, rows - 0.5), line(colors.accent, 2.5))],
    }
    return figure([cells], layout, mode, height=BAR + 90 + rows * 26, t=BAR)
