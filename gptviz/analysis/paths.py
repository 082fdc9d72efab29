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
from gptviz.analysis.attention import edited_weights
from gptviz.analysis.logit_attribution import logit
from gptviz.analysis.readings import Part, Reading
from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.tokenizer.one import MEAN, Against, OneToken

SITES = (*readings.SITES, "resid_post")

LEAST = 0.005  # of the word's parts: smaller edges are not looked for
HEADS = 8  # that write into the word, the largest, and are taken apart
EARLIER = 24  # that wrote what those read, the largest, and are taken apart once more
EDGES = 20  # that are kept of one reading

COLUMNS = (
    "edge", "parent", "level", "by", "part", "block", "head", "position",
    "to_block", "to_head", "to_position", "logits", "share", "exact",
)  # fmt: skip


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
            if row.level == 0:
                before = row.share
            else:
                before = narrowest[row.parent]
            narrowest[row.edge] = min(row.share, before)
        order = sorted(narrowest, key=lambda edge: (-narrowest[edge], edge))  # a parent before its children
        kept = [edge for edge in order if narrowest[edge] >= threshold][:most]
        return self.edges[self.edges["edge"].isin(kept)]


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
        if self.parent is None:
            return 0
        return self.parent.level + 1

    @property
    def exact(self) -> bool:
        return self.by not in ("Q", "K") and (self.parent is None or self.parent.exact)


@reads(*SITES, edited_weights)
def paths(
    lm: LanguageModel,
    t: Trace,
    token: OneToken,
    against: Against = MEAN,
    position: int = -1,
    least: float = LEAST,
) -> Paths:
    """The paths into a word's logit minus the mean, or minus another, with a share of at least `least`.

    Bounded: the `HEADS` largest heads are taken apart, of what they read the `EARLIER` largest heads, and of
    each reading the `EDGES` largest edges are kept. ValueError for a token or position that there is not.
    """
    position = t.place_of(position)
    word = readings.word_reading(t, lm.model, token, against, position)
    direct = readings.parts(t, lm.model, word)
    if any(edit.site == "final" for edit in t.edits):  # it put something else in place of them all: the rest
        direct[1][-1, position] += logit(t, token, against, position) - direct[1].sum()
    total = direct[1].sum().item()
    scale = direct[1][:, position].abs().sum().item()
    edges: list[_Edge] = []

    def grow(
        names: list[Part], found: torch.Tensor, parent: _Edge | None, by: str, reading: Reading, most: int
    ) -> list[_Edge]:
        """The `most` largest of these parts (P, n) as edges, the largest first; biases and rest are none."""
        sizes = found[:-2].abs()  # (P - 2, n)
        first = len(edges)
        for place in torch.sort(sizes.flatten(), descending=True).indices[:most].tolist():
            i, j = divmod(place, found.shape[1])
            if sizes[i, j] > 0 and sizes[i, j] >= least * scale:
                edges.append(_Edge(len(edges), parent, by, names[i], j, found[i, j].item(), reading))
        return edges[first:]

    def opened(edge: _Edge, by: str) -> list[_Edge]:
        """The edges that the head of this edge read, in one of the three ways."""
        assert edge.part.block is not None and edge.part.head is not None
        head = (edge.part.block, edge.part.head, edge.position)
        reading = readings.read_by(t, lm.model, edge.reading, *head, by)
        return grow(*readings.parts(t, lm.model, reading), edge, by, reading, EDGES)

    into = grow(*direct, None, "word", word, HEADS + EDGES)
    heads = [edge for edge in into if edge.part.kind == "head"][:HEADS]
    second = [edge for head in heads for by in readings.WAYS for edge in opened(head, by)]
    earlier = sorted((edge for edge in second if edge.part.kind == "head"), key=lambda e: -abs(e.logits))
    for edge in earlier[:EARLIER]:
        opened(edge, "V")
    return Paths(_table(edges, scale), total, scale)


def _table(edges: list[_Edge], scale: float) -> pd.DataFrame:
    rows = []
    for e in edges:
        top = e.parent
        to = (None, None, None) if top is None else (top.part.block, top.part.head, top.position)
        hangs = (e.number, None if top is None else top.number, e.level, e.by)
        what = (e.part.kind, e.part.block, e.part.head, e.position)
        rows.append((*hangs, *what, *to, e.logits, abs(e.logits) / scale, e.exact))
    whole = ("parent", "block", "head", "to_block", "to_head", "to_position")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(whole, "Int64"))
