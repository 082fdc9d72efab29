"""Surgery on the cache: change a token's cached keys and values, and see what the model predicts next.

When a token is written, the model passes the last token alone through its blocks; of the tokens before it, it
knows keys and values only. These come from a real pass here, one token's are changed, and the last token is
passed again. Nothing else is made anew: the other tokens' keys and values stay as they were, made at their
positions, and while the changed token still was what it was.

n is the number of cached tokens, V the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pandas as pd
import torch

from gptviz.analysis.moved import kl_bits
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import index_of, of_kind, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Past
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed

Kind = Literal["delete", "swap values", "swap", "freeze"]


@dataclass(frozen=True)
class Operation:
    """An operation on the cached token at `position`.

    delete: its keys and values are taken out of every block. swap values: it and `other` keep their keys and
    exchange their values. swap: they exchange both, so that only the order in the cache is another. freeze:
    the text is read anew with `token` at the position `other`, but of `position` keys and values stay as they
    were. Raises ValueError for what is none of these.
    """

    KINDS: ClassVar[tuple[Kind, ...]] = ("delete", "swap values", "swap", "freeze")

    kind: Kind
    position: int
    other: int | None = None
    token: int | None = None

    def __post_init__(self) -> None:
        one_of("an operation", self.kind, self.KINDS)
        index_of("position", self.position, None)
        if (self.other is None) != (self.kind == "delete"):
            raise ValueError(f"{self.kind} has other = {self.other}; all but delete have one")
        if (self.token is None) == (self.kind == "freeze"):
            raise ValueError(
                f"{self.kind} has token = {self.token}; freeze has one, nothing else has"
            )

    def check(self, cached: int) -> None:
        """Raise a ValueError for a position that is not cached."""
        for position in (self.position, self.other):
            if position is not None and not 0 <= index_of("position", position, None) < cached:
                raise ValueError(
                    f"position {position} is not cached; positions 0 to {cached - 1} are"
                )


@dataclass(frozen=True)
class Surgery:
    """Logits (V,) of what comes next: `uncached` from a whole pass, the others from the last token alone.

    `unfrozen` is for freeze only: those of the changed text, with nothing held back.
    """

    uncached: torch.Tensor
    cached: torch.Tensor
    after: torch.Tensor
    unfrozen: torch.Tensor | None = None

    @property
    def disagreement(self) -> float:
        """The largest difference that the cache makes to a logit where nothing was changed."""
        return float((self.cached - self.uncached).abs().max())

    @property
    def agrees(self) -> bool:
        """Whether the disagreement is only rounding, of float32 or of bfloat16's three digits."""
        rounded = torch.equal(self.cached, self.cached.bfloat16().float())
        return self.disagreement <= (0.05 if rounded else 1e-4) * max(
            1.0, float(self.uncached.abs().max())
        )

    def table(self, ids: Sequence[int]) -> pd.DataFrame:
        """Return a row per id: its probability and logit before and after, and its logit in a whole pass."""
        before, after = (logits.double().softmax(0) for logits in (self.cached, self.after))
        columns = {"probability_before": before, "probability_after": after}
        columns |= {
            "logit_whole_pass": self.uncached,
            "logit_before": self.cached,
            "logit_after": self.after,
        }
        return pd.DataFrame(
            {"id": ids} | {name: values[ids].numpy() for name, values in columns.items()}
        )

    @property
    def kl_bits(self) -> float:
        """KL divergence in bits, from before to after: what it costs to expect `after` for `cached`."""
        return kl_bits(self.cached, self.after)


@undisturbed
def surgery(
    lm: LanguageModel, text: Text, operation: Operation, progress: Progress = ignore_progress
) -> Surgery:
    """Operate on the cache of a text (or ids), and predict the next token by real passes.

    The model's edits are made in every pass. `progress` is called once, before them. Raises ValueError for a
    text of one token, for which nothing is cached, for positions that are not, and for edits that a cache
    cannot have: those that depend on the whole text, and those that say at which positions attention looks
    where one is taken out or another's.
    """
    ids = ids_of(lm, text)
    if len(ids) < 2:
        raise ValueError("of a text of one token nothing is cached when the next one is written")
    of_kind("operation", operation, Operation, 'give one, such as Operation("delete", position=0)')
    operation.check(len(ids) - 1)
    if operation.token is not None:
        ids_of(lm, [operation.token])  # which the model must have
    _check_edits(lm, operation)
    progress(0, 1)
    before = remembered(lm, ids)
    return Surgery(
        uncached=lm.next_logits(ids),
        cached=lm.next_logits(ids[-1:], before.cut(len(before))),
        after=lm.next_logits(ids[-1:], changed(lm, ids, before, operation)),
        unfrozen=lm.next_logits(other_text(ids, operation)) if operation.kind == "freeze" else None,
    )


@undisturbed
def operated(
    lm: LanguageModel, prompt: Text, operation: Operation, ids: Sequence[int]
) -> pd.DataFrame:
    """Return `Surgery.table` of these tokens, for this operation on what is cached of a text."""
    return surgery(lm, prompt, operation).table(ids)


def remembered(lm: LanguageModel, ids: Sequence[int]) -> Past:
    """The keys and values of all tokens but the last."""
    past = Past(lm.model, room=len(ids))
    lm.hidden(lm.batch(ids[:-1]), past=past)
    return past


@undisturbed
def changed(lm: LanguageModel, ids: Sequence[int], before: Past, operation: Operation) -> Past:
    """A new past with the operation done to it; `before` stays as it is."""
    position = operation.position
    other = operation.other
    if other is None:
        return before.without([position])
    if operation.kind == "freeze":
        return remembered(lm, other_text(ids, operation)).replaced(position, before)
    return before.swapped(position, other, keys=operation.kind == "swap")


def other_text(ids: Sequence[int], operation: Operation) -> list[int]:
    """The text with another token in the place that a freeze says."""
    assert operation.other is not None and operation.token is not None
    return [*ids[: operation.other], operation.token, *ids[operation.other + 1 :]]


def _check_edits(lm: LanguageModel, operation: Operation) -> None:
    for edit in lm.edits:
        places = edit.site == "attn" and not (
            edit.named is not None and edit.named.name in ("zero", "uniform", "mean", "x")
        )
        if not edit.is_causal or (places and operation.kind in ("delete", "swap")):
            raise ValueError(
                f"{operation.kind!r} cannot be done with this edit of {edit.site!r}, which means something "
                "else where only the last token is read: take the edit back, or give lm.plain"
            )
