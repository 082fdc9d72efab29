"""Direct logit attribution: the exact contribution of each part of the model to one token's logit.

The stream that the final LayerNorm reads is a sum: the embedding, the position, what every head wrote, each
out_proj's bias, what every feed-forward wrote. With the LayerNorm's scale frozen at what it was at this
position, a logit is linear in that sum, and so is its difference to the mean of all logits, which is what a
part can support (`gptviz.analysis.against`). Each part has a share of it, and the shares add up to it:

    logits[token] - mean(logits) = h . (scale * (x - mean(x)) / s + shift),    s = sqrt(var(x) + eps), frozen
                                 = sum over parts of  r . part  +  h . shift
    with h = head[token] - mean of all rows of head,  r = (g - mean(g)) / s,  g = scale * h

An RMSNorm subtracts no mean and adds no shift: r = g / s there, with the root of the mean square of x in s.

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
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.against import difference, direction, double
from gptviz.analysis.attention import edited_weights, handed_on, of_heads, rows_of_attention
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, over
from gptviz.analysis.reads import of_model, reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Config, Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.layer_norms import kept_norms
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import Key, scored
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.fast import kernels
from gptviz.tokenizer.one import MEAN, Against, OneToken, both_ids

BREAKING = ("embed", "resid_pre", "attn_out", "resid_mid", "resid_post", "final")
"""An edit here makes the stream another than the sum of what the parts wrote."""


EDIT = "edit"
ROUNDING = "rounding"


def sites(config: Config) -> list[str | Key]:
    """The sites of a trace that `attribution` reads."""
    added = architecture_of(config).embedded.values()
    return [*added, "z", "mlp_out", ("resid_post", config.n_layers - 1)]


@dataclass(frozen=True)
class Reader:
    """A difference of logits, linear in the stream: `direction` (D,), and `constant`, which comes from no part.

    For any part of the stream (D,), `direction @ part` is its share of the difference of logits.
    """

    direction: torch.Tensor
    constant: float


@of_model
def reader(
    trace: Trace, model: Model, token: OneToken, against: Against = MEAN, position: int = -1
) -> Reader:
    """The final LayerNorm, frozen at what it was, and `token` against the mean, or another, behind it.

    Needs the last block's `resid_post`. Raises ValueError for an unknown token or a position out of range.
    """
    divisor = spread(trace, model, position)
    norm = kept_norms(model)[-1]
    head = direction(model, *both_ids(trace.token_id, token, against))
    towards = head * double(norm.scale)
    if norm.shift is None:
        constant = 0.0
    else:
        constant = float(head @ double(norm.shift))
    return Reader(norm.centre(towards) / divisor, constant)


@of_model
def spread(trace: Trace, model: Model, position: int = -1) -> float:
    """The number that the final LayerNorm divides by at a position.

    Needs the last block's `resid_post`.
    """
    x = trace["resid_post", trace.config.n_layers - 1][trace.place_of(position)].double()  # (D,)
    return float(kept_norms(model)[-1].deviation(x))


@of_model
def direct_effects(
    trace: Trace, model: Model, writes: torch.Tensor, position: int = -1
) -> torch.Tensor:
    """The effect of vectors added to the stream (n, D) on every logit minus the mean of all: (n, V).

    For each token what `reader` says of that token, with the final LayerNorm's divisor held as it is.
    """
    norm = kept_norms(model)[-1]
    head = model.out_head.weight.detach()
    centred = norm.centre(writes.to(head))
    logits = kernels.linear(centred * (norm.scale / spread(trace, model, position)), head)
    logits = logits.float().cpu()  # (n, V)
    return logits - logits.mean(dim=-1, keepdim=True)


@of_model
def attribution(
    trace: Trace, model: Model, token: OneToken, against: Against = MEAN, position: int = -1
) -> pd.DataFrame:
    """Each part's contribution to the logit of `token`, minus the mean of all logits, at a position.

    With a token as `against`, of the logit of `token` minus that of `against`. A token is given by its id, or
    by its text (" mill", with its space).

    Columns: part, block, head (<NA> where there is none), contribution. The parts, in the order of the pass:
    "embedding", "position" (if the model adds one), then of every block "head" (H rows), "attention bias"
    (out_proj's, if it has one) and "feed-forward"; at last "final shift" (the final LayerNorm's, if it has
    one). Contributions sum to `logit(trace, token, against, position)` within 1e-4.

    Of an edited run the parts are those of the changed pass. An edit that replaces the stream itself, or what
    a whole attention or the final LayerNorm gives out, makes a row "edit": what the replacement put in
    place of what the parts wrote. A model in bfloat16 rounds the stream at every step to three digits;
    its row "rounding" is what that comes to.

    Needs `sites(trace.config)`. Raises ValueError for an unknown token or a position out of range.
    """
    index = trace.place_of(position)
    read = reader(trace, model, token, against, index)
    rows: list[tuple[str, int | None, int | None, float]] = [
        (name, None, None, float(read.direction @ trace[site][index].double()))
        for name, site in architecture_of(model).embedded.items()
    ]
    shares = heads_along(trace, model, read.direction, index)  # (L, H)
    for b, trf_block in enumerate(model.trf_blocks):
        rows += [("head", b, head, share) for head, share in enumerate(shares[b].tolist())]
        if trf_block.att.out_proj.bias is not None:
            share = float(read.direction @ double(trf_block.att.out_proj.bias))
            rows.append(("attention bias", b, None, share))
        rows.append(
            ("feed-forward", b, None, float(read.direction @ trace["mlp_out", b][index].double()))
        )
    written = sum(row[3] for row in rows)
    if kept_norms(model)[-1].shift is not None:
        rows.append(("final shift", None, None, read.constant))
    leftovers = _rest(trace, model, token, against, index, read, written)
    rows += [(part, None, None, share) for part, share in leftovers]
    table = pd.DataFrame(rows, columns=["part", "block", "head", "contribution"])
    return table.astype({"block": "Int64", "head": "Int64"})


def by_depth(contributions: pd.DataFrame) -> pd.DataFrame:
    """The sum in the order of the pass: what each half of a block adds, and how much there is after it.

    `contributions` is what `attribution` gives. A row for the embedding (with the position's), for the
    attention and the feed-forward layer of every block, and for the rest (the final LayerNorm's shift, an
    edit, rounding) where there is one. Columns: part, block (<NA> where there is none), own, and so_far: the
    sum up to there. That is what the stream after this half says with the final LayerNorm's divisor held at
    what it is in the end, as TransformerLens' `accumulated_resid` with `apply_ln` has it; its own guess, by
    its own divisor, is the logit lens's. The last so_far is the logit.
    """
    halves = {"head": "attention", "attention bias": "attention", "feed-forward": "feed-forward"}
    called = {"embedding": "embedding", "position": "embedding"} | halves
    steps = contributions["part"].map(called).fillna("rest")
    order = [steps, contributions["block"]]
    own = contributions.groupby(order, sort=False, dropna=False)["contribution"].sum()
    table = own.rename("own").reset_index().astype({"block": "Int64"})
    return table.assign(so_far=table["own"].cumsum())


@undisturbed
def attributions(
    lm: LanguageModel,
    text: Texts,
    target: OneToken | tuple[OneToken, Against] | list[Any] | None = None,
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """`attribution` of a text, or its mean over a list of them: contribution, contribution_se and n.

    `target` is a token or a pair (token, against), for a list one for all or a list of one for each; without
    one it is what the model says first. Standard errors are those of `knock_out`.
    """
    if is_many(text):
        tables = over(attributions, lm, text, target, progress, position=position)
        return averaged(tables, ["contribution"], groups=groups_of(lm, text, target))
    trace = lm.trace(text, keep=sites(lm.config))
    if target is None:
        aim: Any = int(trace.logits(position).argmax())
    else:
        aim = target
    if isinstance(aim, tuple):
        token, against = aim
    else:
        token = aim
        against = MEAN
    table = attribution(trace, lm, token, against, position)
    progress(1, 1)
    return table


@of_model
def source_tokens(
    trace: Trace, model: Model, token: OneToken, against: Against = MEAN, position: int = -1
) -> torch.Tensor:
    """What each token up to `position` contributed through each head, r . (a_ij v_j W_O): (L, H, T).

    Summed over tokens it is the heads' contributions of `attribution`, exactly. Where the model has a bias
    in its values, v_j holds it too: a row of attention sums to 1, so the head writes that bias wherever it
    looks, and token j is given a_ij of it.

    In an edited run a head gives as many times that as its `z` was multiplied by, so 0 where zero replaced
    it; one whose `z` was replaced by anything else wrote what comes from no token: NaN.

    Needs `v` and the last `resid_post`, and `attn` or else the sites of the scores; of an edited run `attn` and `z`.
    """
    index = trace.place_of(position)
    direction = reader(trace, model, token, against, index).direction
    contributions = torch.zeros(
        trace.config.n_layers, trace.config.n_heads, len(trace), dtype=torch.float64
    )
    for block in range(trace.config.n_layers):
        contributions[block, :, : index + 1] = _given(trace, model, block, direction, index)
    return contributions


def _given(
    trace: Trace, model: Model, block: int, direction: torch.Tensor, index: int
) -> torch.Tensor:
    """What each token up to `index` gave through the heads of a block, (H, n): see `source_tokens`."""
    weights = rows_of_attention(trace, block, torch.tensor([index]))[:, 0].double()  # (H, n)
    values = of_heads(trace, "v", block)[:, : index + 1].double()  # (H, n, d)
    # (H, n, d) x (H, d) -> (H, n)
    contributions = weights * torch.einsum(
        "hnd,hd->hn", values, _through_out_proj(model, block, direction)
    )
    return contributions * handed_on(trace, model, block, index, weights, values)


@of_model
def heads_along(
    trace: Trace, model: Model, direction: torch.Tensor, position: int = -1
) -> torch.Tensor:
    """What each head writes at a position along a direction (D,) of the stream, such as a `Reader`'s: (L, H).

    Needs `z`. Without the bias of out_proj, which belongs to no head.
    """
    index = trace.place_of(position)
    writes = torch.zeros(trace.config.n_layers, trace.config.n_heads, dtype=torch.float64)
    for block in range(trace.config.n_layers):
        z = trace["z", block][:, index].double()  # (H, d)
        writes[block] = (z * _through_out_proj(model, block, direction)).sum(dim=-1)
    return writes


# ---- what the page "Why this token?" reads ----


@reads(lambda lm, *_: tuple(sites(lm.config)))
def logit_shares(
    lm: LanguageModel, t: Trace, token: int, against: int | None = None, position: int = -1
) -> pd.DataFrame:
    """The rows of `attribution`, then their "sum", and "the model's own": the difference of its logits."""
    table = attribution(t, lm.model, token, against, position)
    ends = [table["contribution"].sum(), logit(t, token, against, position)]
    rows = pd.DataFrame({"part": ["sum", "the model's own"], "contribution": ends})
    return pd.concat([table, rows], ignore_index=True)


@dataclass(frozen=True)
class HeadsRead:
    """The contributions of a block's heads to a word, by the n tokens that they read.

    `given` (H, n) is `source_tokens` of the block, `attention` (H, n) where the heads look, `anyway` (H,)
    what each writes wherever it looks: the part of its values' bias.
    """

    given: NDArray[np.float64]
    attention: NDArray[np.float32]
    anyway: NDArray[np.float64]


@reads(
    lambda lm, block, *_: (
        *((site, block) for site in ("v", "z", *(edited_weights(lm) or scored(lm)))),
        ("resid_post", lm.config.n_layers - 1),
    )
)
def heads_read(
    lm: LanguageModel,
    t: Trace,
    block: int,
    token: int,
    against: int | None = None,
    position: int = -1,
) -> HeadsRead:
    """r . (a_ij v_j W_O) for every head of a block and every token j up to `position`, i."""
    index = t.place_of(position)
    direction = reader(t, lm.model, token, against, index).direction  # r, (D,)
    contributions = _given(t, lm.model, block, direction, index)  # (H, n)
    looks = rows_of_attention(t, block, torch.tensor([index]))[:, 0]  # a_ij, (H, n)
    through = _through_out_proj(lm.model, block, direction)  # W_O r, (H, d)
    bias = lm.model.trf_blocks[block].att.W_value.bias
    if bias is None:
        anyway = torch.zeros(len(through))
    else:
        # (K d,) -> (K, d) -> (H, d)
        own = double(bias).view(-1, through.shape[1])
        own = own.repeat_interleave(len(through) // len(own), dim=0)
        anyway = (own * through).sum(-1)  # (H,)
    return HeadsRead(contributions.numpy(), looks.numpy(), anyway.numpy())


@undisturbed
def logit(trace: Trace, token: OneToken, against: Against = MEAN, position: int = -1) -> float:
    """The model's own: by how much the logit of `token` is above the mean of all, or above `against`'s."""
    return float(difference(trace.logits(position), *both_ids(trace.token_id, token, against)))


def _rest(
    trace: Trace,
    model: Model,
    token: OneToken,
    against: Against,
    index: int,
    read: Reader,
    written: float,
) -> Iterator[tuple[str, float]]:
    """Yield what no part wrote: an edit of the stream, and the rounding of a model in bfloat16."""
    edited = {edit.site for edit in trace.edits}
    total = written + read.constant
    if edited & set(BREAKING):
        stream = float(
            read.direction @ trace["resid_post", trace.config.n_layers - 1][index].double()
        )
        edit = stream - written
        if "final" in edited:
            edit += logit(trace, token, against, index) - stream - read.constant
        total += edit
        yield EDIT, edit
    if model.out_head.weight.dtype != torch.float32:
        yield ROUNDING, logit(trace, token, against, index) - total


def _through_out_proj(model: Model, block: int, direction: torch.Tensor) -> torch.Tensor:
    """The effect of a number of each head's z on the difference: W_O r, split by heads, (H, d)."""
    att = model.trf_blocks[block].att
    towards = double(att.out_proj.weight).T @ direction  # (H d, D) x (D,) -> (H d,)
    return towards.view(att.num_heads, -1)  # (H d,) -> (H, d)
