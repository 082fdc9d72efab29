"""Readings: numbers that are linear in the residual stream, and each part's contribution to them.

A logit minus the mean of all is one, with the final LayerNorm's mean and scale frozen at their position. So
is what a head reads by its values, with norm1's frozen and the attention weights as they are; and, to first
order, what it reads by its queries and keys. The stream is a sum (embedding, every head, every feed-forward,
biases), and a linear number of a sum is the sum of the numbers of its parts: that is all that `parts` does.

Elhage et al., A Mathematical Framework for Transformer Circuits, 2021 (Q-, K- and V-composition).

Where queries and keys are turned by their positions, a head reads each position's key along a direction of its
own; a norm of each head's queries and keys is frozen, too.

Shapes in comments: T tokens, n positions up to the one that is looked at, D dimensions, H heads, d head_dim.
"""

from dataclasses import dataclass

import torch

from gptviz.analysis.attention import of_heads, rows_of_attention
from gptviz.analysis.logit_attribution import reader
from gptviz.analysis.reads import of_model
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Model
from gptviz.engine.layer_norms import kept_norms
from gptviz.engine.sites import scored, start
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import MEAN, Against, OneToken

# What the readings need of a trace, and `attn` as well of a pass with edits: see `rows_of_attention`.
SITES = (start, "resid_pre", "q", "k", scored, "v", "z", "mlp_out")

WAYS = ("V", "Q", "K")  # in which a head reads: by its values, its query, its keys

# The last two rows of what `parts` gives; all rows before them are what the parts of the model wrote.
BIASES = -2
REST = -1


@dataclass(frozen=True)
class Reading:
    """The sum over j of `factors[j]` * (stream before block `depth` at j · `direction`) + `constants[j]`.

    factors and constants (n,), direction (D,), all float32; or (n, D), a direction for each j. A depth of
    n_layers is the stream after the last block. The direction's mean is 0 where a LayerNorm reads: that is how
    it takes the stream's mean away.
    """

    depth: int
    factors: torch.Tensor
    direction: torch.Tensor
    constants: torch.Tensor

    def at(self, position: int) -> torch.Tensor:
        """The direction at a position, (D,)."""
        if self.direction.dim() == 1:
            return self.direction
        return self.direction[position]


@dataclass(frozen=True)
class Part:
    """A term of the residual stream: "embedding" (token and position), "head", "feed-forward" (its bias with
    it), "biases" (those of out_proj, and what norm and projection of the reading add), or "rest" (what
    rounding, or an edit of the pass, leaves between the stream and the sum of its parts)."""

    kind: str
    block: int | None = None
    head: int | None = None


@of_model
def word_reading(
    trace: Trace, model: Model, token: OneToken, against: Against = MEAN, position: int = -1
) -> Reading:
    """The reading of a word: its logit minus the mean of all, or minus that of `against`. Exact.

    The final LayerNorm is frozen: see `gptviz.analysis.attribution`. Needs the last `resid_post`.
    ValueError for a position or a token that does not exist.
    """
    factors = torch.zeros(trace.place_of(position) + 1)
    factors[-1] = 1
    read = reader(trace, model, token, against, position)
    return Reading(trace.config.n_layers, factors, read.direction.float(), factors * read.constant)


@of_model
def head_slope(
    trace: Trace, model: Model, reading: Reading, block: int, head: int, position: int
) -> torch.Tensor:
    """The derivative of one head's contribution to a reading at one position, by each scaled score, (n,).

    It writes total = sum of w * value: w (n,), its attention, and value (n,), what the reading makes of each
    key's value. So d total / d score = w (value - total).
    """
    v = of_heads(trace, "v", block)[head, : position + 1]  # (n, d)
    taken = _taken(model, reading, block, head, position)  # (d,)
    values = reading.factors[position] * (v @ taken)  # (n,)
    attention = weights(trace, block, head, position)
    return attention * (values - attention @ values)


@of_model
def read_by(
    trace: Trace, model: Model, reading: Reading, block: int, head: int, position: int, by: str
) -> Reading:
    """The reading of a head's part through its values, its query or its keys: `by` is one of `WAYS`.

    "V": at every key, exact, and it sums to the part. "Q", at `position` only, and "K", at every key, to
    first order: the gradient of the part with respect to the query, or the keys, times these; norm1's mean
    and scale, and all else, as they are.
    """
    if by == "V":
        taken = _taken(model, reading, block, head, position)  # (d,)
        factors = reading.factors[position] * weights(trace, block, head, position)  # (n,)
        return _behind(trace, model, block, "W_value", head, taken, factors)
    slope = head_slope(trace, model, reading, block, head, position)
    kind = architecture_of(model)
    att = model.trf_blocks[block].att
    of_query, of_key = kind.scores
    keys = of_heads(trace, of_key, block)[head, : position + 1]  # (n, d)
    query = trace[of_query, block][head, position]  # (d,)
    slope = slope / len(query) ** 0.5
    if by == "K":
        projected = of_heads(trace, "k", block)[head, : position + 1]  # (n, d)
        taken = kind.projected(att, "k", projected, query, 0)  # (d,), or (n, d)
        return _behind(trace, model, block, "W_key", head, taken, slope)
    only_query = torch.zeros(position + 1)
    only_query[position] = 1
    projected = trace["q", block][head, position]  # (d,)
    # (n,) x (n, d) -> (d,)
    taken = kind.projected(att, "q", projected, slope @ keys, position)
    return _behind(trace, model, block, "W_query", head, taken, only_query)


@of_model
def parts(trace: Trace, model: Model, reading: Reading) -> tuple[list[Part], torch.Tensor]:
    """The P terms of a reading, and their contributions at each position, (P, n); they sum to the reading.

    First the embedding, then of each block its heads and its feed-forward; the last two are biases and rest.
    """
    n = len(reading.factors)
    direction = reading.direction
    names = [Part("embedding")]
    rows = [_along(trace[architecture_of(model).start][:n], direction)]  # (n,)
    biases = torch.zeros(())
    for b in range(reading.depth):
        att = model.trf_blocks[b].att
        z = trace["z", b][:, :n]  # (H, n, d)
        heads, _, d = z.shape
        through = direction @ tensor(att.out_proj.weight)  # (D,) x (D, H d) -> (H d,), or (n, H d)
        names += [Part("head", b, h) for h in range(heads)]
        if direction.dim() == 1:
            taken = through.view(heads, d, 1)  # (H d,) -> (H, d, 1)
            rows += list((z @ taken)[:, :, 0])  # (H, n, d) x (H, d, 1) -> H of (n,)
        else:
            taken = through.view(n, heads, d)  # (n, H d) -> (n, H, d)
            rows += list(torch.einsum("hnd,nhd->hn", z, taken))  # H of (n,)
        names.append(Part("feed-forward", b))
        rows.append(_along(trace["mlp_out", b][:n], direction))
        if att.out_proj.bias is not None:
            biases = biases + direction @ tensor(att.out_proj.bias)
    values = torch.stack([*rows, biases.expand(n)])  # (P - 1, n)
    leftover = _along(stream(trace, reading.depth)[:n], direction) - values.sum(dim=0)
    values = torch.cat([values, leftover[None]]) * reading.factors  # (P, n)
    values[BIASES] += reading.constants
    return [*names, Part("biases"), Part("rest")], values


def _along(rows: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Each row along the direction, or along its own of as many: (n, D) -> (n,)."""
    if direction.dim() == 1:
        return rows @ direction
    return (rows * direction).sum(dim=-1)


@undisturbed
def stream(trace: Trace, depth: int) -> torch.Tensor:
    """The residual stream before block `depth`, (T, D); after the last block for depth n_layers."""
    last = trace.config.n_layers
    if depth == last:
        return trace["resid_post", last - 1]
    return trace["resid_pre", depth]


@undisturbed
def weights(trace: Trace, block: int, head: int, position: int) -> torch.Tensor:
    """One head's attention weights at one position, (n,): see `rows_of_attention`."""
    return rows_of_attention(trace, block, torch.tensor([position]), slice(head, head + 1))[0, 0]


def tensor(weight: torch.Tensor) -> torch.Tensor:
    """A model's weight as the analysis computes with it: CPU float32, detached; no copy of one that is."""
    return weight.detach().float().cpu()


def _taken(model: Model, reading: Reading, block: int, head: int, position: int) -> torch.Tensor:
    """What a reading takes of a head's z at a position: its W_O, transposed, times the direction, (d,)."""
    att = model.trf_blocks[block].att
    d = att.head_dim
    # (D,) x (D, d)
    return reading.at(position) @ tensor(att.out_proj.weight[:, head * d : (head + 1) * d])


def _behind(
    trace: Trace,
    model: Model,
    block: int,
    name: str,
    head: int,
    taken: torch.Tensor,
    factors: torch.Tensor,
) -> Reading:
    """The reading of the stream before a block that is factors[j] * (W(norm1(x_j))[head] · taken).

    W is the projection of this `name`, and `taken` (d,), or (n, d) if it is another for each j.
    """
    norm = next(norm for norm in kept_norms(model) if norm.source == ("resid_pre", block))
    projection = getattr(model.trf_blocks[block].att, name)
    d = taken.shape[-1]
    # a group of heads has its rows in common
    row = head * (len(projection.weight) // d) // trace.config.n_heads
    rows = slice(row * d, (row + 1) * d)
    # (d,) x (d, D) -> (D,): before the norm's scale
    direction = taken @ tensor(projection.weight[rows])
    bias = 0.0 if projection.bias is None else taken @ tensor(projection.bias[rows])
    shift = 0.0 if norm.shift is None else direction @ tensor(norm.shift)
    x = trace["resid_pre", block][: len(factors)]  # (n, D)
    spread = norm.deviation(x)  # (n,): what norm1 divides each row by
    # x · this = (x - mean(x)) · (direction * scale)
    centred = norm.centre(direction * tensor(norm.scale))
    return Reading(block, factors / spread, centred, factors * (shift + bias))
