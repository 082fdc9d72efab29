"""Knock-out: what becomes of a prediction when one part of the model is muted, for every part in turn.

A muted part changes nothing before it: its pass begins at its own block, with what came into that block, and
the parts of a block go through the rest of the model together, as one batch. Positions after the one that is
looked at are left out, since nothing of them reaches it.

This is the total effect: later parts read a stream without the part and write something else, and the final
LayerNorm divides by another number. What the part wrote for the word by itself is its direct share
(`gptviz.analysis.attribution`); the two differ, and can even have different signs.

Shapes: B parts of one batch, T tokens, H heads, D emb_dim, V vocabulary.

Michel et al., Are Sixteen Heads Really Better than One?, 2019; Wang et al., Interpretability in the Wild,
2022; McGrath et al., The Hydra Effect, 2023 (other heads stand in for a muted one).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd
import torch

from gptviz.analysis.against import difference
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
from gptviz.engine.edits import Edit
from gptviz.engine.forward import logits_of
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.variants import variants
from gptviz.tokenizer import named_bytes, show_token
from gptviz.tokenizer.one import Against, OneToken, both_ids, one_token

MEASURED = ("logit", "probability", "effect", "lost")
BASELINES = ("zero", "mean", "sample")

HEAD_ROWS = 64  # of which the output head makes logits at once

Target = OneToken | tuple[OneToken, Against]


@dataclass(frozen=True)
class MutedPart:
    """A part that is muted: a head, a block's attention with its bias, or a block's feed-forward."""

    kind: str
    block: int
    head: int | None = None

    def edit(self, baseline: str) -> Edit:
        """The same as an edit of one pass."""
        site = {"head": "z", "attention": "attn_out", "feed-forward": "mlp_out"}[self.kind]
        return Edit(site, self.block, baseline, None if self.head is None else [self.head])


@undisturbed
def knock_out(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    baseline: str = "zero",
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Mute every part in turn: the logit of `target` against the mean, its probability, and what changed.

    `target` is a token, by its id or its text (" mill", with its space), or a pair (token, against); without
    one it is what the model says first. `logit` is the token's logit minus the mean of all logits, or minus
    that of `against`: a logit alone supports nothing (`gptviz.analysis.against`). `probability` is the
    token's. A muted part gives "zero", or with `baseline` "mean" its mean over the text's positions: what it
    gives to any token of this text alike; with "sample" its mean over a sample of text in the model without
    edits (`gptviz.engine.sample_means`).
    `effect` is `logit` minus that of the model as it is: below zero where the token loses by the muting.
    `lost` is the probability of the model as it is minus `probability`.

    Columns: kind ("head", "attention", "feed-forward"), block, head (<NA> where there is none), logit,
    probability, effect, lost; of every block its heads, its attention, its feed-forward. The rows are those
    of `lm.trace(text, edits=[...])` with the edits `z`, `attn_out`, `mlp_out`, within 1e-5 in float32.

    Of a list of texts, with one target for all or a list of one for each, the numbers are means over them;
    logit_se, probability_se, effect_se and lost_se are their standard errors, n is how many texts there are.

    The model's own edits are made in every pass, the muted part being one more.
    `progress(done, of)` is called after every batch, without a lock: what it raises stops the work.
    Raises ValueError as `lm.trace` does, and for tokens, baselines and positions that do not exist.
    """
    if is_many(text):
        tables = over(knock_out, lm, text, target, progress, baseline=baseline, position=position)
        return averaged(tables, MEASURED)
    sites = ["resid_pre", *(["z", "attn_out", "mlp_out"] if baseline == "mean" else [])]
    trace = lm.trace(text, keep=sites)
    index = trace.place_of(position)
    aim = of_one_text(target)
    ids = check(lm, int(trace.logits(index).argmax()) if aim is None else aim, baseline)
    [logit], [probability] = _measured(trace.logits(index)[None], *ids)
    parts = parts_of(lm)
    finals: list[torch.Tensor] = []
    for rows in batches(lm, trace, index, baseline):
        finals += rows
        progress(len(finals), len(parts))
    measured: list[tuple[float, float]] = []
    # (parts, D) in chunks: the output head's weights are read once for each
    for chunk in torch.stack(finals).split(HEAD_ROWS):
        measured += zip(*_measured(logits_of(lm.model, chunk), *ids), strict=True)
    table = pd.DataFrame(map(vars, parts)).astype({"block": "Int64", "head": "Int64"})
    table[["logit", "probability"]] = measured
    return table.assign(effect=table["logit"] - logit, lost=probability - table["probability"])


def parts_of(lm: LanguageModel) -> list[MutedPart]:
    """All parts that can be muted, in the order of the rows: H + 2 a block."""
    return [
        part
        for b in range(lm.config.n_layers)
        for part in (
            *(MutedPart("head", b, h) for h in range(lm.config.n_heads)),
            MutedPart("attention", b),
            MutedPart("feed-forward", b),
        )
    ]


def check(lm: LanguageModel, target: Target, baseline: str) -> tuple[int, int | None]:
    """The target's ids, None for the mean. Raises ValueError for an unknown target or baseline."""
    one_of("baseline", baseline, BASELINES)
    pair = target if isinstance(target, tuple) else (target,)
    if len(pair) not in (1, 2):
        raise ValueError(f"target is {target!r}; give a token, or a pair of them")
    token, against = both_ids(
        lambda id_or_text, _: one_token(lm.tokenizer, lm.config.vocab_size, id_or_text, "target"), *pair
    )
    if token == against:
        shown = show_token(named_bytes(lm.tokenizer, token))
        raise ValueError(f"target is twice {shown}, and the difference 0: give two tokens, or one")
    return token, against


def _measured(logits: torch.Tensor, token: int, against: int | None) -> tuple[list[float], list[float]]:
    """(B, V) -> of each the difference of logits, and the target's probability."""
    return difference(logits, token, against).tolist(), logits.double().softmax(dim=-1)[:, token].tolist()


@undisturbed
def batches(lm: LanguageModel, trace: Trace, at: int, baseline: str) -> Iterator[torch.Tensor]:
    """Yield what the output head gets with each part muted, (B, D): as many of a block as fit a batch."""
    trace.of(lm.model)
    stop = len(trace) if lm.edits else at + 1  # an edit may look at the whole text
    for b in range(lm.config.n_layers):
        edits = [part.edit(baseline) for part in parts_of(lm) if part.block == b]
        if baseline == "mean":  # over all of the text, whatever is looked at
            edits = [replace(edit, value=trace[edit.site, b].mean(dim=-2, keepdim=True)) for edit in edits]
        yield from variants(lm, trace["resid_pre", b][:stop], b, [[edit] for edit in edits], at)
