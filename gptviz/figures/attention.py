"""One attention weight in bars: the products in its score, its row's softmax, its part of the output."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import Floats, axis_names
from gptviz.figures.marks import heading
from gptviz.figures.theme import Mode, figure, palette

TOO_MANY_TO_READ = 30  # tokens along half a page
FEWEST = 8  # places on an axis of keys: one key's bar alone would be a wall


def products(q: Floats, k: Floats, query: str, key: str, mode: Mode) -> Figure:
    """A bar for each of the head's d dimensions: q * k, orange above zero and blue below. q, k (d,)."""
    colors = palette(mode)
    values = q * k
    says = [
        f"dimension {i}: {fixed(a, 2)} of {_safe(query)} × {fixed(b, 2)} of {_safe(key)} = {fixed(a * b, 2)}"
        for i, (a, b) in enumerate(zip(q, k, strict=True))
    ]
    bars = _bars(values, np.where(values >= 0, colors.positive, colors.negative), says)
    layout = {
        "xaxis": _dimensions(values),
        "yaxis": {"title": {"text": "q × k"}, "nticks": 5},
        "shapes": [_zero(mode)],
    }
    return figure([bars], layout, mode, height=210)


def softmax_row(
    scaled: Floats, exp: Floats, weights: Floats, keys: Sequence[str], query: str, key: int, mode: Mode
) -> Figure:
    """One query's row on its way through the softmax: scaled scores, exponentials, weights; (n,) each.

    `keys` are the n tokens that the query can see; the bar of `key` is red, if it is one of them.
    """
    colors = palette(mode)
    marked = np.where(np.arange(len(keys)) == key, colors.key, colors.output)
    rows: list[tuple[str, Floats, list[str]]] = [
        ("scaled score", scaled, [fixed(v, 2) for v in scaled]),
        ("e^(score − largest)", exp, [significant(v, 2) for v in exp]),
        ("weight", weights, [significant(v, 2) for v in weights]),
    ]
    bars: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "xaxis": {"showgrid": False, "anchor": "y3"} | _tokens(keys),
        "shapes": [],
        "annotations": [],
    }
    for number, (name, values, shown) in enumerate(rows, start=1):
        y, y_axis = axis_names(number, "y")
        says = [
            f"{name} of {_safe(query)} for {_safe(token)} (position {i}): {value}"
            for i, (token, value) in enumerate(zip(keys, shown, strict=True))
        ]
        bars.append(_bars(values, marked, says) | {"name": name, "yaxis": y})
        top = 1 - (number - 1) * 0.37
        layout[y_axis] = {"nticks": 4, "domain": [max(0, top - 0.26), top]}
        if values is weights:
            layout[y_axis] |= {"range": [0, 1]}
        layout["shapes"].append(_zero(mode, y))
        layout["annotations"].append(heading(f"<b>{name}</b>", 0, top))
    return figure(bars, layout, mode, height=380)


def output(part: Floats, z: Floats, query: str, key: str, mode: Mode) -> Figure:
    """The head's output z (d,) for one query in purple, and in green the part that one key's value put in."""
    colors = palette(mode)
    bars = [
        _bars(values, color, [f"dimension {i}: {fixed(v, 3)} {what}" for i, v in enumerate(values)])
        | {"name": name, "width": width}
        for name, values, width, color, what in (
            ("output z", z, 0.9, colors.output, f"in the head's output for {_safe(query)}"),
            ("weight × value", part, 0.42, colors.value, f"of it from {_safe(key)}"),
        )
    ]
    layout = {
        "barmode": "overlay",
        "xaxis": _dimensions(z),
        "yaxis": {"nticks": 5},
        "shapes": [_zero(mode)],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
    }
    return figure(bars, layout, mode, height=230)


def _bars(values: Floats, color: Any, says: Sequence[str]) -> dict[str, Any]:
    """A bar a value, each with its sentence. `color` is one for all, or an array with one for each."""
    return {
        "type": "bar",
        "x": np.arange(len(values)),
        "y": values,
        "marker": {"color": color, "line": {"width": 0}},
        "hovertext": says,
        "hoverinfo": "text",
    }


def _zero(mode: Mode, y: str = "y") -> dict[str, Any]:
    """The line from which bars go up and down."""
    line = {"color": palette(mode).quiet, "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": y, "y0": 0, "y1": 0, "line": line}


def _dimensions(values: Floats) -> dict[str, Any]:
    return {"title": {"text": f"dimension of the head, 0 to {len(values) - 1}"}, "showgrid": False}


def _tokens(keys: Sequence[str]) -> dict[str, Any]:
    """The keys below their bars, or positions where there are too many to read."""
    room = {"range": [-0.5, max(len(keys), FEWEST) - 0.5]}
    if len(keys) > TOO_MANY_TO_READ:
        return room | {"title": {"text": "position of the key"}}
    return room | {
        "tickvals": np.arange(len(keys)),
        "ticktext": [_safe(token) for token in keys],
        "tickangle": -60 if len(keys) > 5 else 0,
    }


def _safe(token: str) -> str:
    """A token inside a Plotly text, which reads a little HTML."""
    return html.escape(token, quote=False)
