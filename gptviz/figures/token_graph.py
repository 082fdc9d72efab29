"""A small graph over tokens and depth: what stands further up reads what stands below it.

Columns are positions, rows are depths; only those that have a node take room. Edges are curves of the
layout, as thick as their share; an invisible point in the middle of each carries its sentence and numbers.
Two pictures are such graphs: the contribution graph, and the paths from tokens to the word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import significant, weight
from gptviz.figures.marks import BARE, Drawn, dots, legend, line, safe, says, stroke
from gptviz.figures.theme import Figure, Mode, Palette, figure, palette

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

    `bow`, in places of nodes, bends it aside, to tell it from another between the same two nodes.
    """

    source: Key
    target: Key
    share: float
    value: float
    color: str
    says: str
    solid: bool = True
    bow: float = 0.0


def token_graph(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    labels: Sequence[str],
    rows: Sequence[str],
    selected: int,
    entries: Mapping[str, Drawn],
    mode: Mode,
    row_height: float = ROW,
) -> Figure:
    """Curve 0 are the edges' middles with customdata (value, share), curve 1 the nodes.

    `labels` names every position, `rows` every depth; the column of `selected` is bold, and a name that two
    columns have stands with its position. The ends of every edge are among the nodes. `entries` are the
    legend's: a name and its line.
    """
    colors = palette(mode)
    places, centres, width = _places(nodes)
    depths = {depth: i for i, depth in enumerate(sorted({node.depth for node in nodes}))}
    points = {node.key: (places[node.key], depths[node.depth]) for node in nodes}
    largest = max((edge.share for edge in edges), default=1.0)
    drawn = sorted((_around(edge, points) for edge in edges), key=lambda edge: edge.share)
    shapes = [_curve(edge, points[edge.source], points[edge.target], largest) for edge in drawn]
    shown = [labels[p] for p in centres]
    named = {}
    for p in centres:
        named[p] = _safe(labels[p])
        if shown.count(labels[p]) > 1:
            named[p] += f" <sub>{p}</sub>"
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
    nowhere: list[Any] = [None]
    keys = [stroke(nowhere, nowhere, drawn_as, name=name) for name, drawn_as in entries.items()]
    traces = [_middles(drawn, points), _nodes(nodes, points, mode), *keys]
    return figure(traces, layout, mode, height=90 + row_height * len(depths) + 40, t=44)


def _places(nodes: Sequence[Node]) -> tuple[dict[Key, float], dict[int, float], float]:
    """The place of each node across, the middle of each position, and the whole width."""
    slots: dict[tuple[int, int], list[Node]] = {}
    for node in nodes:
        slots.setdefault((node.position, node.depth), []).append(node)
    widths: dict[int, int] = {}
    for (position, _), slot in slots.items():
        widths[position] = max(widths.get(position, 1), len(slot))
    centres = {}
    start = 0.0
    for position in sorted(widths):
        centres[position] = start + (widths[position] - 1) / 2
        start += widths[position] + GAP
    places = {
        node.key: centres[position] + i - (len(slot) - 1) / 2
        for (position, _), slot in slots.items()
        for i, node in enumerate(slot)
    }
    return places, centres, start - 1 - GAP


def _around(edge: Edge, points: Mapping[Key, tuple[float, float]]) -> Edge:
    """The same, bent aside where it would go straight up through the nodes between its two."""
    (x0, y0) = points[edge.source]
    (x1, y1) = points[edge.target]
    if abs(x0 - x1) > 0.1 or y1 - y0 < 1.5:
        return edge
    if edge.bow > 0 or (edge.bow == 0 and y0 % 2):
        side = 1
    else:
        side = -1
    return replace(edge, bow=side * (0.5 + 0.05 * (y1 - y0)))


def _curve(
    edge: Edge, source: tuple[float, float], target: tuple[float, float], largest: float
) -> Drawn:
    """An S from below to above, with half its height before the bend and half after it."""
    (x0, y0) = source
    (x1, y1) = target
    middle = (y0 + y1) / 2
    path = f"M {x0} {y0} C {x0 + edge.bow} {middle} {x1 + edge.bow} {middle} {x1} {y1}"
    width = max(THINNEST, THICKEST * edge.share / largest)
    drawn = line(edge.color, width, "solid" if edge.solid else "dot")
    return {"type": "path", "path": path, "layer": "below", "opacity": 0.75, "line": drawn}


def _middles(edges: Sequence[Edge], points: Mapping[Key, tuple[float, float]]) -> Drawn:
    x = [(points[edge.source][0] + points[edge.target][0]) / 2 + 0.75 * edge.bow for edge in edges]
    y = [(points[edge.source][1] + points[edge.target][1]) / 2 for edge in edges]
    # (n, 2), or (0, 2)
    numbers = np.array([[edge.value, edge.share] for edge in edges]).reshape(-1, 2)
    hovers = says(_safe(edge.says) for edge in edges)
    unseen = {"size": 16, "opacity": 0}
    return dots(np.array(x), np.array(y), unseen, customdata=numbers, showlegend=False, **hovers)


def _nodes(nodes: Sequence[Node], points: Mapping[Key, tuple[float, float]], mode: Mode) -> Drawn:
    colors = palette(mode)
    x, y = np.array([points[node.key] for node in nodes], dtype=np.float64).T
    marker = {
        "size": np.array([node.size for node in nodes]),
        "symbol": [node.symbol for node in nodes],
        "color": colors.panel,
        "opacity": 1,
        "line": {"color": [node.color for node in nodes], "width": 2},
    }
    words = {
        "text": [_safe(node.label) for node in nodes],
        "textfont": {"size": 12, "color": colors.ink},
    }
    hovers = says(_safe(node.says) for node in nodes)
    return dots(x, y, marker, mode="markers+text", showlegend=False, **words, **hovers)


def _axis(end: float, margin: float = 0.7) -> Drawn:
    return BARE | {"range": [-margin, end + margin]}


def _safe(text: str) -> str:
    """A token inside a Plotly text, which reads a little HTML; line breaks of ours stay."""
    return safe(text).replace("&lt;br&gt;", "<br>")


# ---- LLM-TT's contribution graph ----


def flow_graph(
    edges: pd.DataFrame, labels: Sequence[str], position: int, layers: int, mode: Mode
) -> Figure:
    """The edges of `ContributionGraph`: tokens at the bottom, the selected token's last stream on top.

    A dot is a token's stream after a step. Between two dots of one token the shortcut is grey and what its
    attention to itself or its feed-forward adds stands beside it.
    """
    colors = palette(mode)

    def stream(depth: int, column: int, color: str = colors.quiet, size: float = 9) -> Node:
        return Node(
            (depth, column),
            column,
            depth,
            "",
            color,
            _stream_says(layers, column, labels, depth),
            size=size,
        )

    top = stream(2 * layers, position, colors.ink, 14)
    nodes = {top.key: top}
    ways = {
        "attention": colors.output,
        "feed-forward": colors.feed_forward,
        "shortcut": colors.quiet,
    }
    drawn = []
    for row in edges.itertuples():
        above = 2 * row.block + (2 if row.into == "feed-forward" else 1)
        source = (above - 1, row.source)
        target = (above, row.target)
        for place in (source, target):
            nodes.setdefault(place, stream(*place))
        color = ways[row.via]
        bow = 0.0
        if source[1] == target[1] and row.via != "shortcut":
            bow = 0.3
        share = row.contribution
        drawn.append(Edge(source, target, share, share, color, _flow_says(row, labels), bow=bow))
    rows = ["tokens", *(row for b in range(layers) for row in ("attention", f"after block {b}"))]
    legend = {name: line(color, 4) for name, color in ways.items()}
    return token_graph(
        list(nodes.values()), drawn, labels, rows, position, legend, mode, row_height=30
    )


def _stream_says(n_layers: int, position: int, labels: Sequence[str], depth: int) -> str:
    token = f"{labels[position]} (position {position})"
    if depth == 2 * n_layers:
        return f"the stream of {token} after the last block"
    if depth == 0:
        return f"the embedding of {token}"
    block = (depth - 1) // 2
    step = "feed-forward"
    if depth % 2:
        step = "attention"
    return f"the stream of {token} after block {block}'s {step}"


def _flow_says(row: Any, labels: Sequence[str]) -> str:
    target = f"{labels[row.target]} (position {row.target})"
    share = weight(row.contribution)
    after = f"of the stream of {target}<br>after block {row.block}'s {row.into}"
    if row.via == "shortcut":
        return f"The shortcut is {share} {after}"
    if row.via == "feed-forward":
        return f"The feed-forward is {share} {after}"
    source = f"{labels[row.source]} (position {row.source})"
    if pd.isna(row.head):
        best = ""
    else:
        best = f"<br>most of it by head {row.head}: {weight(row.head_contribution)}"
    return f"What the heads took from {source} is {share} {after}{best}"


WORD: Key = ("word",)


# ---- paths to the word: the parts that wrote what it read, and those that wrote what these read ----

_READS = {"word": "to the word", "V": "by its values", "Q": "by its query", "K": "by its keys"}


def paths_graph(
    edges: pd.DataFrame, labels: Sequence[str], position: int, word: str, n_layers: int, mode: Mode
) -> Figure:
    """The edges of `Paths.above`, tokens at the bottom and the word on top; see `token_graph` for the curves.

    Edges between the same two places that are read in the same way are one, and their logits added. A dotted
    edge is a first-order number; a full one is exact.
    """
    colors = palette(mode)
    last = 2 * n_layers + 1
    nodes = {WORD: Node(WORD, position, last, word, colors.ink, f"the word: {word}", "square", 34)}
    grouped: dict[tuple[Key, Key, str, bool], list[float]] = {}
    for row in edges.itertuples():
        source = _node(row.part, row.block, row.head, row.position, labels, colors)
        nodes.setdefault(source.key, source)
        if row.level == 0:
            target = WORD
        else:
            target = ("head", row.to_block, row.to_head, row.to_position)
        grouped.setdefault((source.key, target, row.by, row.exact), []).append(row.logits)
    tints = {"word": colors.output, "V": colors.value, "Q": colors.query, "K": colors.key}
    scale = 1.0
    if len(edges):
        scale = (edges["logits"].abs() / edges["share"]).max()
    drawn = []
    for (source_key, target, way, exact), logits in grouped.items():
        value = sum(logits)
        bow = {"Q": -0.35, "K": 0.35}.get(way, 0.0)
        says = _path_says(nodes[source_key].says, nodes[target].says, way, exact, value)
        share = abs(value) / scale
        drawn.append(Edge(source_key, target, share, value, tints[way], says, solid=exact, bow=bow))
    blocks = (row for b in range(n_layers) for row in (f"heads of {b}", f"feed-forward of {b}"))
    ways = [
        ("word", "to the word"),
        ("V", "value"),
        ("Q", "query, first order"),
        ("K", "key, first order"),
    ]
    used = {way for _, _, way, _ in grouped}
    dashes = {"Q": "dot", "K": "dot"}
    legend = {name: line(tints[way], 4, dashes.get(way)) for way, name in ways if way in used}
    rows = ["tokens", *blocks, "the word"]
    return token_graph(list(nodes.values()), drawn, labels, rows, position, legend, mode)


def _node(
    part: str, block: int, head: int, position: int, labels: Sequence[str], colors: Palette
) -> Node:
    token = f"{labels[position]} (position {position})"
    if part == "embedding":
        key: Key = ("embedding", position)
        return Node(key, position, 0, "", colors.quiet, f"the token {token}", size=12)
    if part == "head":
        key = ("head", block, head, position)
        says = f"block {block}, head {head} at {token}"
        return Node(key, position, 2 * block + 1, f"{block}.{head}", colors.output, says)
    says = f"the feed-forward of block {block} at {token}"
    key = ("feed-forward", block, position)
    return Node(key, position, 2 * block + 2, f"{block}", colors.feed_forward, says, "square", 26)


def _path_says(source: str, target: str, way: str, exact: bool, value: float) -> str:
    if way == "word":
        return f"{source} writes {significant(value)} logits<br>straight to the word"
    precision = "exact" if exact else "to first order"
    return f"{source} gives {significant(value)} logits<br>through {target}, {_READS[way]}; {precision}"
