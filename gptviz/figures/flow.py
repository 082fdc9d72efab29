"""The contribution graph of LLM-TT."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gptviz.digits import weight
from gptviz.figures.theme import Figure, Mode, palette
from gptviz.figures.token_graph import Edge, Line, Node, token_graph


def flow_graph(
    edges: pd.DataFrame, labels: Sequence[str], position: int, n_layers: int, mode: Mode
) -> Figure:
    """The edges of `ContributionGraph`: tokens at the bottom, the selected token's last stream on top.

    A dot is a token's stream after a step. Between two dots of one token the shortcut is grey and what its
    attention to itself or its feed-forward adds stands beside it.
    """
    colors = palette(mode)
    says, last = _stream(n_layers, position, labels), 2 * n_layers
    top = Node((last, position), position, last, "", colors.ink, says, size=14)
    nodes = {top.key: top}
    ways = {"attention": colors.output, "feed-forward": colors.positive, "shortcut": colors.quiet}
    drawn = []
    for row in edges.itertuples():
        above = 2 * row.block + (2 if row.into == "feed-forward" else 1)
        source, target = (above - 1, row.source), (above, row.target)
        for depth, at in (source, target):
            nodes.setdefault(
                (depth, at),
                Node((depth, at), at, depth, "", colors.quiet, _stream(n_layers, at, labels, depth), size=9),
            )
        color = ways[row.via]
        bow = 0.3 if source[1] == target[1] and row.via != "shortcut" else 0.0
        share = row.contribution
        drawn.append(Edge(source, target, share, share, color, _says(row, labels), bow=bow))
    rows = {0: "tokens"}
    for block in range(n_layers):
        rows |= {2 * block + 1: "attention", 2 * block + 2: f"after block {block}"}
    legend = [Line(name, color) for name, color in ways.items()]
    columns = dict(enumerate(labels))
    return token_graph(list(nodes.values()), drawn, columns, rows, position, legend, mode, row_height=30)


def _stream(n_layers: int, position: int, labels: Sequence[str], depth: int | None = None) -> str:
    where = f"{labels[position]} (position {position})"
    if depth is None or depth == 2 * n_layers:
        return f"the stream of {where} after the last block"
    if depth == 0:
        return f"the embedding of {where}"
    block, step = (depth - 1) // 2, "attention" if depth % 2 else "feed-forward"
    return f"the stream of {where} after block {block}'s {step}"


def _says(row: Any, labels: Sequence[str]) -> str:
    to = f"{labels[row.target]} (position {row.target})"
    share = weight(row.contribution)
    after = f"of the stream of {to}<br>after block {row.block}'s {row.into}"
    if row.via == "shortcut":
        return f"The shortcut is {share} {after}"
    if row.via == "feed-forward":
        return f"The feed-forward is {share} {after}"
    source = f"{labels[row.source]} (position {row.source})"
    best = "" if pd.isna(row.head) else f"<br>most of it by head {row.head}: {weight(row.head_contribution)}"
    return f"What the heads took from {source} is {share} {after}{best}"
