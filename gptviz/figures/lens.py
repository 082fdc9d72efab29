"""The logit lens in colours and curves: its cells' colours, a depth beside the end, tokens followed.

Shapes: R rows (depths), K positions that have been read, n tokens that are followed.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import fixed
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import GHOSTED, UNCHANGED, ghost_bars, ghost_curve
from gptviz.figures.heatmaps import Floats, axis_names
from gptviz.figures.marks import SHARES, heading, line, upright
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode, Palette, Scale, figure, palette

MEASURES = ("probability", "rank", "entropy", "kl")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")


@dataclass(frozen=True)
class Bar:
    """A token in two distributions: a depth's, and the last; `was` are both of the unchanged model."""

    id: int
    shown: str
    here: float
    here_rank: int
    final: float
    final_rank: int
    was: tuple[float, float] | None = None


@dataclass(frozen=True)
class Trail:
    """A token through the depth: (R,) probabilities and ranks from 1."""

    id: int
    shown: str
    probabilities: NDArray[np.float32]
    ranks: NDArray[np.int64]


def colors_of(measure: str, values: NDArray[Any], vocabulary: int) -> NDArray[np.float32]:
    """A measure's values as places on its scale, 0 to 1: probabilities, ranks from 1, or bits.

    Ranks go by their logarithm, from the last of the vocabulary to the first; bits from 0 to those of a blind
    guess, log2(vocabulary), and what is more has the last colour. ValueError for another measure.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    found = np.asarray(values, dtype=np.float64)
    if measure == "rank":
        found = 1 - np.log(found) / math.log(max(vocabulary, 2))
    elif measure != "probability":
        found = found / math.log2(max(vocabulary, 2))
    return np.clip(found, 0, 1).astype(np.float32)


def scale_of(measure: str, mode: Mode) -> Scale:
    """Purple for what the model is for, orange, as for surprise, for what it does not know."""
    colors = palette(mode)
    if measure in ("probability", "rank"):
        return colors.attention
    return [(0.0, colors.paper), (1.0, colors.signed[3][1])]


def ends_of(measure: str, vocabulary: int) -> tuple[str, str]:
    """What stands at the two ends of the scale."""
    blind = f"{fixed(math.log2(max(vocabulary, 2)), 1)} bits"
    return {
        "probability": ("0", "1"),
        "rank": (f"{vocabulary:,}", "1"),
        "entropy": ("0 bits: certain", f"{blind}: a blind guess"),
        "kl": ("0 bits: the same", f"{blind} or more"),
    }[measure]


def beside_the_end(bars: Sequence[Bar], row_name: str, last: bool, mode: Mode) -> Figure:
    """A depth's distribution on the left, the model's own on the right, of the same tokens on the same scale.

    Tokens have rows of their own, however alike they look. `last`: the depth is the last, and both are one.
    """
    colors = palette(mode)
    rows = np.arange(len(bars))
    names = [html.escape(bar.shown, quote=False) for bar in bars]
    ids = np.array([bar.id for bar in bars], dtype=np.int32)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "bargap": 0.28}
    own = [(bar.final, bar.final_rank) for bar in bars]
    compared = [bar.was for bar in bars if bar.was is not None]
    sides = [("output", "in the end", colors.output, own, (0.0 if last else 0.53, 1.0))]
    if not last:
        here, where = [(bar.here, bar.here_rank) for bar in bars], f"after {row_name}"
        sides.insert(0, (short_name(row_name), where, colors.quiet, here, (0.0, 0.47)))
    for number, (name, where, color, values, domain) in enumerate(sides, start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        says = [
            f"`{shown}`: {probability_text(p)} {html.escape(where)}, rank {rank:,}"
            for shown, (p, rank) in zip(names, values, strict=True)
        ]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": np.array([p for p, _ in values], dtype=np.float64),
                "y": rows,
                "xaxis": x[0],
                "yaxis": y[0],
                "marker": {"color": color},
                "text": [probability_text(p) for p, _ in values],
                "textposition": "outside",
                "cliponaxis": False,
                "customdata": ids,
                "hovertext": says,
                "hovertemplate": "%{hovertext}<extra></extra>",
                "showlegend": False,
            }
        )
        if compared:
            was = np.array([pair[0 if number < len(sides) else 1] for pair in compared])
            pairs = zip(bars, was, strict=True)
            said = [f"`{bar.shown}`: {probability_text(p)} {where}, unchanged" for bar, p in pairs]
            on = {"xaxis": x[0], "yaxis": y[0], "customdata": ids, "showlegend": number == 1}
            traces.append(ghost_bars(was, rows, mode, said, orientation="h", **on))
        layout[x[1]] = (
            SHARES
            | {"domain": list(domain), "anchor": y[0]}
            | {
                "showgrid": False,
                "showticklabels": False,
            }
        )
        layout[y[1]] = {"range": [len(bars) - 0.5, -0.5], "anchor": x[0], "fixedrange": True} | {
            "tickvals": rows,
            "ticktext": names,
            "showticklabels": number == 1,
            "ticks": "",
            "ticklabelstandoff": 7,
            "showgrid": False,
        }
        layout["annotations"].append(heading(f"<b>{html.escape(name)}</b>", domain[0], 1))
    return figure(traces, (GHOSTED if compared else {}) | layout, mode, height=44 + 21 * len(bars), t=26)


def through_the_depth(
    lines: Sequence[Trail],
    row_names: Sequence[str],
    row: int,
    vocabulary: int,
    mode: Mode,
    unchanged: Sequence[Trail] = (),
) -> Figure:
    """Tokens through the depth: their probability above, their rank below (logarithmic, rank 1 on top).

    A line is a token: told apart by colour, dashes and marks, and by the legend's order. `unchanged` are the
    same tokens in the model without edits, as ghosts with the marks of their tokens.
    """
    colors = palette(mode)
    depth = np.arange(len(row_names), dtype=np.int32)
    traces = [ghost for i, token in enumerate(unchanged) for ghost in _ghosts(token, i, row_names, mode)]
    for i, token in enumerate(lines):
        stroke = line(_line_color(i, colors), 3 if i == 0 else 2.25, DASHES[i % len(DASHES)])
        shown = html.escape(token.shown, quote=False)
        says = [
            f"`{shown}` after {html.escape(name)}: {probability_text(float(p))}, rank {int(rank):,}"
            for name, p, rank in zip(row_names, token.probabilities, token.ranks, strict=True)
        ]
        for values, axis in ((token.probabilities.astype(np.float64), "y"), (token.ranks, "y2")):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": depth,
                    "y": values,
                    "yaxis": axis,
                    "name": f"“{shown}”",
                    "legendgroup": str(i),
                    "showlegend": axis == "y",
                    "line": stroke,
                    "marker": {"size": 8, "symbol": SYMBOLS[i % len(SYMBOLS)], "color": stroke["color"]},
                    "text": says,
                    "hovertemplate": "%{text}<extra></extra>",
                    "meta": token.id,
                }
            )
    most = max((float(token.probabilities.max()) for token in (*lines, *unchanged)), default=1.0)
    layout = {
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False}
        | {"itemdoubleclick": False, "font": {"size": 14}},
        "xaxis": {"tickvals": depth, "ticktext": _short(row_names), "range": [-0.4, len(depth) - 0.6]}
        | {"tickangle": -40, "anchor": "y2", "fixedrange": True},
        "yaxis": {"title": {"text": "probability"}, "domain": [0.54, 1], "range": [0, max(most * 1.08, 1e-6)]}
        | {"fixedrange": True},
        "yaxis2": {"title": {"text": "rank"}, "domain": [0, 0.46], "type": "log", "fixedrange": True}
        | {"range": [math.log10(vocabulary * 1.3), -0.12], "dtick": 1},
        "shapes": [
            upright(row, line(colors.accent, 1, "dot"), ("x", "y")),
            upright(row, line(colors.accent, 1, "dot"), ("x", "y2")),
        ],
    }
    return figure(traces, layout, mode, height=470, t=40)


def _ghosts(token: Trail, i: int, row_names: Sequence[str], mode: Mode) -> list[dict[str, Any]]:
    """A token's two curves in the unchanged model; the legend has one of all tokens."""
    depth = np.arange(len(row_names), dtype=np.int32)
    says = [
        f"`{token.shown}` after {name}, unchanged: {probability_text(float(p))}, rank {int(rank):,}"
        for name, p, rank in zip(row_names, token.probabilities, token.ranks, strict=True)
    ]
    mark = {"size": 6, "symbol": f"{SYMBOLS[i % len(SYMBOLS)]}-open", "color": palette(mode).ghost}
    shared = {"mode": "lines+markers", "marker": mark, "legendgroup": UNCHANGED, "meta": token.id}
    panels = ((token.probabilities.astype(np.float64), "y"), (token.ranks, "y2"))
    return [
        ghost_curve(depth, values, mode, says)
        | shared
        | {"yaxis": axis, "showlegend": axis == "y" and i == 0}
        for values, axis in panels
    ]


def _line_color(i: int, colors: Palette) -> str:
    """The first token is the one that is followed; the others are told apart by more than their colour."""
    others = (colors.positive, colors.value, colors.negative, colors.key, colors.quiet)
    return colors.accent if i == 0 else others[(i - 1) % len(others)]


def _short(row_names: Sequence[str]) -> list[str]:
    """As beside the grid; of many rows each second name: those after a whole block, and the embedding."""
    few = len(row_names) <= 15
    return [short_name(name) if few or i % 2 == 0 else "" for i, name in enumerate(row_names)]


def short_name(row_name: str) -> str:
    """ "block 3 · attention" where there is little room: "3 attention"."""
    return row_name.removeprefix("block ").replace(" ·", "")


def grid_values(
    measure: str, probability: Floats, entropy: Floats, kl: Floats, ranks: NDArray[np.int64] | None
) -> NDArray[Any]:
    """The numbers that colour the cells, (R, K): of the token on top, or of the one whose ranks are given."""
    if measure == "rank":
        if ranks is None:
            raise ValueError("measure is 'rank'; give the ranks of a token")
        return ranks
    found: NDArray[Any] = {"probability": probability, "entropy": entropy, "kl": kl}[measure]
    return found
