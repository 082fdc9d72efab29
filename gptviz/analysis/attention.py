"""Attention step by step, computed from the queries, keys and values that a Trace holds.

The model computes scores, masks them, scales them and applies softmax (`MultiHeadAttention.forward`). Here
the scores are scaled before they are masked, as in the formula of "Attention Is All You Need". Both give the
same numbers, since minus infinity stays minus infinity when it is divided.

Where a model turns queries and keys by their positions, the turned ones are meant; where heads share a key and
a value, each head is given those of its group.

Shapes: H heads, T tokens, D emb_dim, d = head_dim, V the vocabulary size.
"""

from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from gptviz.analysis.against import double
from gptviz.analysis.reads import of_model, reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed


def head_sites(lm: LanguageModel, *_: object) -> tuple[str, ...]:
    """The sites of a block in the order of a head's steps: query, key, value, weights, output."""
    return (*architecture_of(lm.config).scores, "v", "attn", "z")


@undisturbed
def of_heads(trace: Trace, site: str, block: int) -> Tensor:
    """A site of keys, values or queries for each head, (H, T, d): heads that share one have the same."""
    value = trace[site, block]
    size = trace.config.n_heads // len(value)
    if size == 1:
        return value
    return value.repeat_interleave(size, dim=0)  # (K, T, d) -> (H, T, d)


@reads(lambda lm, block, *_: (("attn", block),))
def weights(
    lm: LanguageModel, t: Trace, block: int, head: int | None = None, hide_first: bool = False
) -> Tensor:
    """A head's attention weights, (T, T), with a row per query; for None, their mean over the block's heads.

    With `hide_first`, the first key is left out and each row is scaled up to sum to 1 (`without_first`).
    """
    attn = t["attn", block]  # (H, T, T)
    if head is None:
        pattern = attn.mean(dim=0)
    else:
        pattern = attn[head].clone()
    if hide_first:
        return without_first(pattern)
    return pattern


@reads(lambda lm, block, head: (("attn", block),))
def last_row(lm: LanguageModel, t: Trace, block: int, head: int) -> Tensor:
    """The attention weights of a head for the last query, (T,): softmax(K q / sqrt(d)).

    The next token is predicted from this position, so these are the weights that matter for it.
    """
    return t["attn", block][head, -1]


@dataclass(frozen=True)
class AttentionSteps:
    """The steps of one head from queries and keys to its output. Rows are queries, columns keys.

    `q`, `k`, `v`, `z` (T, d) and `weights` (T, T) are from the pass. `scores` and `masked` are computed from
    them. Unless an edit put something else there, weights = softmax(masked), row by row, and z = weights @ v.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    weights: Tensor
    z: Tensor

    @property
    def divisor(self) -> float:
        """sqrt(d)."""
        return float(self.q.shape[-1] ** 0.5)

    @property
    def scores(self) -> Tensor:
        """A dot product for every pair, (T, d) x (d, T) -> (T, T)."""
        return self.q @ self.k.T

    @property
    def masked(self) -> Tensor:
        """The scores divided by sqrt(d), (T, T), without those of later keys."""
        future = torch.ones_like(self.scores, dtype=torch.bool).triu(diagonal=1)
        return (self.scores / self.divisor).masked_fill(future, -torch.inf)


@reads(lambda lm, block, *_: tuple((site, block) for site in head_sites(lm)))
def steps(lm: LanguageModel, t: Trace, block: int, head: int) -> AttentionSteps:
    """All steps of one head. Raises ValueError for a block or head that the model does not have."""
    query, key, value, weights_of, output = head_sites(lm)
    sites = [of_heads(t, site, block) for site in (query, key, value)]
    sites += [t[weights_of, block], t[output, block]]
    return AttentionSteps(*(site[head].clone() for site in sites))


@dataclass(frozen=True)
class SoftmaxRow:
    """The softmax of one query's scaled scores over the n keys that it may see: (n,) each.

    With a causal mask these are the keys 0 to query, n = query + 1. `exp` is e^(scaled - largest):
    subtracting the row's `largest` changes no weight and keeps the exponentials from overflowing (torch does
    it too). `weights` = exp / total.
    """

    scaled: Tensor
    largest: float
    exp: Tensor
    total: float
    weights: Tensor


@dataclass(frozen=True)
class CellArithmetic:
    """The arithmetic of one attention weight: `products` (d,) = q * k, their sum `score`, and the softmax.

    `scaled` is score / divisor, and `row` the softmax of the whole row. `weight` is None if the causal mask
    hides the key (key > query); the score exists even then.
    """

    products: Tensor
    score: float
    divisor: float
    scaled: float
    row: SoftmaxRow
    weight: float | None


@reads(lambda lm, block, *_: tuple((site, block) for site in architecture_of(lm.config).scores))
def cell(
    lm: LanguageModel, t: Trace, block: int, head: int, query: int, key: int
) -> CellArithmetic:
    """The arithmetic of the attention weight of one query and one key in a head.

    It is computed in float64 from the float32 queries and keys of the pass, so that rounded numbers on the
    screen add up. Raises ValueError for a head or a position that does not exist.
    """
    sites = architecture_of(lm.config).scores
    q, k = (of_heads(t, site, block)[head].double() for site in sites)  # (T, d) each
    divisor = q.shape[-1] ** 0.5
    products = q[query] * k[key]  # (d,)
    score = products.sum().item()
    row = softmax_row(k[: query + 1] @ q[query] / divisor)
    weight = None
    if key <= query:
        weight = row.weights[key].item()
    return CellArithmetic(products, score, divisor, score / divisor, row, weight)


def softmax_row(scaled: Tensor) -> SoftmaxRow:
    """Compute the softmax of (n,) scaled scores, with every intermediate number."""
    largest = scaled.max().item()
    exp = torch.exp(scaled - largest)
    total = exp.sum().item()
    return SoftmaxRow(scaled, largest, exp, total, exp / total)


def edited_weights(lm: LanguageModel, *_: object) -> tuple[str, ...]:
    """The sites that `rows_of_attention` needs beside the scores': "attn" if the model has edits."""
    if lm.edits:
        return ("attn",)
    return ()


@undisturbed
def rows_of_attention(
    trace: Trace, block: int, positions: Tensor, heads: slice = slice(None)
) -> Tensor:
    """The attention weights of the queries at R `positions`: (H, R, n), where n - 1 is the last of them.

    They are taken from the trace if it holds `attn`; else they are computed from the queries and keys, which
    is cheap for a few rows. With edits they must be taken from the trace, since an edit may have changed
    them: raises ValueError if the trace did not keep `attn` then.
    """
    n = int(positions.max()) + 1
    if trace.edits and ("attn", block) not in trace.sites():
        raise ValueError(f"an edited pass needs attn of block {block}: trace again and keep it")
    if trace.edits or trace.holds([("attn", block)]):
        return trace["attn", block][heads][:, positions, :n]
    query, key = architecture_of(trace.config).scores
    q = of_heads(trace, query, block)[heads][:, positions]  # (H, R, d)
    k = of_heads(trace, key, block)[heads][:, :n]  # (H, n, d)
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (H, R, n)
    later = torch.arange(n) > positions[:, None]  # (R, n)
    return torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)


@of_model
def handed_on(
    trace: Trace, model: Model, block: int, position: int, row: Tensor, values: Tensor
) -> Tensor:
    """By which factor an edit scaled the output `z` of each head at a position: (H, 1), float64.

    Without edits, `z` is the weighted sum `row` (H, n) @ `values` (H, n, d). The factor is 1 if no edit is of
    `z`, and NaN for a head whose `z` is no multiple of that sum. The trace must hold `z` if an edit changes
    it.
    """
    if not any(
        edit.site == "z" and block in edit.blocks(trace.config.n_layers) for edit in trace.edits
    ):
        return torch.ones(len(row), 1, dtype=torch.float64)
    tolerance = 0.05
    if model.out_head.weight.dtype == torch.float32:
        tolerance = 1e-4
    read = torch.einsum("hn,hnd->hd", row.double(), values.double())  # (H, d)
    handed = trace["z", block][:, position].double()  # (H, d)
    times = (
        (handed * read).sum(-1, keepdim=True) / read.square().sum(-1, keepdim=True)
    ).nan_to_num()
    apart = (handed - times * read).norm(dim=-1, keepdim=True) > tolerance * handed.norm(
        dim=-1, keepdim=True
    )
    return times.masked_fill(apart, torch.nan)


def without_first(weights: Tensor) -> Tensor:
    """Attention weights (..., T, T) without the first key, with each row scaled up to sum to 1.

    Column 0 becomes NaN, and so does row 0, which has no other key, and any row that had all its weight on
    the first key. Weights above the diagonal stay 0.
    """
    rows = weights.clone()
    rows[..., 0] = 0
    rows = rows / rows.sum(dim=-1, keepdim=True)  # 0 / 0 is NaN, in a row without any other weight
    rows[..., 0] = torch.nan
    return rows


def write_lengths(z: Tensor, out_proj: Tensor) -> Tensor:
    """The length of what each head adds to the residual stream: z (H, T, d), out_proj (D, H d) -> (H, T).

    With W (d, D), a head's part of out_proj, that is the vector z W. Its squared length is z (W W^T) z^T,
    which needs a (d, d) matrix for each head instead of the (T, D) vectors. In float64.
    """
    heads, _, d = z.shape
    slices = double(out_proj).unflatten(1, (heads, d)).permute(1, 2, 0)  # (D, H d) -> (H, d, D)
    z = z.double()
    return (z @ (slices @ slices.mT) * z).sum(dim=-1).clamp(min=0).sqrt()  # (H, T)


@of_model
def mean_writes(trace: Trace, model: Model) -> Tensor:
    """The mean over the text of the length that each head adds, (n_layers, H). Needs `z` of every block."""
    outs = [block.att.out_proj.weight for block in model.trf_blocks]
    lengths = [write_lengths(trace["z", b], out) for b, out in enumerate(outs)]
    return torch.stack(lengths).mean(dim=-1).float()  # (n_layers, H, T) -> (n_layers, H)


@dataclass(frozen=True)
class FirstToken:
    """How much attention the first token gets: many heads put most of their weight on it.

    Shares are mean attention weights over all later queries; "the chosen head" is one that was asked about.
    """

    tokens: int  # of the text
    mean: float  # share of the first token, mean over all heads
    even: float  # its share if each query gave all keys the same weight
    heads: int  # the number of heads that give it more than half
    of: int  # the number of all heads
    own: float  # its share in the chosen head
    value_norm: float  # the length of its value vector in the chosen head
    other_norms: float  # the mean length of the other tokens' value vectors there

    @property
    def draws_all(self) -> bool:
        """Whether all heads together give the first token clearly more than even attention would."""
        return self._lift(self.mean) >= SINK

    @property
    def draws_own(self) -> bool:
        """Whether the chosen head gives it clearly more than even attention would."""
        return self._lift(self.own) >= SINK

    @property
    def hands_little(self) -> bool:
        """Whether the first token's value vector is clearly shorter than the others' in the chosen head."""
        return self.value_norm <= SHORT * self.other_norms

    def _lift(self, share: float) -> float:
        """Rescale a share so that even attention is 0 and all attention is 1; 0 for fewer than 4 tokens."""
        if self.tokens >= 4:
            return (share - self.even) / (1 - self.even)
        return 0.0


# a value vector is clearly shorter if its length is at most this part of the others' mean
SHORT = 0.8
SINK = 0.3  # attention is clearly more than even if `_lift` gives at least this


def first_token(shares: Tensor, v: Tensor, block: int, head: int) -> FirstToken | None:
    """Measure how much attention the first token gets; None for a text of one token.

    `shares` (n_layers, H): each head's mean weight on it over the later queries, as in `head_scores`;
    `v` (T, d): the values of the chosen head, number `head` of `block`.
    """
    n_tokens = len(v)
    if n_tokens == 1:
        return None
    norms = torch.linalg.vector_norm(v, dim=-1)  # (T, d) -> (T,)
    return FirstToken(
        tokens=n_tokens,
        mean=shares.mean().item(),
        even=sum(1 / n for n in range(2, n_tokens + 1)) / (n_tokens - 1),
        heads=int((shares > 0.5).sum()),
        of=shares.numel(),
        own=shares[block, head].item(),
        value_norm=norms[0].item(),
        other_norms=norms[1:].mean().item(),
    )


def table(weights: Tensor, tokens: list[str]) -> pd.DataFrame:
    """Attention weights (T, T) as a table with a row per query and a column per key.

    Columns: position, query, then one for each key, named by its position and token, such as "0 The". Cells
    that the causal mask hides are NaN.
    """
    hidden = torch.ones_like(weights, dtype=torch.bool).triu(diagonal=1)
    cells = weights.masked_fill(hidden, torch.nan).numpy()
    keys = pd.DataFrame(cells, columns=[f"{i} {token}" for i, token in enumerate(tokens)])
    keys.insert(0, "position", range(len(tokens)))
    keys.insert(1, "query", tokens)
    return keys
