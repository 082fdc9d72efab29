"""Paths: from tokens to the word, through the heads and feed-forwards that wrote what the word reads.

Three levels, of which two take heads apart. The word reads the last stream: what each head and feed-forward
at this position puts into it is its direct part. A head's part is taken apart in turn by what it read:
by its values at every token it looked at (V, exact), by its query and by its keys (Q and K, to first order).
What another head wrote of that is taken apart once more, by its values. A feed-forward is not linear: a path
ends there. Every number is in logits of the word, against the mean of all or another (`against`); see
`gptviz.analysis.readings` for what is frozen.

Elhage et al., A Mathematical Framework for Transformer Circuits, 2021 (Q-, K- and V-composition).
"""

from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.analysis import readings
from gptviz.analysis.against import MEAN, Against
from gptviz.analysis.logit_attribution import position_of
from gptviz.analysis.readings import Part, Reading
from gptviz.engine.trace import Trace
from gptviz.model import GPTModel
from gptviz.tokenizer.one import OneToken

SITES = (*readings.SITES, "resid_post")

LEAST = 0.005  # of the word's parts: smaller edges are not looked for
HEADS = 8  # that write into the word, the largest, and are taken apart
EARLIER = 24  # that wrote what those read, the largest, and are taken apart once more
EDGES = 20  # that are kept of one reading

COLUMNS = (
    "edge", "parent", "level", "by", "part", "block", "head", "position",
    "to_block", "to_head", "to_position", "logits", "share", "exact",
)  # fmt: skip

_BY = {"V": readings.by_value, "Q": readings.by_query, "K": readings.by_key}


@dataclass(frozen=True)
class Paths:
    """The edges, and what they are shares of.

    `edges` has a row an edge: `edge` its number and `parent` the edge below whose head it hangs, `level` 0
    (into the word), 1 or 2, `by` ("word", "V", "Q", "K"), what writes (`part`, `block`, `head`, at
    `position`), the head that reads it (`to_*`, missing for the word), `logits`, `share` = |logits| /
    `scale`, and whether it is `exact`: true for V all the way. `total` is the word's logit
    minus the mean (or minus another's), `scale` the sum of the sizes of its direct parts.
    """

    edges: pd.DataFrame
    total: float
    scale: float

    def above(self, threshold: float, most: int | None = None) -> pd.DataFrame:
        """The edges of at least this share whose way to the word is above it as well; at most `most` of them,
        the largest by the smallest share on that way."""
        narrowest: dict[int, float] = {}  # edge -> the smallest share on its way to the word
        for row in self.edges.itertuples():  # a parent stands before its children
            before = row.share if row.level == 0 else narrowest[row.parent]
            narrowest[row.edge] = min(row.share, before)
        order = sorted(narrowest, key=lambda edge: (-narrowest[edge], edge))  # a parent before its children
        kept = [edge for edge in order if narrowest[edge] >= threshold][:most]
        return self.edges[self.edges["edge"].isin(kept)]


def composition(
    trace: Trace,
    model: GPTModel,
    block: int,
    head: int,
    token: OneToken,
    against: Against = MEAN,
    position: int = -1,
) -> pd.DataFrame:
    """What wrote what one head reads for the word: a row for each V, Q and K, part and position.

    Columns: by, part, block, head, position, logits. The V rows sum to the head's share in
    `attribution`, the Q and the K rows each to sum over j of d part / d score_j * score_j: first
    order, what the scores make of the part. Needs `SITES`. ValueError for what does not exist.
    """
    config = trace.config
    if not 0 <= block < config.n_layers or not 0 <= head < config.n_heads:
        raise ValueError(
            f"there is no head {head} of block {block}; {trace.name} has blocks 0 to {config.n_layers - 1} "
            f"with heads 0 to {config.n_heads - 1}"
        )
    position = position_of(trace, position)
    word = readings.word_reading(trace, model, token, against, position)
    tables = []
    for by, taken in _BY.items():
        names, found = readings.parts(trace, model, taken(trace, model, word, block, head, position))
        where = range(position, position + 1) if by == "Q" else range(position + 1)
        tables += [
            (by, part.kind, part.block, part.head, j, found[i, j].item())
            for j in where
            for i, part in enumerate(names)
        ]
    columns = ["by", "part", "block", "head", "position", "logits"]
    return pd.DataFrame(tables, columns=columns).astype({"block": "Int64", "head": "Int64"})


def paths(
    trace: Trace,
    model: GPTModel,
    token: OneToken,
    against: Against = MEAN,
    position: int = -1,
    least: float = LEAST,
) -> Paths:
    """The paths into a word's logit minus the mean, or minus another, with a share of at least `least`.

    Bounded: the `HEADS` largest heads are taken apart, of what they read the `EARLIER` largest heads, and of
    each reading the `EDGES` largest edges are kept. Needs `SITES` of the trace, and `attn` as well of a pass
    with edits. ValueError for a token or a position that does not exist.
    """
    position = position_of(trace, position)
    word = readings.word_reading(trace, model, token, against, position)
    names, found = readings.parts(trace, model, word)
    total, scale = found.sum().item(), found[:, position].abs().sum().item()
    grown = _Grown(trace, model, scale, least)
    direct = grown.add(names, found, None, "word", word, most=HEADS + EDGES)
    first = [e for e in direct if e.part.kind == "head"][:HEADS]
    second = [e for top in first for by in ("V", "Q", "K") for e in grown.open(top, by)]
    earlier = sorted((e for e in second if e.part.kind == "head"), key=lambda e: -abs(e.logits))
    for edge in earlier[:EARLIER]:
        grown.open(edge, "V")
    return Paths(grown.table(), total, scale)


@dataclass(frozen=True)
class _Edge:
    """An edge that was found, and the reading that it is a part of."""

    number: int
    parent: "_Edge | None"
    by: str
    part: Part
    position: int
    logits: float
    reading: Reading

    @property
    def level(self) -> int:
        return 0 if self.parent is None else self.parent.level + 1

    @property
    def exact(self) -> bool:
        return self.by not in ("Q", "K") and (self.parent is None or self.parent.exact)


class _Grown:
    """The edges that were found so far."""

    def __init__(self, trace: Trace, model: GPTModel, scale: float, least: float):
        self.trace, self.model, self.scale, self.least = trace, model, scale, least
        self.edges: list[_Edge] = []

    def open(self, edge: _Edge, by: str) -> list[_Edge]:
        """What the head of this edge read, in one of the three ways."""
        assert edge.part.block is not None and edge.part.head is not None
        head = (edge.part.block, edge.part.head, edge.position)
        reading = _BY[by](self.trace, self.model, edge.reading, *head)
        names, found = readings.parts(self.trace, self.model, reading)
        return self.add(names, found, edge, by, reading, EDGES)

    def add(
        self,
        names: list[Part],
        found: torch.Tensor,
        parent: _Edge | None,
        by: str,
        reading: Reading,
        most: int,
    ) -> list[_Edge]:
        """The `most` largest of these parts (P, n) as edges, the largest first; biases and rest are none."""
        sizes = found[:-2].abs()  # (P - 2, n)
        order = torch.sort(sizes.flatten(), descending=True).indices[:most].tolist()
        n = found.shape[1]
        made: list[_Edge] = []
        for i, j in (divmod(place, n) for place in order):
            logits = found[i, j].item()
            if abs(logits) > 0 and abs(logits) >= self.least * self.scale:
                made.append(_Edge(len(self.edges) + len(made), parent, by, names[i], j, logits, reading))
        self.edges += made
        return made

    def table(self) -> pd.DataFrame:
        rows = []
        for e in self.edges:
            top = e.parent
            to = (None, None, None) if top is None else (top.part.block, top.part.head, top.position)
            what = (e.part.kind, e.part.block, e.part.head, e.position)
            parent = None if top is None else top.number
            share = abs(e.logits) / self.scale
            rows.append((e.number, parent, e.level, e.by, *what, *to, e.logits, share, e.exact))
        whole = ("parent", "block", "head", "to_block", "to_head", "to_position")
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(whole, "Int64"))
