"""A small graph over tokens and depth: what stands further up reads what stands below it.

Columns are positions, rows are depths; only those that have a node take room. Edges are curves of the
layout, as thick as their share; an invisible point in the middle of each carries its sentence and numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gptviz.figures.marks import BARE, dots, legend, line, safe, says, stroke
from gptviz.figures.theme import Figure, Mode, figure, palette

Key = tuple[object, ...]

THICKEST = 14.0  # pixels of the edge with the largest share, and
THINNEST = 0.8  # of the smallest
GAP = 0.5  # between columns, in places of a node
ROW = 46  # pixels


@dataclass(frozen=True)
class Node:
    """A place: the position's column and the depth's row, what is written on it, its colour, its sentence."""

    key: Key
    position: int
    depth: int
    label: str
    color: str
    says: str
    symbol: str = "circle"
    size: float = 30


@dataclass(frozen=True)
class Edge:
    """From a node below to one above: `share` is its thickness, `value` its number, dashed if not `solid`.

    `bow` bends it aside by so many places, to tell it from another between the same two nodes.
    """

    source: Key
    target: Key
    share: float
    value: float
    color: str
    says: str
    solid: bool = True
    bow: float = 0.0


@dataclass(frozen=True)
class Line:
    """An entry of the legend."""

    name: str
    color: str
    solid: bool = True


def token_graph(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    columns: Mapping[int, str],
    rows: Mapping[int, str],
    selected: int,
    entries: Sequence[Line],
    mode: Mode,
    row_height: float = ROW,
) -> Figure:
    """Curve 0 are the edges' middles with customdata (value, share), curve 1 the nodes.

    `columns` names every position that may occur, `rows` every depth; the column of `selected` is bold, and
    a name that two columns have stands with its position.
    Raises ValueError for an edge between nodes that are not there.
    """
    if not nodes:
        raise ValueError("nodes is empty; a graph has at least one")
    colors = palette(mode)
    places, centres, width = _places(nodes)
    depths = {depth: i for i, depth in enumerate(sorted({node.depth for node in nodes}))}
    at = {node.key: (places[node.key], depths[node.depth]) for node in nodes}
    lost = [edge for edge in edges if edge.source not in at or edge.target not in at]
    if lost:
        raise ValueError(f"there is no node for the edge from {lost[0].source} to {lost[0].target}")
    largest = max((edge.share for edge in edges), default=1.0)
    drawn = sorted((_around(edge, at) for edge in edges), key=lambda edge: edge.share)
    shapes = [_curve(edge, at[edge.source], at[edge.target], largest) for edge in drawn]
    shown = [columns[p] for p in centres]
    named = {p: _safe(columns[p]) + f" <sub>{p}</sub>" * (shown.count(columns[p]) > 1) for p in centres}
    ticks = [f"<b>{named[p]}</b>" if p == selected else named[p] for p in centres]
    layout = {
        "shapes": shapes,
        "xaxis": _axis(width) | {
            "tickvals": np.array(list(centres.values())),
            "ticktext": ticks,
            "tickangle": -60 if len(centres) > 6 else 0,
        },
        "yaxis": _axis(len(depths) - 1, 0.6) | {
            "tickvals": np.arange(len(depths)),
            "ticktext": [rows[depth] for depth in depths],
            "tickfont": {"size": 13 if len(depths) <= 16 else 11, "color": colors.quiet},
        },
        "showlegend": bool(entries),
        "legend": legend(0),
    }  # fmt: skip
    traces = [_middles(drawn, at), _nodes(nodes, at, mode), *(_entry(one) for one in entries)]
    return figure(traces, layout, mode, height=90 + row_height * len(depths) + 40, t=44)


def _places(nodes: Sequence[Node]) -> tuple[dict[Key, float], dict[int, float], float]:
    """Return where each node stands across, where each position's middle is, and how wide all is."""
    slots: dict[tuple[int, int], list[Node]] = {}
    for node in nodes:
        slots.setdefault((node.position, node.depth), []).append(node)
    widths: dict[int, int] = {}
    for (position, _), here in slots.items():
        widths[position] = max(widths.get(position, 1), len(here))
    centres, start = {}, 0.0
    for position in sorted(widths):
        centres[position] = start + (widths[position] - 1) / 2
        start += widths[position] + GAP
    places = {
        node.key: centres[position] + i - (len(here) - 1) / 2
        for (position, _), here in slots.items()
        for i, node in enumerate(here)
    }
    return places, centres, start - 1 - GAP


def _around(edge: Edge, at: Mapping[Key, tuple[float, float]]) -> Edge:
    """The same, bent aside where it would go straight up through the nodes between its two."""
    (x0, y0), (x1, y1) = at[edge.source], at[edge.target]
    if abs(x0 - x1) > 0.1 or y1 - y0 < 1.5:
        return edge
    side = 1 if edge.bow > 0 or (edge.bow == 0 and y0 % 2) else -1
    return replace(edge, bow=side * (0.5 + 0.05 * (y1 - y0)))


def _curve(
    edge: Edge, source: tuple[float, float], target: tuple[float, float], largest: float
) -> dict[str, Any]:
    """An S from below to above, with half its height before the bend and half after it."""
    (x0, y0), (x1, y1) = source, target
    middle = (y0 + y1) / 2
    path = f"M {x0} {y0} C {x0 + edge.bow} {middle} {x1 + edge.bow} {middle} {x1} {y1}"
    width = max(THINNEST, THICKEST * edge.share / largest)
    drawn = line(edge.color, width, "solid" if edge.solid else "dot")
    return {"type": "path", "path": path, "layer": "below", "opacity": 0.75, "line": drawn}


def _middles(edges: Sequence[Edge], at: Mapping[Key, tuple[float, float]]) -> dict[str, Any]:
    x = [(at[e.source][0] + at[e.target][0]) / 2 + 0.75 * e.bow for e in edges]
    y = [(at[e.source][1] + at[e.target][1]) / 2 for e in edges]
    numbers = np.array([[e.value, e.share] for e in edges]).reshape(-1, 2)
    hovers = says(_safe(e.says) for e in edges)
    unseen = {"size": 16, "opacity": 0}
    return dots(np.array(x), np.array(y), unseen, customdata=numbers, showlegend=False, **hovers)


def _nodes(nodes: Sequence[Node], at: Mapping[Key, tuple[float, float]], mode: Mode) -> dict[str, Any]:
    colors = palette(mode)
    x, y = np.array([at[node.key] for node in nodes], dtype=np.float64).T
    marker = {
        "size": np.array([node.size for node in nodes]),
        "symbol": [node.symbol for node in nodes],
        "color": colors.panel,
        "opacity": 1,
        "line": {"color": [node.color for node in nodes], "width": 2},
    }
    words = {"text": [_safe(node.label) for node in nodes], "textfont": {"size": 12, "color": colors.ink}}
    hovers = says(_safe(node.says) for node in nodes)
    return dots(x, y, marker, mode="markers+text", showlegend=False, **words, **hovers)


def _entry(said: Line) -> dict[str, Any]:
    nowhere: list[Any] = [None]
    return stroke(nowhere, nowhere, line(said.color, 4, "solid" if said.solid else "dot"), name=said.name)


def _axis(end: float, margin: float = 0.7) -> dict[str, Any]:
    return BARE | {"range": [-margin, end + margin]}


def _safe(text: str) -> str:
    """A token inside a Plotly text, which reads a little HTML; line breaks of ours stay."""
    return safe(text).replace("&lt;br&gt;", "<br>")
