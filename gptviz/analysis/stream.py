"""The residual stream, write by write: what attention and feed-forward add to each token's row of numbers.

Shapes: T tokens, D emb_dim, S = 2 * n_layers writes, in the order of the pass: block 0's attention, block 0's
feed-forward, block 1's attention, ... Sizes are Euclidean lengths. Everything is worked out in float64 on the
captured float32 values.

He et al., Deep Residual Learning for Image Recognition, 2015 (shortcuts); Elhage et al., A Mathematical
Framework for Transformer Circuits, 2021 (the stream as a sum of what is written); the book's sections 4.4
(shortcut connections) and 4.5 (the transformer block).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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

# what a write does to the stream it joins, by the cosine between them: from this on, along it or against it
# more than across (45 degrees), and up to this, as good as at right angles to it
ALONG = 0.5**0.5
ACROSS = 0.1

BROKEN = 1e-5, 0.01  # of the largest size: rounding leaves a hundredth of that, in float32 and in bfloat16

# The lines of TransformerBlock.forward, and what `x` is after each: a site, or a norm's output.
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
    """The effect of every write on every token's row.

    `sizes` (S + 1, T): the stream that each write joins, then the stream at the end: after a write it is as
    the next one finds it. `writes`, `cosines`, `turns` (S, T): each write's size, its cosine with the stream
    that it joins (0 where either has no length), and by how many degrees it turns the stream. `shares`
    (S + 1, T): of the stream at the end, measured along its own direction, what the embedding and each write
    gave; they sum to 1. `difference`: the largest |before + write - after| of all numbers, which is what
    rounding leaves, up to `rounding`.
    """

    sizes: Floats
    writes: Floats
    cosines: Floats
    turns: Floats
    shares: Floats
    difference: float
    rounding: float

    @property
    def ratios(self) -> Floats:
        """(S, T): each write's size in terms of the stream that it joins; infinite for a stream of zeros."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.writes / self.sizes[:-1]
        return np.where(self.writes == 0, 0.0, found)

    @property
    def is_broken(self) -> bool:
        """True where a change put something else into the stream itself: the writes do not sum to it."""
        return self.difference > self.rounding

    def most_changed(self, position: int) -> int:
        """The block whose two writes together turn this token's row the most."""
        turns = self.turns[:, position].reshape(-1, 2).sum(axis=1)  # (S,) -> (n_layers, 2) -> (n_layers,)
        return int(turns.argmax())


@reads(*SITES)
def stream(lm: LanguageModel, t: Trace) -> Stream:
    """Every write of every block to every token's row.

    In a trace with edits the writes may not sum to the stream any more: `difference` says so.
    """

    def at(key: tuple[str, int]) -> Floats:
        return t[key].numpy().astype(np.float64)  # (T, D)

    keys = _way(t.config.n_layers)
    end = at(keys[-1])
    square = np.einsum("td,td->t", end, end)
    sizes = []
    shares = [_share(at(keys[0]), end, square)]
    writes = []
    cosines = []
    turns = []
    difference = 0.0
    for s, (before, new) in enumerate(pairwise(map(at, keys))):
        write = at((WRITES[s % 2], s // 2))
        sizes.append(np.linalg.norm(before, axis=1))
        writes.append(np.linalg.norm(write, axis=1))
        cosines.append(cosine(write, before))
        turns.append(np.degrees(np.arccos(cosine(before, before + write, none=1.0))))
        shares.append(_share(write, end, square))
        difference = max(difference, float(np.abs(before + write - new).max()))
    sizes.append(np.linalg.norm(end, axis=1))
    rounding = BROKEN[lm.dtype != "float32"] * float(np.max(sizes))
    effects = np.array(writes), np.array(cosines), np.array(turns), np.array(shares)
    return Stream(np.array(sizes), *effects, difference, rounding)


def _way(layers: int) -> list[tuple[str, int]]:
    """Where the stream is looked at: as each write finds it, and at the end."""
    found = [(site, b) for b in range(layers) for site in ("resid_pre", "resid_mid")]
    return [*found, ("resid_post", layers - 1)]


def cosine(one: Floats, other: Floats, none: float = 0.0) -> Floats:
    """Row by row, (T, D) each -> (T,); `none` where a row has no length and so no direction."""
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    inner = np.einsum("...d,...d->...", one, other)
    found = np.divide(inner, lengths, out=np.full_like(inner, none), where=lengths > 0)
    return np.clip(found, -1, 1)


def _share(part: Floats, end: Floats, square: Floats) -> Floats:
    inner = np.einsum("td,td->t", part, end)
    return np.divide(inner, square, out=np.zeros_like(inner), where=square > 0)


@dataclass(frozen=True)
class Apart:
    """How far a changed run's stream is from the unchanged one's, where `Stream.sizes` looks at it.

    `distances` (S + 1, T): the length of their difference, in terms of the unchanged stream's (0 where both
    are zeros, infinite where that alone is). `angles` (S + 1, T): the degrees between the two (NaN where one
    alone is zeros, and so has no direction).
    """

    distances: Floats
    angles: Floats


@reads(*SITES)
def apart(trace: Trace, unchanged: Trace) -> Apart:
    """Two passes over the same tokens, with and without edits. Needs the stream's sites in both."""
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
    """The rows of `Stream.sizes` and `Stream.shares`: the embedding, then every write."""
    return ["embedding", *(f"block {b} · {part}" for b in range(layers) for part in PARTS)]


def does(cosine: float) -> str:
    """In a word or two what a write of this cosine does to the stream that it joins.

    It "adds" where it points along the stream more than across it (up to 45 degrees), "erases" where it
    points against it so; it "turns" the stream where it is as good as at right angles to it, and between
    these it does some of both.
    """
    if abs(cosine) <= ACROSS:
        return "turns"
    word = "adds" if cosine > 0 else "erases"
    if abs(cosine) >= ALONG:
        return word
    return f"turns, {word}"


def _columns(found: Stream) -> dict[str, Floats]:
    """Return the numbers of every step and token, (S + 1, T) each; NaN where the embedding has none."""
    empty = np.full((1, found.sizes.shape[1]), np.nan)
    return {
        "stream": np.concatenate([empty, found.sizes[:-1]]),
        "write": np.concatenate([found.sizes[:1], found.writes]),
        "ratio": np.concatenate([empty, found.ratios]),
        "cosine": np.concatenate([empty, found.cosines]),
        "along": np.concatenate([empty, found.writes * found.cosines]),
        "turn": np.concatenate([empty, found.turns]),
        "after": found.sizes,
        "share": found.shares,
    }


def ladder_table(found: Stream, position: int) -> pd.DataFrame:
    """Return one token's way, a row a write, the embedding first.

    Columns: step, stream (the size of what the write joins), write (its size), ratio, cosine, along (how much
    of the write points along the stream: negative, against it), does, turn (degrees), after (the size then),
    share (of the stream at the end). The embedding joins nothing: its cells are empty.
    """
    table = pd.DataFrame({name: values[:, position] for name, values in _columns(found).items()})
    table.insert(0, "step", step_names(len(table) // 2))
    table.insert(6, "does", ["", *map(does, found.cosines[:, position])])
    return table


def all_tokens_table(found: Stream, tokens: Sequence[str]) -> pd.DataFrame:
    """Return the map's numbers: a row a write and token, the embedding first.

    Columns: step, position, token, write, ratio, cosine, turn, after.
    """
    rows = pd.MultiIndex.from_product([step_names(len(found.writes) // 2), range(len(tokens))])
    table = pd.DataFrame({name: values.ravel() for name, values in _columns(found).items()}, rows)
    table = table.rename_axis(["step", "position"]).reset_index()
    table.insert(2, "token", [*tokens] * len(found.sizes))
    return table.drop(columns=["stream", "along", "share"])


@dataclass(frozen=True)
class Block:
    """One block at work on one token.

    `lines`: the lines of its forward, each with the size of `x` and of `shortcut` after it. `additions`:
    resid_pre + attn_out + mlp_out = resid_post, in the dimensions that it changes most. `without`:
    for each shortcut, what would go on without it (the part's write alone): its size and its cosine with what
    does go on. `share`: what all before this block
    gave of the stream behind it, along that stream's own direction.
    """

    lines: pd.DataFrame
    additions: pd.DataFrame
    difference: float
    without: tuple[tuple[float, float, float], tuple[float, float, float]]
    share: float


@reads(*SITES)
def block_at_work(lm: LanguageModel, t: Trace, block: int, position: int, most: int = 4) -> Block:
    """One block at work on one token. `without` is (size alone, size with the shortcut, cosine)."""
    rows = {site: t[site, block][position].numpy().astype(np.float64) for site in SITES}
    for norm in ("norm1", "norm2"):
        rows[norm] = inside(lm, t, f"block {block} · {norm}", position).after
    size = {name: float(np.linalg.norm(row)) for name, row in rows.items()}
    lines = []
    shortcut = 0.0
    for line, name in BLOCK_LINES:
        if line == "shortcut = x":
            shortcut = size[name]
        lines.append((line, size[name], shortcut))

    change = np.abs(rows["attn_out"] + rows["mlp_out"])
    largest = np.argsort(-change, kind="stable")[:most]
    summed = ("resid_pre", "attn_out", "mlp_out", "resid_post")
    signs = ("", "+ ", "+ ", "= ")
    columns = {f"{sign}{site}": rows[site][largest] for sign, site in zip(signs, summed, strict=True)}
    gaps = rows["resid_pre"] + rows["attn_out"] + rows["mlp_out"] - rows["resid_post"]

    def alone(write: str, whole: str) -> tuple[float, float, float]:
        return size[write], size[whole], float(cosine(rows[write], rows[whole]))

    square = size["resid_post"] ** 2
    return Block(
        lines=pd.DataFrame(lines, columns=["line", "size of x", "size of shortcut"]),
        additions=pd.DataFrame({"dimension": largest} | columns),
        difference=float(np.abs(gaps).max()),
        without=(alone("attn_out", "resid_mid"), alone("mlp_out", "resid_post")),
        share=float(rows["resid_pre"] @ rows["resid_post"]) / square if square else 0.0,
    )
