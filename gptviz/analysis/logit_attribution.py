"""Direct logit attribution: what each part of the model wrote towards one token, exactly.

The stream that the final LayerNorm reads is a sum: the embedding, the position, what every head wrote, each
out_proj's bias, what every feed-forward wrote. With the LayerNorm's scale frozen at what it was at this
position, a logit is linear in that sum, and so is its difference to the mean of all logits, which is what a
part can support (`gptviz.analysis.against`). Each part has a share of it, and the shares add up to it:

    logits[token] - mean(logits) = h . (scale * (x - mean(x)) / s + shift),    s = sqrt(var(x) + eps), frozen
                                 = sum over parts of  r . part  +  h . shift
    with h = head[token] - mean of all rows of head,  r = (g - mean(g)) / s,  g = scale * h

Taking the mean is linear: each part loses its own mean, and the means together are the stream's. A head's
part is in turn a sum over the tokens that it read: head = sum_j a_ij v_j W_O, so r . (a_ij v_j W_O) says
which earlier token, through which head. With a token as `against`, h is the difference of two rows.

A share is what a part writes for the word itself. What later parts make of it is not in it, nor that the
LayerNorm would divide by another s without it: see `gptviz.analysis.knock_out`.

Shapes: L blocks, H heads, T tokens, D emb_dim, V vocabulary. All in float64, from the captured numbers.

nostalgebraist, interpreting GPT: the logit lens, 2020; Elhage et al., A Mathematical Framework for
Transformer Circuits, 2021; TransformerLens' `decompose_resid` and `logit_attrs` treat the LayerNorm alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.analysis.against import MEAN, Against, both_ids, difference, direction
from gptviz.engine.config import GPTConfig
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Trace
from gptviz.fast import kernels
from gptviz.model import GPTModel
from gptviz.tokenizer.one import OneToken

BREAKING = ("embed", "resid_pre", "attn_out", "resid_mid", "resid_post", "final")
"""An edit here makes the stream another than the sum of what the parts wrote."""

EDIT, ROUNDING = "edit", "rounding"


def sites(config: GPTConfig) -> list[str | tuple[str, int]]:
    """What `attribution` reads; `source_tokens` reads `v`, and `attn` or the reduction `read_at`, too."""
    return ["tok_emb", "pos_emb", "z", "mlp_out", ("resid_post", config.n_layers - 1)]


@dataclass(frozen=True)
class Reader:
    """What reads the stream at one position: `direction` (D,), and `constant`, which no part wrote.

    `spread` is what the final LayerNorm divides by there, sqrt(variance + eps). For any part of the stream
    (D,), `direction @ part` is its share of the difference of logits.
    """

    direction: torch.Tensor
    constant: float
    spread: float


def reader(
    trace: Trace, model: GPTModel, token: OneToken, against: Against = MEAN, position: int = -1
) -> Reader:
    """The final LayerNorm, frozen at what it was, and `token` against the mean, or another, behind it.

    Needs the last block's `resid_post`. Raises ValueError for a token or position that there is not.
    """
    divisor = spread(trace, model, position)
    norm, head = model.final_norm, direction(model, *both_ids(trace.token_id, token, against))
    towards = head * _double(norm.scale)
    constant = 0.0 if norm.shift is None else float(head @ _double(norm.shift))
    return Reader((towards - towards.mean()) / divisor, constant, divisor)


def spread(trace: Trace, model: GPTModel, position: int = -1) -> float:
    """What the final LayerNorm divides by at a position. Needs the last block's `resid_post`."""
    x = trace["resid_post", trace.config.n_layers - 1][position_of(trace, position)].double()  # (D,)
    return float(torch.sqrt(x.var(unbiased=False) + trace.of(model).final_norm.eps))


def direct_effects(trace: Trace, model: GPTModel, writes: torch.Tensor, position: int = -1) -> torch.Tensor:
    """What rows that are written into the stream (n, D) add to every logit minus the mean of all: (n, V).

    For each token what `reader` says of that token, with the final LayerNorm's divisor held as it is.
    """
    norm, head = model.final_norm, model.out_head.weight.detach()
    centred = writes.to(head) - writes.to(head).mean(dim=-1, keepdim=True)
    logits = kernels.linear(centred * (norm.scale.detach() / spread(trace, model, position)), head)
    logits = logits.float().cpu()  # (n, V)
    return logits - logits.mean(dim=-1, keepdim=True)


def attribution(
    trace: Trace, model: GPTModel, token: OneToken, against: Against = MEAN, position: int = -1
) -> pd.DataFrame:
    """Each part's share of the logit of `token` minus the mean of all logits at a position.

    With a token as `against`, of the logit of `token` minus that of `against`. A token is given by its id, or
    by its text (" mill", with its space).

    Columns: part, block, head (<NA> where there is none), contribution. The parts, in the order of the pass:
    "embedding", "position", then of every block "head" (H rows), "attention bias" (out_proj's, if it has one)
    and "feed-forward"; at last "final shift" (the final LayerNorm's, if it has one). Contributions sum to
    `logit(trace, token, against, position)` within 1e-4.

    Of an edited run the parts are those of the changed pass. An edit that replaces the stream itself, or what
    a whole attention or the final LayerNorm gives out, makes a row "edit": what the replacement put in
    place of what the parts wrote. A model in bfloat16 rounds the stream at every step to three digits;
    its row "rounding" is what that comes to.

    Needs `sites(trace.config)`. Raises ValueError for a token or position that there is not.
    """
    at = position_of(trace, position)
    read = reader(trace, model, token, against, at)
    rows: list[tuple[str, int | None, int | None, float]] = [
        (name, None, None, float(read.direction @ trace[site][at].double()))
        for name, site in (("embedding", "tok_emb"), ("position", "pos_emb"))
    ]
    for b, trf_block in enumerate(model.trf_blocks):
        z = trace["z", b][:, at].double()  # (H, d)
        shares = (z * _through_out_proj(model, b, read.direction)).sum(dim=-1)  # (H,)
        rows += [("head", b, head, share) for head, share in enumerate(shares.tolist())]
        if trf_block.att.out_proj.bias is not None:
            share = float(read.direction @ _double(trf_block.att.out_proj.bias))
            rows.append(("attention bias", b, None, share))
        rows.append(("feed-forward", b, None, float(read.direction @ trace["mlp_out", b][at].double())))
    written = sum(row[3] for row in rows)
    if model.final_norm.shift is not None:
        rows.append(("final shift", None, None, read.constant))
    rows += [
        (part, None, None, share) for part, share in _rest(trace, model, token, against, at, read, written)
    ]
    parts, blocks, heads, contributions = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "part": parts,
            "block": pd.array(blocks, dtype="Int64"),
            "head": pd.array(heads, dtype="Int64"),
            "contribution": contributions,
        }
    )


def source_tokens(
    trace: Trace, model: GPTModel, token: OneToken, against: Against = MEAN, position: int = -1
) -> torch.Tensor:
    """What each earlier token gave through each head: (L, H, T), r . (a_ij v_j W_O), 0 after `position`.

    Summed over tokens it is the heads' contributions of `attribution`, exactly. Where the model has a bias
    in its values, v_j holds it too: a row of attention sums to 1, so the head writes that bias wherever it
    looks, and token j is given a_ij of it; `value_bias` says how much that is.

    In an edited run, a head whose `z` was replaced by zero gives 0 everywhere, one whose `z` was replaced by
    anything else wrote what comes from no token: NaN.

    Needs `v` and `resid_post`, and of `attn` either the site or the reduction `read_at(position)`; of an
    edited run `z` as well.
    """
    at = position_of(trace, position)
    read = reader(trace, model, token, against, at)
    edited = {b for edit in trace.edits if edit.site == "z" for b in edit.blocks(trace.config.n_layers)}
    near = 1e-4 if model.out_head.weight.dtype == torch.float32 else 0.05
    found = []
    for block in range(trace.config.n_layers):
        weights = _attention_row(trace, block, at)  # (H, T)
        through = _through_out_proj(model, block, read.direction)  # (H, d)
        values = trace["v", block].double()  # (H, T, d)
        given = weights * torch.einsum("htd,hd->ht", values, through)
        if block in edited:
            z = trace["z", block][:, at].double()  # (H, d)
            own = torch.einsum("ht,htd->hd", weights, values)
            off = (z - own).abs().amax(dim=-1) > near * (1 + own.abs().amax(dim=-1))
            given[off] = torch.nan
            given[off & (z == 0).all(dim=-1)] = 0.0
        found.append(given)
    return torch.stack(found)


def value_bias(
    trace: Trace, model: GPTModel, token: OneToken, against: Against = MEAN, position: int = -1
) -> torch.Tensor:
    """What each head writes towards the token wherever it looks, by W_value's bias: (L, H); 0 without one."""
    read = reader(trace, model, token, against, position)
    found = []
    for block, trf_block in enumerate(model.trf_blocks):
        through = _through_out_proj(model, block, read.direction)  # (H, d)
        bias = trf_block.att.W_value.bias
        found.append(
            torch.zeros(len(through)).double()
            if bias is None
            else (_double(bias).view_as(through) * through).sum(dim=-1)  # (D,) -> (H, d) -> (H,)
        )
    return torch.stack(found)


def logit(trace: Trace, token: OneToken, against: Against = MEAN, position: int = -1) -> float:
    """The model's own: by how much the logit of `token` is above the mean of all, or above `against`'s."""
    return float(difference(trace.logits(position), *both_ids(trace.token_id, token, against)))


@dataclass(frozen=True)
class _Row:
    """A row of attention weights, for `read_at`: (H, T, T) -> (H, T)."""

    position: int

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return attn[:, self.position]


def read_at(position: int) -> Reduction:
    """Where every head looks from one position, taken from a pass that need not keep all weights."""
    return Reduction(f"attention of position {position}", "attn", _Row(position))


def position_of(trace: Trace, position: int) -> int:
    """The same counted from 0. ValueError if the text does not have it."""
    if isinstance(position, bool) or not -len(trace) <= position < len(trace):
        raise ValueError(f"there is no position {position!r}; they go from 0 to {len(trace) - 1}")
    return position % len(trace)


def _rest(
    trace: Trace,
    model: GPTModel,
    token: OneToken,
    against: Against,
    at: int,
    read: Reader,
    written: float,
) -> Iterator[tuple[str, float]]:
    """What no part wrote: an edit of the stream, and the rounding of a model in bfloat16."""
    edited = {edit.site for edit in trace.edits}
    total = written + read.constant
    if edited & set(BREAKING):
        stream = float(read.direction @ trace["resid_post", trace.config.n_layers - 1][at].double())
        edit = stream - written
        if "final" in edited:
            edit += logit(trace, token, against, at) - stream - read.constant
        total += edit
        yield EDIT, edit
    if model.out_head.weight.dtype != torch.float32:
        yield ROUNDING, logit(trace, token, against, at) - total


def _through_out_proj(model: GPTModel, block: int, direction: torch.Tensor) -> torch.Tensor:
    """How much a number of each head's z moves the difference: W_O r, split by heads, (H, d)."""
    att = model.trf_blocks[block].att
    towards = _double(att.out_proj.weight).T @ direction  # (D, D) x (D,) -> (D,)
    return towards.view(att.num_heads, -1)  # (H d,) -> (H, d)


def _attention_row(trace: Trace, block: int, at: int) -> torch.Tensor:
    """(H, T): from the site, or from the reduction of just this row."""
    if trace.holds([("attn", block)]):
        return trace["attn", block][:, at].double()
    wanted = read_at(at)
    if not trace.holds([], [wanted]):
        raise ValueError(
            f"this trace has neither attn of block {block} nor its row at position {at}; trace again with "
            f"keep=[..., 'attn'], or with reduce=[read_at({at})]"
        )
    row: torch.Tensor = trace.reduced(wanted.name)[block]
    return row.double()


def _double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().double().cpu()
