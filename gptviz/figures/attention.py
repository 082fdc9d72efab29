"""One attention weight in bars: the products in its score, its row's softmax, its part of the output."""

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from gptviz.digits import fixed, significant
from gptviz.figures.theme import Mode, finish, palette

Floats = NDArray[np.floating]

TOO_MANY_TO_READ = 80  # tokens beside an axis


def products(q: Floats, k: Floats, query: str, key: str, mode: Mode) -> go.Figure:
    """A bar for each of the head's d dimensions: q * k, orange above zero and blue below. q, k (d,)."""
    colors = palette(mode)
    values = q * k
    says = [
        f"dimension {i}: {fixed(a, 2)} of {_safe(query)} × {fixed(b, 2)} of {_safe(key)} = {fixed(a * b, 2)}"
        for i, (a, b) in enumerate(zip(q, k, strict=True))
    ]
    fig = go.Figure(
        go.Bar(
            x=np.arange(len(values)),
            y=values,
            marker={"color": np.where(values >= 0, colors.positive, colors.negative)},
            hovertext=says,
            hoverinfo="text",
        )
    )
    fig.update_xaxes(title=f"dimension of the head, 0 to {len(values) - 1}", showgrid=False)
    fig.update_yaxes(title="q × k", zeroline=True, zerolinecolor=colors.quiet, nticks=5)
    return finish(fig, mode, height=210)


def softmax_row(
    scaled: Floats, exp: Floats, weights: Floats, keys: Sequence[str], query: str, key: int, mode: Mode
) -> go.Figure:
    """One query's row on its way through the softmax: scaled scores, exponentials, weights; (n,) each.

    `keys` are the n tokens that the query can see; the bar of `key` is red, if it is one of them.
    """
    colors = palette(mode)
    positions = np.arange(len(keys))
    marked = np.where(positions == key, colors.key, colors.output)
    rows: list[tuple[str, Floats, list[str]]] = [
        ("scaled score", scaled, [fixed(v, 2) for v in scaled]),
        ("e^(score − largest)", exp, [significant(v, 2) for v in exp]),
        ("weight", weights, [significant(v, 2) for v in weights]),
    ]
    fig = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    for number, (name, values, shown) in enumerate(rows, start=1):
        says = [
            f"{name} of {_safe(query)} for {_safe(token)} (position {i}): {value}"
            for i, (token, value) in enumerate(zip(keys, shown, strict=True))
        ]
        bar = go.Bar(
            x=positions, y=values, marker={"color": marked}, hovertext=says, hoverinfo="text", name=name
        )
        fig.add_trace(bar, row=number, col=1)
        fig.update_yaxes(title={"text": name, "font": {"size": 12}}, nticks=4, row=number, col=1)
    fig.update_xaxes(showgrid=False)
    fig.update_yaxes(zeroline=True, zerolinecolor=colors.quiet)
    few = len(keys) <= TOO_MANY_TO_READ
    ticks = (
        {"tickvals": positions, "ticktext": [_safe(token) for token in keys], "tickangle": -60} if few else {}
    )
    fig.update_xaxes(row=3, col=1, **ticks)
    return finish(fig, mode, height=360)


def output(part: Floats, z: Floats, query: str, key: str, mode: Mode) -> go.Figure:
    """The head's output z (d,) for one query in purple, and in green the part that one key's value put in."""
    colors = palette(mode)
    dims = np.arange(len(z))
    fig = go.Figure(
        [
            go.Bar(
                x=dims,
                y=values,
                name=name,
                width=width,
                marker={"color": color, "line": {"width": 0}},
                hovertext=[f"dimension {i}: {fixed(v, 3)} {what}" for i, v in enumerate(values)],
                hoverinfo="text",
            )
            for name, values, width, color, what in (
                ("output z", z, 0.9, colors.output, f"in the head's output for {_safe(query)}"),
                ("weight × value", part, 0.42, colors.value, f"of it from {_safe(key)}"),
            )
        ]
    )
    fig.update_layout(barmode="overlay")
    fig.update_xaxes(title=f"dimension of the head, 0 to {len(z) - 1}", showgrid=False)
    fig.update_yaxes(zeroline=True, zerolinecolor=colors.quiet, nticks=5)
    finish(fig, mode, height=230)
    fig.update_layout(
        showlegend=True, legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}
    )
    return fig


def _safe(token: str) -> str:
    """A token inside a Plotly text, which reads a little HTML."""
    return html.escape(token, quote=False)
