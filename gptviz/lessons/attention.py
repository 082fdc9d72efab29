"""Self-attention by hand, on vectors small enough to work out with a pencil.

The book's chapter 3 in four steps: without weights (`simple_attention`), with W_query, W_key and W_value
(`self_attention`), with a causal mask, with several heads (`multi_head_attention`). A vector is a row, and a
weight matrix stands to its right: q = x W, as in the book's first class. `nn.Linear` keeps the transpose.

The trick behind it: every token's average over itself and what stands before it, in three versions ("Let's
build GPT", Karpathy, 2023). The three give the same; the last is attention with all scores equal.

Shapes in comments: T tokens, d_in numbers a token, d numbers of a query, key or value, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.analysis.attention import SoftmaxRow, softmax_row
from gptviz.engine.index import below
from gptviz.engine.undisturbed import undisturbed

# The slides' example of softmax in two steps, as they print it.
SLIDE_SCORES = (1.4529, 0.3491, -0.8928, 0.2072, -0.3993)
SLIDE_EXPONENTIALS = (4.2757, 1.4177, 0.4095, 1.2302, 0.6708)
SLIDE_WEIGHTS = (0.5342, 0.1771, 0.0512, 0.1537, 0.0838)


Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Attention:
    """All that attention computes, in the order in which it does. Rows are queries, columns keys.

    `queries`, `keys` and `values` (T, d) each; `scores` (T, T), a dot product a pair; `scaled` is scores /
    `divisor`; `masked` has -inf where the causal mask hides a key, and is `scaled` where there is no mask;
    `weights` (T, T) is its softmax, row by row; `context` (T, d) is weights @ values.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    divisor: float
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    context: Tensor


@dataclass(frozen=True)
class HeadWeights:
    """One head's three matrices, (d_in, d) each."""

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class Heads:
    """Several heads side by side: each one's attention, and their contexts in one row, (T, H d)."""

    heads: tuple[Attention, ...]
    context: Tensor


def simple_attention(x: Tensor | Matrix, causal: bool = False) -> Attention:
    """Attention without weights: every token's vector is its query, its key and its value; nothing is scaled.

    `x` (T, d_in), or rows of numbers. Raises ValueError where it is not a matrix of finite numbers.

    >>> simple_attention([[1.0, 0.0], [0.0, 1.0]]).scores.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = _vectors(x)
    return _attention(x, x, x, 1.0, causal)


def self_attention(x: Tensor | Matrix, weights: HeadWeights, causal: bool = False) -> Attention:
    """Attention with queries, keys and values of their own, scores divided by sqrt(d).

    `x` (T, d_in). Raises ValueError where `x` is no matrix, or a weight matrix does not have d_in rows.
    """
    x = _vectors(x)
    for name in ("query", "key", "value"):
        matrix = getattr(weights, name)
        if matrix.dim() != 2 or len(matrix) != x.shape[1]:
            raise ValueError(
                f"the {name} matrix has shape {tuple(matrix.shape)}; for vectors of {x.shape[1]} numbers it "
                f"must have {x.shape[1]} rows"
            )
    queries = x @ weights.query  # (T, d_in) -> (T, d)
    keys = x @ weights.key  # (T, d_in) -> (T, d)
    values = x @ weights.value  # (T, d_in) -> (T, d)
    return _attention(queries, keys, values, queries.shape[1] ** 0.5, causal)


def multi_head_attention(x: Tensor | Matrix, heads: Sequence[HeadWeights], causal: bool = True) -> Heads:
    """Every head by itself, and what they give side by side: the book's MultiHeadAttentionWrapper.

    `x` (T, d_in). Raises ValueError as `self_attention` does, and where there is no head.
    """
    if not heads:
        raise ValueError("there is no head; give the weights of one at least")
    found = tuple(self_attention(x, weights, causal) for weights in heads)
    return Heads(found, torch.cat([head.context for head in found], dim=1))  # H of (T, d) -> (T, H d)


@undisturbed
def by_hand(x: Matrix, heads: Sequence[Sequence[Matrix]] = (), causal: bool = False) -> Heads:
    """The whole calculation from plain numbers, in float64: what the Attention by hand page shows.

    `x` (T, d_in) are the words' vectors; `heads` has W_query, W_key and W_value of each, (d_in, d). Without
    any, the vectors are queries, keys and values themselves, and nothing is scaled.
    """
    vectors = torch.tensor(x, dtype=torch.float64)
    if not heads:
        simple = simple_attention(vectors, causal)
        return Heads((simple,), simple.context)
    weights = [HeadWeights(*(torch.tensor(one, dtype=torch.float64) for one in head)) for head in heads]
    return multi_head_attention(vectors, weights, causal)


@dataclass(frozen=True)
class WorkedRow:
    """One query's way to its context vector. n keys that it can see; d numbers a key and a value.

    `scores` (T,) are its dot products with each key; `seen` says which keys the mask leaves; `softmax` is
    that of the n scaled scores; `parts` (n, d) = weight * value, whose sum is `context` (d,).
    """

    scores: Tensor
    scaled: Tensor
    seen: tuple[int, ...]
    softmax: SoftmaxRow
    parts: Tensor
    context: Tensor


def worked_row(attention: Attention, query: int) -> WorkedRow:
    """The arithmetic of one row, in float64. Raises ValueError for a query that there is not."""
    count = len(attention.scores)
    below("query", query, count)
    keys = attention.keys.double()
    values = attention.values.double()
    scores = keys @ attention.queries[query].double()  # (T, d) x (d,) -> (T,)
    scaled = scores / attention.divisor
    seen = tuple(i for i in range(count) if attention.masked[query, i] > -torch.inf)
    softmax = softmax_row(scaled[list(seen)])
    parts = softmax.weights[:, None] * values[list(seen)]  # (n, d)
    return WorkedRow(scores, scaled, seen, softmax, parts, parts.sum(dim=0))


def _attention(queries: Tensor, keys: Tensor, values: Tensor, divisor: float, causal: bool) -> Attention:
    scores = queries @ keys.T  # (T, d) x (d, T) -> (T, T)
    scaled = scores / divisor
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    if causal:
        masked = scaled.masked_fill(future, -torch.inf)
    else:
        masked = scaled
    weights = torch.softmax(masked, dim=-1)
    return Attention(queries, keys, values, scores, divisor, scaled, masked, weights, weights @ values)


def _vectors(x: Tensor | Matrix) -> Tensor:
    found = torch.as_tensor(x)
    if not found.is_floating_point():
        found = found.float()
    if found.dim() != 2 or not found.numel():
        raise ValueError(f"x has shape {tuple(found.shape)}; it must be a matrix: a row a token, (T, d_in)")
    if not bool(torch.isfinite(found).all()):
        raise ValueError("x holds something that is not a finite number; every cell must be one")
    return found


# ---- the averaging trick, in three versions ----

# The notebook's first sequence, as it prints it: 8 tokens of 2 numbers.
NOTEBOOK = (
    (-0.1816, 0.1048), (0.3941, 0.5729), (1.5386, 0.4016), (0.8023, 1.2386),
    (0.6774, -1.2224), (-1.0634, 0.3195), (-0.4746, 0.6998), (0.4340, 0.5938),
)  # fmt: skip

# And what it prints of its averages: made of more digits than it prints of the sequence.
NOTEBOOK_AVERAGES = (
    (-0.1816, 0.1048), (0.1062, 0.3389), (0.5837, 0.3598), (0.6384, 0.5795),
    (0.6462, 0.2191), (0.3612, 0.2358), (0.2418, 0.3021), (0.2659, 0.3386),
)  # fmt: skip


@dataclass(frozen=True)
class Averages:
    """`scores` (T, T) go into the softmax, None where there is none; `weights` (T, T), `context` (T, d)."""

    scores: Tensor | None
    weights: Tensor
    context: Tensor


def averages_by_loop(x: Tensor) -> Tensor:
    """Version 1, a loop: (T, d) -> (T, d); row t is the mean of rows 0 to t."""
    averages = torch.zeros_like(x)
    for t in range(len(x)):
        before = x[: t + 1]  # (t + 1, d)
        averages[t] = before.mean(dim=0)
    return averages


@undisturbed
def averages_by_matrix(x: Tensor) -> Averages:
    """Version 2, a matrix: ones below the diagonal, every row divided by its sum."""
    ones = torch.tril(torch.ones(len(x), len(x), dtype=x.dtype))
    weights = ones / ones.sum(dim=1, keepdim=True)
    return Averages(None, weights, weights @ x)  # (T, T) x (T, d) -> (T, d)


@undisturbed
def averages_by_softmax(x: Tensor) -> Averages:
    """Version 3, softmax: all scores 0, and -inf for what comes later."""
    future = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), diagonal=1)
    scores = torch.zeros(len(x), len(x), dtype=x.dtype).masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return Averages(scores, weights, weights @ x)
