"""A second text made from a first: one token changed, so that the model says another word.

Patching compares two texts that are as alike as can be. Each token in turn is replaced by what the model
itself would have written there instead, and all these texts are read, in batches; the one is taken whose
prediction moves most.

Shapes: B texts of one batch, T tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.fast import kernels
from gptviz.tokenizer import has_token, token_bytes

MOST = 64  # tokens that are tried: the last ones
INSTEAD = 12  # of the model's first choices for a place, the first that a text can hold
BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Counterpart:
    """The text with `token` in the place of what stood at `position`; `moved` is by how many logits the
    difference of the two texts' first choices changed."""

    ids: tuple[int, ...]
    text: str
    position: int
    token: int
    moved: float


def counterpart(
    lm: LanguageModel, ids: Sequence[int], position: int = -1, special_tokens: bool = False
) -> Counterpart | None:
    """Of the texts with one token changed the one that moves the prediction at `position` most.

    Changed are tokens before `position`, the last 64 of them, and that at `position` only if no other change
    makes the model say something else. The very first token, which nothing predicts, becomes the one with
    the most similar embedding. A text counts only if it is cut into these very tokens again. None if no such
    change makes the model say another word first. Raises ValueError as `lm.trace` does.
    """
    ids = list(ids)
    trace = lm.trace(ids, keep=["final"])
    at = range(len(ids))[position]
    first = int(trace.logits(at).argmax())
    for places in (range(max(0, at - MOST), at), [at]):
        variants = [
            changed
            for place in places
            if (changed := _changed(lm, trace["final"], ids, place, special_tokens))
        ]
        found = [one for one in _measured(lm, ids, variants, at, first) if one is not None]
        if found:
            return max(found, key=lambda one: one.moved)
    return None


def _changed(
    lm: LanguageModel, final: torch.Tensor, ids: list[int], place: int, special: bool
) -> tuple[int, list[int], str] | None:
    """The place, and ids and text with another token there; None where no text can hold one."""
    head = lm.model.out_head.weight.detach()
    if place:
        scores = kernels.linear(final[place - 1].to(head), head)  # (V,)
    else:
        table = lm.model.tok_emb.weight.detach()
        scores = torch.nn.functional.cosine_similarity(table, table[ids[0]][None])  # (V,)
    for token in scores.float().topk(min(INSTEAD, len(scores))).indices.tolist():
        if token == ids[place] or not has_token(lm.tokenizer, token):
            continue
        changed = [*ids[:place], token, *ids[place + 1 :]]
        text = b"".join(token_bytes(lm.tokenizer, i) for i in changed).decode("utf-8", "replace")
        if lm.encode(text, special_tokens=special) == changed:
            return place, changed, text
    return None


def _measured(
    lm: LanguageModel,
    ids: list[int],
    variants: list[tuple[int, list[int], str]],
    at: int,
    first: int,
) -> list[Counterpart | None]:
    """Of each text how far it moves the prediction; None where the first choice stays."""
    size = max(1, BATCH_TOKENS // (at + 1))
    found: list[Counterpart | None] = []
    own = _logits(lm, [ids[: at + 1]])[0]
    for i in range(0, len(variants), size):
        some = variants[i : i + size]
        for (place, changed, text), logits in zip(
            some, _logits(lm, [one[: at + 1] for _, one, _ in some]), strict=True
        ):
            now = int(logits.argmax())
            moved = float(own[first] - own[now] - logits[first] + logits[now])
            one = Counterpart(tuple(changed), text, place, changed[place], moved)
            found.append(None if now == first else one)
    return found


def _logits(lm: LanguageModel, texts: list[list[int]]) -> torch.Tensor:
    """(B, T) ids -> (B, V), after the last token; with the model's own edits a pass each."""
    if lm.edits:
        return torch.stack([lm.trace(ids, keep=[]).logits(-1) for ids in texts])
    batch = torch.tensor(texts, device=lm.model.tok_emb.weight.device)  # (B, T)
    return forward.last_logits(lm.model, batch).float().cpu()
