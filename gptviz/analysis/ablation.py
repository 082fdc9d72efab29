"""Knock-out (ablation): how a prediction changes when one part of the model is muted, for each part in turn.

A part is a head, the attention of a block, or the feed-forward of a block. To mute it is to put zero or a
mean in the place of its output. What comes before it does not change, so its pass begins at its own block
with the block's input, and all parts of one block are run as a batch. Positions after the one whose
prediction is measured are left out, since the causal mask hides them from it.

This measures the total effect: later parts also change, as they read a residual stream without the part, and
the final LayerNorm divides by another number. What the part itself adds to the logit is its direct effect
(`gptviz.analysis.attribution`); the two differ and can even have different signs.

Shapes: B parts of one batch, T tokens, H heads, D emb_dim, V vocabulary.

Michel et al., Are Sixteen Heads Really Better than One?, 2019; Wang et al., Interpretability in the Wild,
2022; McGrath et al., The Hydra Effect, 2023 (other heads stand in for a muted one).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from gptviz.analysis.abc_means import ABC, Mean, abc_mean
from gptviz.analysis.against import MEASURES, measured
from gptviz.analysis.moved import ROUNDING
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
from gptviz.engine.edit_values import named
from gptviz.engine.edits import Edit, Replacement
from gptviz.engine.forward import logits_of
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.variants import variants
from gptviz.tokenizer import named_bytes, show_token
from gptviz.tokenizer.one import Against, OneToken, both_ids, one_token

# columns that are averaged over several texts
MEASURED = ("logit", "probability", "effect", "lost", "loss", "rise")
# what a muted part gives instead, and the same in words
GIVES = {"zero": "0", "mean": "its mean over the text", "sample": "its mean over a sample of text"}
BASELINES = tuple(GIVES)

HEAD_ROWS = 64  # the number of rows to which the output head is applied at once

Target = OneToken | tuple[OneToken, Against]


@dataclass(frozen=True)
class MutedPart:
    """A part that is muted: a head, a block's attention with its bias, or a block's feed-forward."""

    kind: str
    block: int
    head: int | None = None

    def edit(self, baseline: Replacement) -> Edit:
        """The edit that mutes this part: it gives instead what the baseline says, or these numbers."""
        site = {"head": "z", "attention": "attn_out", "feed-forward": "mlp_out"}[self.kind]
        return Edit(site, self.block, baseline, None if self.head is None else [self.head])


@undisturbed
def knock_out(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    baseline: str | list[str] = "zero",
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Mute every part in turn, and return a table of how the prediction of `target` changes.

    Args:
        text: a text, or a list of texts.
        target: a token, by id or text (" mill", with its space), or a pair (token, against); None is the most
            probable token. For a list of texts, one for all or a list with one for each.
        baseline: what the muted part gives: "zero", its "mean" over the positions of the text, or with
            "sample" its mean over a sample of texts in the model without edits
            (`gptviz.engine.sample_means`); or what it gives in another text of as many tokens, position by
            position: "ids5+17+9" (`gptviz.analysis.patches.value_of`); or with "abc", of a text with two names, its
            mean over sentences with three different ones, position by position (`gptviz.analysis.abc_means`). For a
            list of texts, one for all or a list with one for each.
        position: the position whose next token is predicted.
        progress: `progress(done, of)` is called after every batch; an exception that it raises stops the
        work.

    Columns, with a row for each part (a block's heads, then its attention, then its feed-forward):
        kind: "head", "attention" or "feed-forward"; block; head (<NA> for the other kinds)
        logit: the token's logit minus the mean of all logits, or minus that of `against`, with the part muted
            (why not the logit alone: `gptviz.analysis.against`)
        probability: that of the token with the part muted
        effect: `logit` minus the same without muting; below 0 if muting lowers the logit
        lost: the probability without muting minus `probability`
        loss: minus the logarithm of `probability`, in nats; rise: `loss` minus the same without muting

    The numbers are those of `lm.trace(text, edits=[...])` with edits of `z`, `attn_out` and `mlp_out`, within
    1e-5 in float32. The model's own edits are made in every pass, before the one that mutes.

    For a list of texts the numbers are means over them; logit_se, probability_se and so on are their standard
    errors, and n is the number of texts. Of two texts that are each other's with the two words of the target
    exchanged it is the error over pairs (`gptviz.analysis.names.groups_of`).

    Raises ValueError as `lm.trace` does, and for tokens, baselines and positions that do not exist.
    """
    if is_many(text):
        each = {"baseline": baseline}
        tables = over(knock_out, lm, text, target, progress, each, position=position)
        return averaged(tables, MEASURED, groups=groups_of(lm, text, target))
    null: str = of_one_text(baseline, "baseline", "one baseline")
    sites = ["resid_pre", *(["z", "attn_out", "mlp_out"] if null == "mean" else [])]
    trace = lm.trace(text, keep=sites)
    index = trace.place_of(position)
    aim = of_one_text(target)
    ids = check(lm, int(trace.logits(index).argmax()) if aim is None else aim, null)
    own = {name: float(value) for name, value in measured(trace.logits(index), *ids).items()}
    parts = parts_of(lm)
    finals: list[torch.Tensor] = []
    for rows in batches(lm, trace, index, null, ids):
        finals += rows
        progress(len(finals), len(parts))
    values: dict[str, list[float]] = {name: [] for name in MEASURES}
    # (parts, D), in chunks of up to HEAD_ROWS rows, as reading the output head's weights takes most of the
    # time
    for chunk in torch.stack(finals).split(HEAD_ROWS):
        for name, numbers in measured(logits_of(lm.model, chunk), *ids).items():
            values[name] += numbers.tolist()
    table = pd.DataFrame(map(vars, parts)).astype({"block": "Int64", "head": "Int64"})
    return table.assign(
        logit=values["logit"],
        probability=values["probability"],
        effect=np.array(values["logit"]) - own["logit"],
        lost=own["probability"] - np.array(values["probability"]),
        loss=values["loss"],
        rise=np.array(values["loss"]) - own["loss"],
    )


def parts_of(lm: LanguageModel) -> list[MutedPart]:
    """All parts that can be muted, in the order of the table's rows: H + 2 for each block."""
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
    """The ids of the target and of what it is compared with (None: the mean of all logits).

    Raises ValueError for an unknown token or baseline, and for a pair of the same token.
    """
    other_ids(baseline)
    pair = target if isinstance(target, tuple) else (target,)
    if len(pair) not in (1, 2):
        raise ValueError(f"target is {target!r}; give a token, or a pair of them")
    token, against = both_ids(
        lambda id_or_text, _: one_token(lm.tokenizer, lm.config.vocab_size, id_or_text, "target"),
        *pair,
    )
    if token == against:
        shown = show_token(named_bytes(lm.tokenizer, token))
        raise ValueError(f"target is twice {shown}, and the difference 0: give two tokens, or one")
    return token, against


def other_ids(baseline: str) -> tuple[int, ...] | None:
    """The ids of the text whose values a muted part gives; None for one of `BASELINES`.

    Raises ValueError for what is neither.
    """
    value = named(baseline)
    if value is not None and value.name == "ids":
        return value.numbers
    one_of("baseline", baseline, (*BASELINES, ABC))
    return None


@undisturbed
def muted_value(
    lm: LanguageModel, baseline: str, text: Sequence[int], pair: tuple[int, int | None]
) -> str | Trace | Mean:
    """The value of the edits that mute parts as a baseline says.

    That is the baseline itself; or, where it names other texts, what every part gives in these, as this model reads
    them, edits and all. `text` are the ids of the text, and `pair` those of `check`. Raises ValueError unless the other
    text has as many tokens, and as `abc_mean` does.
    """
    if baseline == ABC:
        return abc_mean(lm, text, *pair)
    ids = other_ids(baseline)
    if ids is None:
        return baseline
    length = len(text)
    if len(ids) != length:
        raise ValueError(
            f"the text has {length} tokens and that of the baseline {len(ids)}; a muted part gives what it gives "
            "there at the same position, so both need as many"
        )
    return lm.trace(ids, keep=["z", "attn_out", "mlp_out"])


def changes_nothing(table: pd.DataFrame) -> pd.Series:
    """For each part of `knock_out`'s table, whether muting it moves neither number by more than rounding.

    `table` has `lost` as well: by how much the probability is lower.
    """
    return table[["effect", "lost"]].abs().max(axis=1) <= ROUNDING


@undisturbed
def batches(
    lm: LanguageModel, trace: Trace, at: int, baseline: str, pair: tuple[int, int | None]
) -> Iterator[torch.Tensor]:
    """Yield the input of the output head at position `at`, with each part muted: (B, D) for a batch of parts.

    The parts are in the order of `parts_of`; a batch has parts of one block only. `pair` are the ids of `check`.
    """
    trace.of(lm.model)
    stop = len(trace) if lm.edits else at + 1  # an edit may look at the whole text
    value = muted_value(lm, baseline, [token.id for token in trace.tokens], pair)
    for b in range(lm.config.n_layers):
        edits = [part.edit(value) for part in parts_of(lm) if part.block == b]
        if baseline == "mean":  # over all of the text, whatever is looked at
            edits = [
                replace(edit, value=trace[edit.site, b].mean(dim=-2, keepdim=True))
                for edit in edits
            ]
        yield from variants(lm, trace["resid_pre", b][:stop], b, [[edit] for edit in edits], at)
