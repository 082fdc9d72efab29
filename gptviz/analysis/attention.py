"""Attention, one step at a time, from the queries, keys and values that a Trace holds.

The model computes scores -> masked -> scaled -> softmax in four lines (`MultiHeadAttention.forward`);
here scaling comes before masking, as in the paper's formula. Both give the same numbers, because the
mask is minus infinity on either side of the division.

Shapes in comments: H heads, T tokens, d = head_dim = emb_dim / H.
"""

from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from gptviz.analysis.against import double
from gptviz.analysis.reads import of_model, reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import GPTModel

HEAD_SITES = ("q", "k", "v", "attn", "z")  # a block's, which have a part for each head


@reads(lambda lm, block, *_: (("attn", block),))
def weights(
    lm: LanguageModel, t: Trace, block: int, head: int | None = None, hide_first: bool = False
) -> Tensor:
    """Return a head's attention weights, (T, T), a row a query; without a head the mean over the block's.

    With `hide_first` the first token is left out and every row scaled up to sum to 1 again: `without_first`.
    """
    attn = t["attn", block]  # (H, T, T)
    if head is None:
        found = attn.mean(dim=0)
    else:
        found = attn[head].clone()
    if hide_first:
        return without_first(found)
    return found


@reads(lambda lm, block, head: (("attn", block),))
def last_row(lm: LanguageModel, t: Trace, block: int, head: int) -> Tensor:
    """A head's attention weights from the last position: (T,), softmax(K q / sqrt(d)).

    A token is written out of the position before it: it does not exist yet when the model looks.
    """
    return t["attn", block][head, -1]


@dataclass(frozen=True)
class AttentionSteps:
    """One head's way from queries and keys to its output. Rows are queries, columns keys.

    `q`, `k`, `v`, `z` (T, d) and `weights` (T, T) are the pass's own; what lies between is worked out from
    them, also for keys in the future, which `masked` sets to minus infinity: weights = softmax(masked), row
    by row, and z = weights @ v, unless a change of the model put something else there.
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


@reads(lambda lm, block, *_: tuple((site, block) for site in HEAD_SITES))
def steps(lm: LanguageModel, t: Trace, block: int, head: int) -> AttentionSteps:
    """Return all the steps of one head; ValueError for a block or head that the model does not have."""
    return AttentionSteps(*(t[site, block][head].clone() for site in HEAD_SITES))


@dataclass(frozen=True)
class SoftmaxRow:
    """The softmax of one query's scaled scores, keys 0 to query: (query + 1,) each.

    `exp` is e^(scaled - largest): subtracting the row's `largest` changes no weight and keeps the
    exponentials from overflowing (torch does it too). `weights` = exp / total.
    """

    scaled: Tensor
    largest: float
    exp: Tensor
    total: float
    weights: Tensor


@dataclass(frozen=True)
class CellArithmetic:
    """How one attention weight comes about: `products` (d,) = q * k, their sum `score`, and the row.

    `weight` is None where the causal mask hides the key (key > query); the score exists even then.
    """

    products: Tensor
    score: float
    divisor: float
    scaled: float
    row: SoftmaxRow
    weight: float | None


@reads(lambda lm, block, *_: (("q", block), ("k", block)))
def cell(lm: LanguageModel, t: Trace, block: int, head: int, query: int, key: int) -> CellArithmetic:
    """Return the arithmetic behind one cell of a head's attention.

    Worked in float64 from the captured float32 queries and keys, so that what is printed adds up.
    Raises ValueError for a head or a position that does not exist.
    """
    q, k = (t[site, block][head].double() for site in ("q", "k"))  # (T, d) each
    divisor = q.shape[-1] ** 0.5
    products = q[query] * k[key]  # (d,)
    score = products.sum().item()
    row = softmax_row(k[: query + 1] @ q[query] / divisor)
    weight = None
    if key <= query:
        weight = row.weights[key].item()
    return CellArithmetic(products, score, divisor, score / divisor, row, weight)


def softmax_row(scaled: Tensor) -> SoftmaxRow:
    """(n,) scaled scores -> their softmax with every number on the way."""
    largest = scaled.max().item()
    exp = torch.exp(scaled - largest)
    total = exp.sum().item()
    return SoftmaxRow(scaled, largest, exp, total, exp / total)


def edited_weights(lm: LanguageModel, *_: object) -> tuple[str, ...]:
    """What `rows_of_attention` reads beside `q` and `k`: "attn" where an edit may change it."""
    if lm.edits:
        return ("attn",)
    return ()


@undisturbed
def rows_of_attention(trace: Trace, block: int, positions: Tensor, heads: slice = slice(None)) -> Tensor:
    """The attention weights of some queries, (H, R, n), n up to the last of them.

    Those of the pass where the trace holds `attn`, and of one with edits, which may change what is passed on:
    ValueError if it was not kept. Else they are worked out from queries and keys, R rows and not T of them.
    """
    n = int(positions.max()) + 1
    if trace.edits and ("attn", block) not in trace.sites():
        raise ValueError(f"an edited pass needs attn of block {block}: trace again and keep it")
    if trace.edits or trace.holds([("attn", block)]):
        return trace["attn", block][heads][:, positions, :n]
    q = trace["q", block][heads][:, positions]  # (H, R, d)
    k = trace["k", block][heads][:, :n]  # (H, n, d)
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (H, R, n)
    later = torch.arange(n) > positions[:, None]  # (R, n)
    return torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)


@of_model
def handed_on(
    trace: Trace, model: GPTModel, block: int, position: int, row: Tensor, values: Tensor
) -> Tensor:
    """The factor between what each head read at a position and what it handed on: (H, 1), float64.

    1 in a pass without changes of `z`; NaN where a head hands on something else than what it read with `row`
    (H, n) of `values` (H, n, d). Needs the block's `z` where a change is of it.
    """
    if not any(edit.site == "z" and block in edit.blocks(trace.config.n_layers) for edit in trace.edits):
        return torch.ones(len(row), 1, dtype=torch.float64)
    near = 0.05
    if model.out_head.weight.dtype == torch.float32:
        near = 1e-4
    read = torch.einsum("hn,hnd->hd", row.double(), values.double())
    handed = trace["z", block][:, position].double()  # (H, d)
    times = ((handed * read).sum(-1, keepdim=True) / read.square().sum(-1, keepdim=True)).nan_to_num()
    off = (handed - times * read).norm(dim=-1, keepdim=True) > near * handed.norm(dim=-1, keepdim=True)
    return times.masked_fill(off, torch.nan)


def without_first(weights: Tensor) -> Tensor:
    """Attention with the first token left out and every row renormalised to 1: (..., T, T) -> (..., T, T).

    Column 0 becomes NaN, and so does row 0, which has nothing else to look at, and any row that
    gave the first token all it had. Above the diagonal stays 0.
    """
    rest = weights.clone()
    rest[..., 0] = 0
    rest = rest / rest.sum(dim=-1, keepdim=True)  # 0 / 0 is NaN: nothing left to show in that row
    rest[..., 0] = torch.nan
    return rest


def write_lengths(z: Tensor, out_proj: Tensor) -> Tensor:
    """The length of each head's write into the stream: z (H, T, d), out_proj (D, D) -> (H, T).

    The length of z W is taken from z (W W^T) z^T, d by d a head instead of T by D, in float64.
    """
    heads, _, d = z.shape
    slices = double(out_proj).unflatten(1, (heads, d)).permute(1, 2, 0)  # (D, H d) -> (H, d, D)
    z = z.double()
    return (z @ (slices @ slices.mT) * z).sum(dim=-1).clamp(min=0).sqrt()  # (H, T)


@of_model
def mean_writes(trace: Trace, model: GPTModel) -> Tensor:
    """Each head's mean write over the text, (n_layers, H). Needs `z` of every block."""
    outs = [block.att.out_proj.weight for block in model.trf_blocks]
    lengths = [write_lengths(trace["z", b], out) for b, out in enumerate(outs)]
    return torch.stack(lengths).mean(dim=-1).float()  # (n_layers, H, T) -> (n_layers, H)


@dataclass(frozen=True)
class FirstToken:
    """How much the first token draws: what answers "why is it so often the first token?".

    Over a text of `tokens` tokens: `mean` is the mean attention it gets from later tokens over all heads,
    `even` what it would get if every head spread evenly, `heads` how many of the `of` heads give it more
    than half. For the head asked about: `own`, its mean, `value_norm` of the first token and `other_norms`,
    the mean over the other tokens.
    """

    tokens: int
    mean: float
    even: float
    heads: int
    of: int
    own: float
    value_norm: float
    other_norms: float

    @property
    def draws_all(self) -> bool:
        """Whether the heads together give the first token clearly more than even heads would."""
        return self._lift(self.mean) >= SINK

    @property
    def draws_own(self) -> bool:
        """Whether the head that was asked about gives it clearly more than an even head would."""
        return self._lift(self.own) >= SINK

    @property
    def hands_little(self) -> bool:
        """Whether the first token's value is clearly shorter than the others' in the head asked about."""
        return self.value_norm <= SHORT * self.other_norms

    def _lift(self, share: float) -> float:
        """A share, from even (0) to all there is (1); 0 where the text is too short."""
        if self.tokens >= 4:
            return (share - self.even) / (1 - self.even)
        return 0.0


SHORT = 0.8  # of the other tokens' mean length: a value that hands over clearly less
SINK = 0.3  # of the way from even attention to nothing but the first token


def first_token(shares: Tensor, v: Tensor, block: int, head: int) -> FirstToken | None:
    """Measure the pull of the first token; None for a text of one token.

    `shares` (n_layers, H): every head's mean attention to it over the later queries, as in `head_scores`;
    `v` (T, d): the values of the head asked about.
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
    """Attention weights (T, T) as a table: a row a query, a column a key; what the mask hides is missing.

    Columns: position, query, then one for each key, named "0 The". NaN stays missing.
    """
    hidden = torch.ones_like(weights, dtype=torch.bool).triu(diagonal=1)
    cells = weights.masked_fill(hidden, torch.nan).numpy()
    keys = pd.DataFrame(cells, columns=[f"{i} {token}" for i, token in enumerate(tokens)])
    keys.insert(0, "position", range(len(tokens)))
    keys.insert(1, "query", tokens)
    return keys
