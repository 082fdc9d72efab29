"""Self-attention by hand, on vectors small enough to work out with a pencil.

The book's chapter 3 in four steps: without weights (`simple_attention`), with W_query, W_key and W_value
(`self_attention`), with a causal mask, with several heads (`multi_head_attention`). A vector is a row, and a
weight matrix stands to its right: q = x W, with W (d_in, d), as in the book's first attention class,
SelfAttention_v1. The later classes use `nn.Linear`, which stores W transposed, (d, d_in).

The end of the file has the trick behind it: every token's average over itself and all tokens before it, in
three versions ("Let's build GPT", Karpathy, 2023). All three give the same numbers; the last one is attention
with all scores equal.

Shapes: T tokens, d_in numbers per token, d numbers per query, key or value, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.analysis.attention import SoftmaxRow, softmax_row
from gptviz.engine.index import check_below
from gptviz.engine.undisturbed import undisturbed

# Softmax in two steps, as Fijalkow's slides "Transformers from scratch" print it, to four decimals. The
# slides computed with more digits: e^score of a printed score may differ from the printed exponential.
SLIDE_SCORES = (1.4529, 0.3491, -0.8928, 0.2072, -0.3993)
SLIDE_EXPONENTIALS = (4.2757, 1.4177, 0.4095, 1.2302, 0.6708)
SLIDE_WEIGHTS = (0.5342, 0.1771, 0.0512, 0.1537, 0.0838)

Matrix = Sequence[Sequence[float]]  # plain numbers, row by row


@dataclass(frozen=True)
class Attention:
    """Every number on the way from queries, keys and values to context vectors, in the order of computation.

    `queries`, `keys` and `values` are (T, d) each. `scores`, `scaled`, `masked` and `weights` are (T, T): a
    row per query, a column per key. `scores` has the dot product of each query with each key; `scaled` =
    scores / `divisor`; `masked` is `scaled` with -inf where the causal mask hides a key (without a mask,
    `scaled` itself); `weights` is the softmax of each row of `masked`. `context` (T, d) = weights @ values.
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
    """One head's W_query, W_key and W_value, (d_in, d) each."""

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class Heads:
    """Several heads: the attention of each; `context` (T, H d) has their context vectors side by side."""

    heads: tuple[Attention, ...]
    context: Tensor


@undisturbed
def simple_attention(x: Tensor | Matrix, causal: bool = False) -> Attention:
    """Compute attention without weights: each token's vector is its query, its key and its value.

    The scores are not scaled (`divisor` is 1). `x` (T, d_in) is a tensor or rows of numbers. Raises
    ValueError if it is not a matrix of finite numbers.

    >>> simple_attention([[1.0, 0.0], [0.0, 1.0]]).scores.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = _vectors(x)
    return _attention(x, x, x, 1.0, causal)


@undisturbed
def self_attention(x: Tensor | Matrix, weights: HeadWeights, causal: bool = False) -> Attention:
    """Compute one head's attention: queries, keys and values from `x` and weights, scores divided by sqrt(d).

    `x` is (T, d_in). Raises ValueError if it is not a matrix of finite numbers, or if a weight matrix does
    not have d_in rows.
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


@undisturbed
def multi_head_attention(
    x: Tensor | Matrix, heads: Sequence[HeadWeights], causal: bool = True
) -> Heads:
    """Run every head by itself and put their contexts side by side: the book's MultiHeadAttentionWrapper.

    `x` is (T, d_in). Raises ValueError as `self_attention` does, and if `heads` is empty.
    """
    if not heads:
        raise ValueError("there is no head; give the weights of at least one")
    attentions = tuple(self_attention(x, weights, causal) for weights in heads)
    # H of (T, d) -> (T, H d)
    return Heads(attentions, torch.cat([head.context for head in attentions], dim=1))


@undisturbed
def by_hand(x: Matrix, heads: Sequence[Sequence[Matrix]] = (), causal: bool = False) -> Heads:
    """Compute the attention that the page "Attention by hand" shows, from plain numbers, in float64.

    `x` (T, d_in) has a row per word; `heads` has for each head its W_query, W_key and W_value, (d_in, d)
    each. Without heads it is `simple_attention`, as one head.
    """
    vectors = torch.tensor(x, dtype=torch.float64)
    if not heads:
        simple = simple_attention(vectors, causal)
        return Heads((simple,), simple.context)
    weights = [
        HeadWeights(*(torch.tensor(matrix, dtype=torch.float64) for matrix in head))
        for head in heads
    ]
    return multi_head_attention(vectors, weights, causal)


@dataclass(frozen=True)
class WorkedRow:
    """One query's way to its context vector (d,), over the n of T keys that the mask leaves it.

    `scores` (T,) are the query's dot products with all keys, and `scaled` (T,) = scores / divisor. `seen` has
    the positions of the n keys that are not masked, in order. `softmax` has n numbers each: the softmax of
    the scaled scores of these keys. `parts` (n, d) has weight * value for each of them; their sum is
    `context`.
    """

    scores: Tensor
    scaled: Tensor
    seen: tuple[int, ...]
    softmax: SoftmaxRow
    parts: Tensor
    context: Tensor


@undisturbed
def worked_row(attention: Attention, query: int) -> WorkedRow:
    """Work out one row of an attention in float64; `query` is its position, from 0.

    Raises ValueError if there is no such position.
    """
    count = len(attention.scores)  # T
    query = check_below("query", query, count)
    keys = attention.keys.double()
    values = attention.values.double()
    scores = keys @ attention.queries[query].double()  # (T, d) x (d,) -> (T,)
    scaled = scores / attention.divisor  # (T,)
    seen = tuple(i for i in range(count) if attention.masked[query, i] > -torch.inf)
    softmax = softmax_row(scaled[list(seen)])
    parts = softmax.weights[:, None] * values[list(seen)]  # (n, d)
    return WorkedRow(scores, scaled, seen, softmax, parts, parts.sum(dim=0))


def _attention(
    queries: Tensor, keys: Tensor, values: Tensor, divisor: float, causal: bool
) -> Attention:
    """The steps that all versions share: queries, keys and values (T, d) each."""
    scores = queries @ keys.T  # (T, d) x (d, T) -> (T, T)
    scaled = scores / divisor
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)  # True where key > query
    if causal:
        masked = scaled.masked_fill(future, -torch.inf)
    else:
        masked = scaled
    weights = torch.softmax(masked, dim=-1)
    return Attention(
        queries, keys, values, scores, divisor, scaled, masked, weights, weights @ values
    )


def _vectors(x: Tensor | Matrix) -> Tensor:
    """`x` as a tensor of floats, (T, d_in); ValueError if it is no matrix of finite numbers."""
    vectors = torch.as_tensor(x)
    if not vectors.is_floating_point():
        vectors = vectors.float()
    if vectors.dim() != 2 or not vectors.numel():
        raise ValueError(
            f"x has shape {tuple(vectors.shape)}; it must have a row per token, (T, d_in)"
        )
    if not bool(torch.isfinite(vectors).all()):
        raise ValueError("x holds something that is not a finite number; every cell must be one")
    return vectors


# ---- the averaging trick, in three versions ----

# The input of the notebook to "Let's build GPT", as it prints it: 8 tokens of 2 numbers.
NOTEBOOK = (
    (-0.1816, 0.1048), (0.3941, 0.5729), (1.5386, 0.4016), (0.8023, 1.2386),
    (0.6774, -1.2224), (-1.0634, 0.3195), (-0.4746, 0.6998), (0.4340, 0.5938),
)  # fmt: skip

# The averages that the notebook prints; it computed them from more digits than it prints of its input.
NOTEBOOK_AVERAGES = (
    (-0.1816, 0.1048), (0.1062, 0.3389), (0.5837, 0.3598), (0.6384, 0.5795),
    (0.6462, 0.2191), (0.3612, 0.2358), (0.2418, 0.3021), (0.2659, 0.3386),
)  # fmt: skip


@dataclass(frozen=True)
class Averages:
    """The averages of version 2 or 3 as attention: `context` (T, d) = `weights` (T, T) @ the vectors.

    `scores` (T, T) are what version 3 puts into the softmax; None in version 2, which has no softmax.
    """

    scores: Tensor | None
    weights: Tensor
    context: Tensor


@undisturbed
def averages_by_loop(x: Tensor) -> Tensor:
    """Version 1, a loop: (T, d) -> (T, d); row t is the mean of rows 0 to t of `x`."""
    averages = torch.zeros_like(x)
    for t in range(len(x)):
        up_to_t = x[: t + 1]  # (t + 1, d): row t itself is one of them
        averages[t] = up_to_t.mean(dim=0)
    return averages


@undisturbed
def averages_by_matrix(x: Tensor) -> Averages:
    """Version 2, a matrix: ones on and below the diagonal, every row divided by its sum; `x` is (T, d)."""
    ones = torch.tril(torch.ones(len(x), len(x), dtype=x.dtype))
    weights = ones / ones.sum(dim=1, keepdim=True)
    return Averages(None, weights, weights @ x)  # (T, T) x (T, d) -> (T, d)


@undisturbed
def averages_by_softmax(x: Tensor) -> Averages:
    """Version 3, softmax: scores of 0 up to the token itself, -inf for later ones; `x` is (T, d)."""
    future = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), diagonal=1)
    scores = torch.zeros(len(x), len(x), dtype=x.dtype).masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return Averages(scores, weights, weights @ x)
