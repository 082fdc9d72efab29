"""Paths from tokens to a word, through the heads and feed-forward layers that contributed to it.

The terms, as the code uses them:
- the word: the token whose logit after a position is to be explained;
- the stream: the residual stream, a sum of parts: the embedding, what every head and every feed-forward
  wrote, biases, and what rounding leaves (`gptviz.analysis.readings.Part`);
- a reading: a number that is linear in the stream, and so the sum of what each part gives it (`Reading`).
  The word's logit is one, with the final LayerNorm frozen; what a head gives to the word is one, too, of the
  stream before its block;
- a way: by what a head reads that stream: its values at every token it looked at (V, exact), its query or its
  keys (Q and K, to first order);
- an edge: one part at one position and what it gives to a reading, in logits of the word;
- a path: an edge, its parent (the edge of the head that read it), and so on, up to the word.

There are three levels of edges. Level 0 is what parts write straight to the word. Level 1 takes the largest
heads of level 0 apart: what they read, in all three ways. Level 2 takes the largest heads of level 1 apart,
by their values only. A feed-forward is not linear, so that a path that comes to one ends there. Logits count
from the mean of all logits, or from that of the token `against`.

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

# Bounds, so that a long text takes no longer than a short one and a table can be read.
# the smallest share of an edge, if the caller gives no other; smaller ones are left out
LEAST = 0.005
HEADS = 8  # at most so many heads of level 0 are taken apart, the largest ones
EARLIER = 24  # at most so many heads of level 1 are taken apart, the largest ones
EDGES = 20  # at most so many edges of one reading of level 1 or 2 are kept, the largest ones
# Of the word itself the HEADS + EDGES largest edges are kept, so that the HEADS largest heads are among them
# even if the embedding and all feed-forwards are larger. A model of more than 19 blocks has more of those
# than EDGES: then fewer heads may be found.

COLUMNS = (
    "edge", "parent", "level", "by", "part", "block", "head", "position",
    "to_block", "to_head", "to_position", "logits", "share", "exact",
)  # fmt: skip


@dataclass(frozen=True)
class Paths:
    """The edges that were found, and the total that their shares refer to.

    `edges` has a row per edge, a parent always before its children:
    - `edge`, its number from 0, and `parent`, the number of the edge whose head reads it (none at level 0);
    - `level` 0, 1 or 2, and `by`, how it is read: "word" at level 0, else "V", "Q" or "K";
    - what writes: `part` (a kind of `Part`), `block`, `head`, and the `position` where it does;
    - which head reads it: `to_block`, `to_head`, `to_position` (missing at level 0, where the word reads);
    - `logits`, what it gives to the word, and `share` = |logits| / `scale`;
    - `exact`: False if it, or an edge between it and the word, is read by Q or K, which is to first order.

    `total` is the word's logit minus the mean of all (or minus another's). `scale` is the sum of the sizes of
    all its direct parts, whatever their sign. The shares of level 0 add up to 1 at most: `scale` also counts
    biases and rest, which are no edges, and the parts that are too small to be kept.
    """

    edges: pd.DataFrame
    total: float
    scale: float

    def above(self, threshold: float, most: int | None = None) -> pd.DataFrame:
        """Return the edges all of whose path to the word has at least this share.

        With `most` at most so many of them: those whose path's smallest share is largest.
        """
        narrowest: dict[int, float] = {}  # edge -> the smallest share on its path to the word
        for row in self.edges.itertuples():  # a parent stands before its children
            if row.level == 0:
                narrowest[row.edge] = row.share
            else:
                narrowest[row.edge] = min(row.share, narrowest[row.parent])
        # a parent before its children
        order = sorted(narrowest, key=lambda edge: (-narrowest[edge], edge))
        chosen = [edge for edge in order if narrowest[edge] >= threshold][:most]
        return self.edges[self.edges["edge"].isin(chosen)]


@dataclass(frozen=True)
class _Edge:
    """An edge that was found; `reading` is what it gives `logits` to: its parent's head, or the word."""

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
        """Whether neither this edge nor any above it on the path is read by a query or by keys."""
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
    """Find the paths into a word's logit minus the mean, or minus that of `against`.

    The logit is that of `token` after `position`. An edge has a share of at least `least`. At most `HEADS`
    heads of level 0 and `EARLIER` heads of level 1 are taken apart, and at most `EDGES` edges are kept of
    each of their readings. Raises ValueError if the token or the position does not exist.
    """
    position = t.place_of(position)
    word = readings.word_reading(t, lm.model, token, against, position)
    parts, numbers = readings.parts(t, lm.model, word)  # numbers (P, n)
    if any(edit.site == "final" for edit in t.edits):
        # the edit put something else in place of the sum of all parts: the difference counts as rest
        numbers[readings.REST, position] += logit(t, token, against, position) - numbers.sum()
    total = numbers.sum().item()
    scale = numbers[:, position].abs().sum().item()
    edges: list[_Edge] = []

    def add_edges(
        parts: list[Part],
        numbers: torch.Tensor,
        parent: _Edge | None,
        by: str,
        reading: Reading,
        most: int,
    ) -> list[_Edge]:
        """Add the `most` largest numbers (P, n) of a reading as edges; return these, the largest first."""
        sizes = numbers[: readings.BIASES].abs()  # (P - 2, n): biases and rest are no edges
        first = len(edges)
        for place in torch.sort(sizes.flatten(), descending=True).indices[:most].tolist():
            i, j = divmod(place, numbers.shape[1])  # the part, and the position where it wrote
            if sizes[i, j] > 0 and sizes[i, j] >= least * scale:
                edges.append(
                    _Edge(len(edges), parent, by, parts[i], j, numbers[i, j].item(), reading)
                )
        return edges[first:]

    def take_apart(edge: _Edge, way: str) -> list[_Edge]:
        """Add edges of what the head of this edge read, in one of the three ways, and return them."""
        assert edge.part.block is not None and edge.part.head is not None
        head = (edge.part.block, edge.part.head, edge.position)
        reading = readings.read_by(t, lm.model, edge.reading, *head, way)
        return add_edges(*readings.parts(t, lm.model, reading), edge, way, reading, EDGES)

    level_0 = add_edges(parts, numbers, None, "word", word, HEADS + EDGES)
    heads = [edge for edge in level_0 if edge.part.kind == "head"][:HEADS]
    level_1 = [edge for head in heads for way in readings.WAYS for edge in take_apart(head, way)]
    earlier_heads = [edge for edge in level_1 if edge.part.kind == "head"]
    earlier_heads.sort(key=lambda edge: -abs(edge.logits))
    for edge in earlier_heads[:EARLIER]:
        take_apart(edge, "V")
    return Paths(_table(edges, scale), total, scale)


def _table(edges: list[_Edge], scale: float) -> pd.DataFrame:
    """The edges as `Paths.edges`."""
    rows = []
    for edge in edges:
        parent = edge.parent
        reader = (
            (None, None, None)
            if parent is None
            else (parent.part.block, parent.part.head, parent.position)
        )
        numbers = (edge.number, None if parent is None else parent.number, edge.level, edge.by)
        writer = (edge.part.kind, edge.part.block, edge.part.head, edge.position)
        rows.append((*numbers, *writer, *reader, edge.logits, abs(edge.logits) / scale, edge.exact))
    integer_columns = ("parent", "block", "head", "to_block", "to_head", "to_position")
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(integer_columns, "Int64"))
