"""Positions: learned rows, sines and cosines, rotations, or none at all, and which of them know distance.

Vaswani et al., Attention Is All You Need, 2017, section 3.5 (sines and cosines, added to the tokens);
Su et al., RoFormer, 2021 (RoPE: a rotation of each head's queries and keys). Shapes: n positions, d
dimensions. The schemes at the end are made for a model's own sizes and weights, to be compared. All is
float64, so that what is equal in theory is equal in the first 12 digits.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gptviz.analysis.against import double
from gptviz.engine.architecture import position_vectors
from gptviz.engine.copies import worked_out_once
from gptviz.engine.index import check_below, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import TransformerBlock

# of both papers: the slowest pair turns round once in about 2 pi times as many tokens
BASE = 10_000.0

AT_ONCE = 256  # rows of a table that are multiplied with all others at a time

SCHEMES = {"learned": "Learned", "sinusoidal": "Sinusoidal", "rope": "RoPE", "none": "None"}

Floats = NDArray[np.float64]


@undisturbed
def frequencies(d: int, base: float = BASE) -> torch.Tensor:
    """Radians a token by which each pair of dimensions turns, base^(-2i/d), fastest first: (ceil(d/2),)."""
    if d < 1:
        raise ValueError(f"d is {d}; a row has at least 1 dimension")
    return torch.tensor(base, dtype=torch.float64) ** (
        -torch.arange(0, d, 2, dtype=torch.float64) / d
    )


@worked_out_once(maxsize=8)
@undisturbed
def sinusoidal(n: int, d: int, base: float = BASE) -> torch.Tensor:
    """The rows of the first Transformer, (n, d): sin(pos * f) in dimension 2i, cos(pos * f) in 2i + 1."""
    angles = torch.arange(n, dtype=torch.float64)[:, None] * frequencies(d, base)  # (n, ceil(d/2))
    rows = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (n, ceil(d/2), 2)
    return rows.flatten(1)[:, :d]  # (n, ceil(d/2), 2) -> (n, d); an odd d has no last cosine


def shift_matrix(steps: int, d: int, base: float = BASE) -> torch.Tensor:
    """(d, d): the matrix M with M @ p(pos) = p(pos + steps) for every pos; p is `sinusoidal`, d even."""
    _even(d)
    turn = steps * frequencies(d, base)
    blocks = torch.stack([turn.cos(), turn.sin(), -turn.sin(), turn.cos()], dim=-1).view(-1, 2, 2)
    return torch.block_diag(*blocks)  # (d/2, 4) -> (d/2, 2, 2) -> (d, d)


@undisturbed
def rotate(
    x: torch.Tensor, positions: Sequence[int] | torch.Tensor, base: float = BASE
) -> torch.Tensor:
    """RoPE: each pair (2i, 2i + 1) of every row turned by position * frequency. (..., n, d) -> (..., n, d).

    ValueError for an odd d. Llama's code pairs (i, i + d/2): the same dimensions in another order.
    """
    _even(x.shape[-1])
    x = x.double()
    places = torch.as_tensor(positions, dtype=torch.float64)
    angles = places[:, None] * frequencies(x.shape[-1], base)  # (n, d/2)
    cos = angles.cos()
    sin = angles.sin()
    first = x[..., 0::2]  # (..., n, d/2)
    second = x[..., 1::2]  # (..., n, d/2)
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return turned.flatten(-2)  # (..., n, d/2, 2) -> (..., n, d)


@worked_out_once(maxsize=8)
@undisturbed
def rotations(n: int, d: int, base: float = BASE) -> torch.Tensor:
    """The row (1, 0, 1, 0, ...) as RoPE turns it at each position, (n, d): each pair an arrow."""
    return rotate(torch.tensor([1.0, 0.0]).repeat(d // 2).expand(n, d), range(n), base)


def even_part(d: int) -> int:
    """The dimensions that RoPE can turn: as many as there are in pairs, 2 at least."""
    return max(2, d - d % 2)


def products_by_distance(rows: torch.Tensor) -> pd.DataFrame:
    """Dot products of a table of positions (n, d), by how far apart the two stand, from 0 to n - 1.

    Columns: distance, mean, least, most of all pairs (m, m - distance). Where least and most are one number,
    only the distance counts.
    """
    rows = double(rows)
    n = len(rows)
    total = np.zeros(n)
    least = np.full(n, np.inf)
    most = np.full(n, -np.inf)
    # some rows at a time: the products of all pairs of 32,768 positions would be 8 GiB
    for start in range(0, n, AT_ONCE):
        products = (rows[start : start + AT_ONCE] @ rows[: start + AT_ONCE].T).numpy()
        for position, row_products in enumerate(products, start):
            # with itself, then with the position before, back to the first
            by_distance = row_products[position::-1]
            total[: position + 1] += by_distance
            np.minimum(least[: position + 1], by_distance, out=least[: position + 1])
            np.maximum(most[: position + 1], by_distance, out=most[: position + 1])
    mean = total / np.arange(n, 0, -1)
    return pd.DataFrame({"distance": np.arange(n), "mean": mean, "least": least, "most": most})


def scores_along(
    block: TransformerBlock, query: torch.Tensor, key: torch.Tensor, rows: torch.Tensor | None, head: int,
    distance: int, n: int, rotary: bool = False,
) -> Floats:  # fmt: skip
    """One head's score for a pair of tokens that stay `distance` apart, at every place of a text of n.

    `query` and `key` are the tokens' embeddings (D,), `rows` (>= n, D) is what is added to them at each
    position, None for nothing; with `rotary` the head's queries and keys are turned instead. Entry i is the
    query at position i + distance: (n - distance,). With the model's own rows and block 0 these are the
    model's own scores, after division by the square root of head_dim. ValueError unless 0 <= distance < n.
    """
    check_below("distance", distance, n)
    added = 0 if rows is None else double(rows[:n])
    norm = block.norm1
    turned = []
    for token, layer in ((query, block.att.W_query), (key, block.att.W_key)):
        # not by the modules themselves: other passes over this model hang their hooks there
        stream = double(token).expand(n, -1) + added  # (n, D)
        shift, bias = (
            None if weight is None else double(weight) for weight in (norm.shift, layer.bias)
        )
        normalised = F.layer_norm(stream, stream.shape[-1:], double(norm.scale), shift, norm.eps)
        projected = F.linear(normalised, double(layer.weight), bias)  # (n, D) -> (n, H d)
        # (n, H d) -> (n, H, d) -> (n, d)
        head_rows = projected.unflatten(1, (block.att.num_heads, -1))[:, head]
        turned.append(rotate(head_rows, range(n)) if rotary else head_rows)
    q, k = turned
    return ((q[distance:] * k[: n - distance]).sum(-1) / math.sqrt(q.shape[-1])).numpy()


@undisturbed
def position_rows(lm: LanguageModel, scheme: str) -> torch.Tensor:
    """(context_length, d): the model's own rows, sines, what RoPE makes of (1, 0, 1, 0, ...), or zeros.

    d is emb_dim; of RoPE, which turns queries and keys, a head's dimensions. ValueError for another scheme.
    """
    if scheme == "learned":
        return double(position_vectors(lm.model))
    n = lm.config.context_length
    d = lm.config.emb_dim
    return _by_formula(scheme, n, even_part(d // lm.config.n_heads) if scheme == "rope" else d)


@undisturbed
def products(lm: LanguageModel, scheme: str) -> pd.DataFrame:
    """`products_by_distance` of a scheme's rows; those of a formula are worked out once."""
    rows = position_rows(lm, scheme)
    if scheme == "learned":
        return products_by_distance(rows)
    return _products(scheme, *rows.shape)


def _by_formula(scheme: str, n: int, d: int) -> torch.Tensor:
    one_of("scheme", scheme, SCHEMES)
    formulas = {"sinusoidal": sinusoidal, "rope": rotations}
    if scheme in formulas:
        return formulas[scheme](n, d)
    return torch.zeros(n, d, dtype=torch.float64)


@worked_out_once(maxsize=12)
def _products(scheme: str, n: int, d: int) -> pd.DataFrame:
    return products_by_distance(_by_formula(scheme, n, d))


@undisturbed
def pair_scores(lm: LanguageModel, query: int, key: int, head: int, distance: int) -> pd.DataFrame:
    """The score of one token's query for another's key, `distance` before it, at every place of a text.

    `query` and `key` are ids; the head is one of block 0. A column per scheme, by its name on the screen (no
    RoPE where a head has an odd number of dimensions), and a row per place of the query.
    """
    block = lm.model.trf_blocks[0]
    table = lm.model.tok_emb.weight
    n = lm.config.context_length

    def along(rows: torch.Tensor | None, rotary: bool = False) -> np.ndarray:
        return scores_along(block, table[query], table[key], rows, head, distance, n, rotary)

    scores = {
        "learned": along(position_vectors(lm.model)),
        "sinusoidal": along(position_rows(lm, "sinusoidal")),
    }
    if lm.config.emb_dim // lm.config.n_heads % 2 == 0:
        scores["rope"] = along(None, rotary=True)
    scores["none"] = along(None)
    places = pd.RangeIndex(distance, n, name="query at")
    return pd.DataFrame(
        {SCHEMES[scheme]: values for scheme, values in scores.items()}, index=places
    )


@undisturbed
def compared(lm: LanguageModel, scores: pd.DataFrame) -> pd.DataFrame:
    """A row per scheme: what depends on where a pair of tokens stands, and not on its distance alone.

    `scores` are `pair_scores`; their distance is that of the rows, too. Columns: scheme, product (of the two
    rows, on average), product changes (the largest minus the least), score (on average), score changes: all
    of them over every place of a text.
    """
    rows = []
    for scheme, name in SCHEMES.items():
        if name in scores:
            row = products(lm, scheme).iloc[scores.index[0]]
            along = scores[name]
            rows.append(
                (name, row["mean"], row["most"] - row["least"], along.mean(), np.ptp(along))
            )
    return pd.DataFrame(
        rows, columns=["scheme", "product", "product changes", "score", "score changes"]
    )


def _even(d: int) -> None:
    if d < 2 or d % 2:
        raise ValueError(f"d is {d}; a rotation turns pairs of dimensions: it must be even")
