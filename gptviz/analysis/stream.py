"""The residual stream: what each attention and each feed-forward layer adds to a token's numbers.

The residual stream is the (T, D) tensor that runs through all blocks. Each block adds to it twice, through
the book's shortcut connections: the output of its attention, and the output of its feed-forward. Here such an
addition is called a "write".

Shapes: T tokens, D emb_dim, S = 2 * n_layers writes, in the order of the pass: block 0's attention, block 0's
feed-forward, block 1's attention, ... Sizes are Euclidean lengths. Numbers are computed in float64 from the
pass's float32.

He et al., Deep Residual Learning for Image Recognition, 2015 (shortcuts); Elhage et al., A Mathematical
Framework for Transformer Circuits, 2021 (the stream as a sum of what is written); the book's sections 4.4
(shortcut connections) and 4.5 (the transformer block).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.norms import inside
from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace

Floats = NDArray[np.float64]

SITES = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")

WRITES = ("attn_out", "mlp_out")
PARTS = ("attention", "feed-forward")

# Limits of the cosine between a write and the stream that it is added to, see `does`: from ALONG on, the
# angle between them (or between it and the opposite direction) is at most 45 degrees; up to ACROSS it is
# close to 90.
ALONG = 0.5**0.5
ACROSS = 0.1

# The writes do not sum to the stream if they miss it by more than this part of its largest size: in a model
# of float32, and in one of bfloat16. Rounding alone misses it by a hundredth of that.
BROKEN_FLOAT32 = 1e-5
BROKEN_BFLOAT16 = 0.01

# The lines of TransformerBlock.forward, and what `x` is after each: a site, or a norm's output. Those of a
# module that a block does not have are not its own.
BLOCK_LINES = (
    ("shortcut = x", "resid_pre"),
    ("x = self.norm1(x)", "norm1"),
    ("x = self.att(x)", "attn_out"),
    ("x = self.drop_shortcut(x)", "attn_out"),
    ("x = x + shortcut", "resid_mid"),
    ("shortcut = x", "resid_mid"),
    ("x = self.norm2(x)", "norm2"),
    ("x = self.ff(x)", "mlp_out"),
    ("x = self.drop_shortcut(x)", "mlp_out"),
    ("x = x + shortcut", "resid_post"),
)


@dataclass(frozen=True)
class Stream:
    """The effect of every contribution on the residual stream of every token.

    The share of a write is its dot product with the stream at the end, divided by the squared size of that:
    how much of the stream at the end it makes up, in that stream's own direction.
    """

    sizes: Floats  # (S + 1, T) the size of the stream before each write, and at the end
    writes: Floats  # (S, T) the size of each write
    cosines: Floats  # (S, T) its cosine with the stream before it; 0 if either is all zeros
    turns: Floats  # (S, T) by how many degrees it turns the direction of the stream
    shares: Floats  # (S + 1, T) of the embedding, then of each write; they sum to 1
    difference: float  # the largest |before + write - after| of all numbers
    rounding: float  # the difference that rounding may make

    @property
    def ratios(self) -> Floats:
        """Each contribution's norm divided by that of the stream before it, (S, T); infinite if that is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = self.writes / self.sizes[:-1]
        return np.where(self.writes == 0, 0.0, relative)

    @property
    def is_broken(self) -> bool:
        """Whether the contributions do not sum to the stream, because an edit put something else into it."""
        return self.difference > self.rounding

    def most_changed(self, position: int) -> int:
        """The block whose two contributions turn the stream of the token at `position` the most."""
        # (S,) -> (n_layers, 2) -> (n_layers,)
        turns = self.turns[:, position].reshape(-1, 2).sum(axis=1)
        return int(turns.argmax())


@reads(*SITES)
def stream(lm: LanguageModel, t: Trace) -> Stream:
    """Measure every contribution of every block at every token.

    In a trace with edits, the writes may not sum to the stream: see `Stream.is_broken`.
    """

    def rows_of(key: tuple[str, int]) -> Floats:
        return t[key].numpy().astype(np.float64)  # (T, D)

    keys = _way(t.config.n_layers)
    end = rows_of(keys[-1])
    square = np.einsum("td,td->t", end, end)  # (T, D) -> (T,)
    sizes = []
    shares = [_share(rows_of(keys[0]), end, square)]
    writes = []
    cosines = []
    turns = []
    difference = 0.0
    for s, (before, new) in enumerate(pairwise(map(rows_of, keys))):
        write = rows_of((WRITES[s % 2], s // 2))
        sizes.append(np.linalg.norm(before, axis=1))
        writes.append(np.linalg.norm(write, axis=1))
        cosines.append(cosine(write, before))
        turns.append(np.degrees(np.arccos(cosine(before, before + write, none=1.0))))
        shares.append(_share(write, end, square))
        difference = max(difference, float(np.abs(before + write - new).max()))
    sizes.append(np.linalg.norm(end, axis=1))
    if lm.dtype == "float32":
        rounding = BROKEN_FLOAT32 * float(np.max(sizes))
    else:
        rounding = BROKEN_BFLOAT16 * float(np.max(sizes))
    effects = np.array(writes), np.array(cosines), np.array(turns), np.array(shares)
    return Stream(np.array(sizes), *effects, difference, rounding)


def _way(layers: int) -> list[tuple[str, int]]:
    """The keys (site, block) of the stream before each write, and at the end: S + 1 of them."""
    keys = [(site, b) for b in range(layers) for site in ("resid_pre", "resid_mid")]
    return [*keys, ("resid_post", layers - 1)]


def cosine(one: Floats, other: Floats, none: float = 0.0) -> Floats:
    """The cosine of each pair of rows, (..., D) each -> (...); `none` if one of them is all zeros."""
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    inner = np.einsum("...d,...d->...", one, other)  # (..., D) -> (...)
    cosines = np.divide(inner, lengths, out=np.full_like(inner, none), where=lengths > 0)
    return np.clip(cosines, -1, 1)


def _share(part: Floats, end: Floats, square: Floats) -> Floats:
    """The share (T,) of a write `part` in the stream at the end, `end`, (T, D) each; `square` is |end|²."""
    inner = np.einsum("td,td->t", part, end)  # (T, D) -> (T,)
    return np.divide(inner, square, out=np.zeros_like(inner), where=square > 0)


@dataclass(frozen=True)
class Way:
    """The residual stream of one token as vectors, from the corner (all zeros) to its end."""

    stops: Floats  # (S + 1, D) the stream before each write, and at the end
    tips: Floats  # (S, D) the stream before each write and the write, added: the next stop, without edits


@reads(*SITES)
def way(lm: LanguageModel, t: Trace, position: int) -> Way:
    """Follow the stream of the token at `position` from write to write."""

    def row_of(key: tuple[str, int]) -> Floats:
        return t[key][position].numpy().astype(np.float64)  # (D,)

    stops = np.array([row_of(key) for key in _way(t.config.n_layers)])
    writes = np.array([row_of((WRITES[s % 2], s // 2)) for s in range(len(stops) - 1)])
    return Way(stops, stops[:-1] + writes)


def half_plane(rows: Floats, end: Floats) -> Floats:
    """Where vectors lie beside the axis through `end`: how far along it, and how far from it.

    (..., D) and (D,) -> (..., 2). A row's norm is its distance from the corner (0, 0), and the angle
    between it and `end` is the angle at the corner. Where `end` is all zeros there is no axis: then nothing lies
    along it, and all of a row's norm is distance.
    """
    size = np.linalg.norm(end)
    axis = np.divide(end, size, out=np.zeros_like(end), where=size > 0)
    along = rows @ axis  # (..., D) -> (...)
    away = np.linalg.norm(rows - along[..., None] * axis, axis=-1)
    return np.stack([along, away], axis=-1)


def path_table(found: Way, end: Floats) -> pd.DataFrame:
    """A table of the stream's stops beside the axis through `end`: after the embedding, after each write.

    Columns: step, along, away, norm, degrees (the angle to the axis; NaN where there is none).
    """
    places = half_plane(found.stops, end)
    along, away = places.T
    norms = np.hypot(along, away)
    degrees = np.degrees(np.arctan2(away, along))
    degrees[norms == 0] = np.nan
    if not end.any():
        degrees[:] = np.nan
    columns = {"along": along, "away": away, "norm": norms, "degrees": degrees}
    return pd.DataFrame({"step": step_names(len(found.tips) // 2)} | columns)


@reads(*SITES)
def path(lm: LanguageModel, t: Trace, position: int) -> pd.DataFrame:
    """The table of one token's path beside the axis through its own end: see `path_table`."""
    found = way(lm, t, position)
    return path_table(found, found.stops[-1])


@dataclass(frozen=True)
class Apart:
    """How far the residual stream of a pass with edits is from that of the unchanged pass.

    The S + 1 rows are the places of `Stream.sizes`: before each write, and at the end.
    """

    # (S + 1, T) the size of the difference divided by that of the unchanged stream: 0 if both are all zeros,
    # infinite if only the unchanged one is
    distances: Floats
    # (S + 1, T) degrees between the two; NaN if only one of them is all zeros
    angles: Floats


@reads(*SITES)
def apart(trace: Trace, unchanged: Trace) -> Apart:
    """Compare the streams of two passes on the same tokens, with and without edits.

    Both traces must hold resid_pre and resid_mid of every block and resid_post of the last.
    """
    distances = []
    angles = []
    for key in _way(trace.config.n_layers):
        new, old = (t[key].numpy().astype(np.float64) for t in (trace, unchanged))  # (T, D)
        gap = np.linalg.norm(new - old, axis=1)
        size = np.linalg.norm(old, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances.append(np.where(gap == 0, 0.0, gap / size))
        angles.append(np.where(gap == 0, 0.0, np.degrees(np.arccos(cosine(new, old, none=np.nan)))))
    return Apart(np.array(distances), np.array(angles))


def step_names(layers: int) -> list[str]:
    """The names of the S + 1 rows of `Stream.shares`: the embedding, then every contribution."""
    return ["embedding", *(f"block {b} · {part}" for b in range(layers) for part in PARTS)]


def does(cosine: float) -> str:
    """A word or two for what a contribution does to the stream, by its cosine with the stream before it.

    "adds" if it is within 45 degrees of the stream's direction, "erases" if it is within 45 degrees of the
    opposite one, "turns" if it is nearly at right angles, and "turns, adds" or "turns, erases" in between.
    """
    if abs(cosine) <= ACROSS:
        return "turns"
    word = "adds" if cosine > 0 else "erases"
    if abs(cosine) >= ALONG:
        return word
    return f"turns, {word}"


def _columns(stream: Stream) -> dict[str, Floats]:
    """The columns of the tables, (S + 1, T) each: the embedding, NaN where it has no number, then writes."""
    empty = np.full((1, stream.sizes.shape[1]), np.nan)
    # (1, T) and (S, T) -> (S + 1, T) each
    return {
        "stream": np.concatenate([empty, stream.sizes[:-1]]),
        "write": np.concatenate([stream.sizes[:1], stream.writes]),
        "ratio": np.concatenate([empty, stream.ratios]),
        "cosine": np.concatenate([empty, stream.cosines]),
        "along": np.concatenate([empty, stream.writes * stream.cosines]),
        "turn": np.concatenate([empty, stream.turns]),
        "after": stream.sizes,
        "share": stream.shares,
    }


def ladder_table(found: Stream, position: int) -> pd.DataFrame:
    """A table of all contributions at one token, with a row for the embedding and then one for each.

    Columns: step, stream (the size of the stream before the write), write (its size), ratio (write / stream),
    cosine, along (write * cosine: its length in the stream's direction, negative if against it), does, turn
    (degrees), after (the size of the stream after it), share (of the stream at the end). The embedding is
    added to nothing, so some of its cells are empty.
    """
    table = pd.DataFrame({name: values[:, position] for name, values in _columns(found).items()})
    table.insert(0, "step", step_names(len(table) // 2))
    table.insert(6, "does", ["", *map(does, found.cosines[:, position])])
    return table


def all_tokens_table(found: Stream, tokens: Sequence[str]) -> pd.DataFrame:
    """A table of all contributions at all tokens, one row per contribution and token, the embedding first.

    Columns: step, position, token, write, ratio, cosine, turn, after.
    """
    rows = pd.MultiIndex.from_product([step_names(len(found.writes) // 2), range(len(tokens))])
    table = pd.DataFrame({name: values.ravel() for name, values in _columns(found).items()}, rows)
    table = table.rename_axis(["step", "position"]).reset_index()
    table.insert(2, "token", [*tokens] * len(found.sizes))
    return table.drop(columns=["stream", "along", "share"])


@dataclass(frozen=True)
class Block:
    """What one block does to the residual stream of one token."""

    # each line of the block's forward, with the sizes of `x` and `shortcut` after it
    lines: pd.DataFrame
    # resid_pre + attn_out + mlp_out = resid_post, where the block changes most
    additions: pd.DataFrame
    difference: float  # the largest absolute difference between the two sides of that sum
    # For each of the two shortcut connections: the size of the write, which is all that would go on without
    # the shortcut; the size of the stream with the shortcut; the cosine of the two.
    without: tuple[tuple[float, float, float], tuple[float, float, float]]
    share: float  # the share of the block's input in its output, as in `Stream`


@reads(*SITES)
def block_at_work(lm: LanguageModel, t: Trace, block: int, position: int, most: int = 4) -> Block:
    """Measure what a block does to the stream of one token; `additions` has the `most` changed dimensions."""
    rows = {site: t[site, block][position].numpy().astype(np.float64) for site in SITES}
    for norm in ("norm1", "norm2"):
        rows[norm] = inside(lm, t, f"block {block} · {norm}", position).after
    size = {name: float(np.linalg.norm(row)) for name, row in rows.items()}
    lines = []
    shortcut = 0.0
    modules: Any = lm.model.trf_blocks[block]
    for line, name in BLOCK_LINES:
        if "drop_shortcut" in line and "drop_shortcut" not in modules._modules:
            continue
        if line == "shortcut = x":
            shortcut = size[name]
        lines.append((line, size[name], shortcut))

    change = np.abs(rows["attn_out"] + rows["mlp_out"])
    largest = np.argsort(-change, kind="stable")[:most]
    summed = ("resid_pre", "attn_out", "mlp_out", "resid_post")
    signs = ("", "+ ", "+ ", "= ")
    columns = {
        f"{sign}{site}": rows[site][largest] for sign, site in zip(signs, summed, strict=True)
    }
    gaps = rows["resid_pre"] + rows["attn_out"] + rows["mlp_out"] - rows["resid_post"]

    def alone(write: str, joined: str) -> tuple[float, float, float]:
        return size[write], size[joined], float(cosine(rows[write], rows[joined]))

    square = size["resid_post"] ** 2
    return Block(
        lines=pd.DataFrame(lines, columns=["line", "size of x", "size of shortcut"]),
        additions=pd.DataFrame({"dimension": largest} | columns),
        difference=float(np.abs(gaps).max()),
        without=(alone("attn_out", "resid_mid"), alone("mlp_out", "resid_post")),
        share=float(rows["resid_pre"] @ rows["resid_post"]) / square if square else 0.0,
    )
