"""The input of the first block: a token's vector plus a position's vector.

Shapes: T tokens of the prompt, D emb_dim, V vocabulary, C context_length. Everything comes back as
float32 NumPy arrays or DataFrames; nothing is rounded here.

The book's sections 2.7 (token embeddings) and 2.8 (encoding word positions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from gptviz.analysis.against import double
from gptviz.analysis.reads import reads
from gptviz.analysis.stream import cosine
from gptviz.digits import fixed
from gptviz.engine.index import check_below, one_of, whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import HasConfig, embedded, start
from gptviz.engine.tokens import Token
from gptviz.engine.trace import Trace

Rows = NDArray[np.float32]
Measure = Literal["cosine", "dot"]

PARTS = ("token", "position", "sum")
"""The three rows of the addition, in its order: token + position = sum."""


SITES = ("tok_emb", "pos_emb", "embed")


def sites(lm: HasConfig, *_: object) -> tuple[str, ...]:
    """The sites that `embedding_rows` reads: `SITES`, or "tok_emb" alone where nothing is added to it."""
    return tuple(dict.fromkeys((*embedded(lm), *start(lm))))


@reads(sites)
def embedding_rows(lm: LanguageModel, t: Trace) -> Rows:
    """Token embedding, position embedding, and what enters the first block: (3, T, D).

    Part 2 is the captured input of the first dropout, not an addition done here. Of a model that adds no
    vector for a position the token embedding is what enters the first block: (1, T, D).
    """
    return np.stack([t[site].numpy() for site in sites(lm)])  # 3 or 1 of (T, D) -> (3 or 1, T, D)


@reads(sites)
def rows_scale(lm: LanguageModel, t: Trace) -> "Scale":
    """The range of colours that all vectors of all tokens share: see `shared_scale`."""
    return shared_scale(embedding_rows(lm, t))


@reads(sites)
def lengths_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """One row per token: the norms of its three vectors, and the cosine of two of them.

    Columns: position, token, token_norm, position_norm, sum_norm, cosine (between the token's and the
    position's vector; 0 means at right angles, then sum_norm² = token_norm² + position_norm²). Of a model that
    adds no vectors for positions there are only the first three.
    """
    parts = embedding_rows(lm, t).astype(np.float64)
    norms = np.linalg.norm(parts, axis=-1)  # (3 or 1, T)
    table = pd.DataFrame(
        [(token.position, token.shown) for token in t.tokens], columns=["position", "token"]
    )
    lengths = {f"{part}_norm": row for part, row in zip(PARTS, norms, strict=False)}
    table = table.assign(**lengths)
    if len(parts) == 1:
        return table
    return table.assign(cosine=cosine(parts[0], parts[1]))


@dataclass(frozen=True)
class Scale:
    """The range of colours that several pictures share: -limit to +limit, and what lies outside."""

    limit: float
    largest: float  # the largest magnitude there is
    outside: int  # how many values are beyond the limit, and so painted in the last colour
    count: int


def shared_scale(values: NDArray[np.floating], share: float = 0.98) -> Scale:
    """A symmetric range that holds at least `share` of the values: outliers do not wash out the colours.

    If the largest magnitude is less than 1.25 times that, the range holds everything. A range is never
    empty: for values that are all zero it is -1 to 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0 and at most 1")
    magnitudes = np.abs(values).ravel()
    if magnitudes.size == 0:
        raise ValueError("there are no values to make a scale for")
    largest = float(magnitudes.max())
    limit = float(np.quantile(magnitudes, share, method="higher"))
    if largest < 1.25 * limit or limit == 0:
        limit = largest
    return Scale(limit or 1.0, largest, int((magnitudes > limit).sum()), magnitudes.size)


def nearest_tokens(
    matrix: Tensor, token_id: int, k: int = 10, measure: Measure = "cosine"
) -> pd.DataFrame:
    """The k other rows of a (V, D) embedding matrix that are most similar to row `token_id`, best first.

    Columns: rank (from 1), id, cosine, dot; ordered by `measure`, the lower id first among equals. A row
    of zeros has cosine 0 with everything. Raises ValueError for an id outside the matrix, an
    unknown measure and k below 1.
    """
    check_below("token id", token_id, len(matrix))
    one_of("measure", measure, get_args(Measure))
    whole("k", k, 1)
    weight = matrix.detach().float().cpu()
    dot = weight @ weight[token_id]  # (V,)
    lengths = weight.norm(dim=1) * weight[token_id].norm()
    cosine = torch.where(lengths > 0, dot / lengths.clamp_min(torch.finfo(torch.float32).tiny), 0.0)
    order = torch.argsort(cosine if measure == "cosine" else dot, descending=True, stable=True)
    best = order[order != token_id][:k]  # itself is always its own nearest: no news
    return pd.DataFrame(
        {
            "rank": range(1, len(best) + 1),
            "id": best.numpy(),
            "cosine": cosine[best].numpy(),
            "dot": dot[best].numpy(),
        }
    )


def position_similarity(matrix: Tensor, positions: Sequence[int] | None = None) -> Rows:
    """The cosine of each of n learned positions with every other, for a (C, D) position matrix: (n, C).

    Without `positions` it is all of them: (C, C), symmetric, with 1 on the diagonal. 0 where a row is all
    zeros. All of 32,768 positions are 4 GiB: name those that are shown.
    """
    unit = F.normalize(double(matrix), dim=1, eps=1e-300)
    if positions is None:
        chosen = unit
    else:
        chosen = unit[list(positions)]
    return (chosen @ unit.T).clamp(-1, 1).float().numpy()


def largest_dimension(parts: Rows, position: int) -> int:
    """The dimension in which the sum of a token is farthest from zero: the one to look at first."""
    return int(np.abs(parts[-1, position]).argmax())


def window_around(dimension: int, size: int, width: int = 5) -> range:
    """`width` neighbouring dimensions with `dimension` in the middle, or as near to it as the edge allows."""
    width = min(width, size)
    start = min(max(dimension - width // 2, 0), size - width)
    return range(start, start + width)


def spread(count: int, most: int = 256) -> range:
    """At most `most` of `count` positions, evenly spread from the first."""
    return range(0, count, -(-count // most))


def similarity_apart(matrix: Tensor, distance: int) -> float:
    """The mean cosine of all pairs of positions that are `distance` apart, for a (C, D) position matrix."""
    count = len(matrix)
    check_below("distance", distance, count)
    unit = F.normalize(double(matrix), dim=1, eps=1e-300)
    return float((unit[distance:] * unit[: count - distance]).sum(dim=1).mean())


def best_by_chance(rows: int, dimensions: int) -> float:
    """The median, over random rows, of the cosine with the nearest of `rows` other random rows.

    The angle to a random direction in d dimensions has a density in proportion to sin^(d - 2).
    """
    angles = np.linspace(0, np.pi / 2, 10_001)
    density = np.sin(angles) ** max(dimensions - 2, 0)
    # the share of random rows at this angle or less
    nearer = np.cumsum(density) / (2 * density.sum())
    return float(np.cos(np.interp(1 - 0.5 ** (1 / max(rows, 1)), nearer, angles)))


def same_token_elsewhere(tokens: Sequence[Token], position: int) -> list[int]:
    """The other positions of the prompt that have the same token as `position`."""
    token_id = tokens[position].id
    return [
        other.position for other in tokens if other.id == token_id and other.position != position
    ]


def row_table(parts: Rows, position: int) -> pd.DataFrame:
    """The vectors of one token, one row per dimension: dimension, token, position, sum; or only its own."""
    rows = dict(zip(PARTS, parts[:, position], strict=False))
    return pd.DataFrame({"dimension": range(parts.shape[2]), **rows})


@dataclass(frozen=True)
class Addition:
    """One cell of the picture: token + position = sum, at one dimension of one token."""

    token: float
    position: float
    sum: float
    decimals: int

    def written(self) -> tuple[str, str, str]:
        """The three numbers with as many decimals as it takes for the digits on the screen to add up."""
        a, b, c = (fixed(value, self.decimals) for value in (self.token, self.position, self.sum))
        return a, b, c


def addition(parts: Rows, position: int, dimension: int) -> Addition:
    """The addition at one token and dimension of `embedding_rows`, from (3, T, D).

    Raises ValueError for a position or a dimension that does not exist.
    """
    _, tokens, dimensions = parts.shape
    cell = (
        check_below("position", position, tokens),
        check_below("dimension", dimension, dimensions),
    )
    token, place, total = (float(value) for value in parts[:, *cell])
    return Addition(token, place, total, _decimals_that_add_up(token, place, total))


def _decimals_that_add_up(a: float, b: float, c: float) -> int:
    """The number of decimals with which the rounded numbers still satisfy a + b = c.

    Rounding each number by itself can spoil the last digit. Four if that holds, else three if every number
    keeps two digits, else more than four.
    """
    for decimals in (4, 3, 5, 6, 7):
        unit = 10**decimals
        readable = decimals > 3 or min(abs(a), abs(b), abs(c)) >= 0.01
        if readable and round(a * unit) + round(b * unit) == round(c * unit):
            return decimals
    return 4
