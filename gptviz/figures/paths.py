"""The paths from tokens to the word, drawn: who wrote what the word read, and who wrote what those read."""

from collections.abc import Sequence

import pandas as pd

from gptviz.digits import significant
from gptviz.figures.theme import Figure, Mode, Palette, palette
from gptviz.figures.token_graph import Edge, Key, Line, Node, token_graph

WORD: Key = ("word",)

_READS = {"word": "to the word", "V": "by its values", "Q": "by its query", "K": "by its keys"}


def paths_graph(
    edges: pd.DataFrame, labels: Sequence[str], position: int, word: str, n_layers: int, mode: Mode
) -> Figure:
    """The edges of `Paths.above`, tokens at the bottom and the word on top; see `token_graph` for the curves.

    Edges between the same two places that are read in the same way are one, and their logits added. A dotted
    edge is a first-order number; a full one is exact.
    """
    colors, last = palette(mode), 2 * n_layers + 1
    nodes = {WORD: Node(WORD, position, last, word, colors.ink, f"the word: {word}", "square", 34)}
    found: dict[tuple[Key, Key, str, bool], list[float]] = {}
    for row in edges.itertuples():
        source = _node(row.part, row.block, row.head, row.position, labels, colors)
        nodes.setdefault(source.key, source)
        target = WORD if row.level == 0 else ("head", row.to_block, row.to_head, row.to_position)
        found.setdefault((source.key, target, row.by, row.exact), []).append(row.logits)
    scale = (edges["logits"].abs() / edges["share"]).max() if len(edges) else 1.0
    drawn = []
    for (source_key, target, by, exact), logits in found.items():
        value = sum(logits)
        bow = {"Q": -0.35, "K": 0.35}.get(by, 0.0)
        says = _says(nodes[source_key].says, nodes[target].says, by, exact, value)
        color = _color(by, colors)
        drawn.append(Edge(source_key, target, abs(value) / scale, value, color, says, solid=exact, bow=bow))
    rows = {0: "tokens", last: "the word"}
    for block in range(n_layers):
        rows |= {2 * block + 1: f"heads of {block}", 2 * block + 2: f"feed-forward of {block}"}
    ways = [("word", "to the word"), ("V", "value"), ("Q", "query, first order"), ("K", "key, first order")]
    used = {by for _, _, by, _ in found}
    legend = [Line(name, _color(by, colors), by in ("word", "V")) for by, name in ways if by in used]
    columns = dict(enumerate(labels))
    return token_graph(list(nodes.values()), drawn, columns, rows, position, legend, mode)


def _node(part: str, block: int, head: int, position: int, labels: Sequence[str], colors: Palette) -> Node:
    where = f"{labels[position]} (position {position})"
    if part == "embedding":
        key: Key = ("embedding", position)
        return Node(key, position, 0, "", colors.quiet, f"the token {where}", size=12)
    if part == "head":
        key = ("head", block, head, position)
        says = f"block {block}, head {head} at {where}"
        return Node(key, position, 2 * block + 1, f"{block}.{head}", colors.output, says)
    says = f"the feed-forward of block {block} at {where}"
    key = ("feed-forward", block, position)
    return Node(key, position, 2 * block + 2, f"{block}", colors.positive, says, "square", 26)


def _says(source: str, target: str, by: str, exact: bool, value: float) -> str:
    if by == "word":
        return f"{source} writes {significant(value)} logits<br>straight to the word"
    sure = "exact" if exact else "to first order"
    return f"{source} gives {significant(value)} logits<br>through {target}, {_READS[by]}; {sure}"


def _color(by: str, colors: Palette) -> str:
    return {"word": colors.output, "V": colors.value, "Q": colors.query, "K": colors.key}[by]
