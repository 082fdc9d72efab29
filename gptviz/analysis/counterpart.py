"""A second text made from a first: one token changed, so that the model says another word.

Patching compares two texts that are as alike as can be. Each token in turn is replaced by what the model
itself would have written there instead, and all these texts are read, in batches; the one is taken whose
prediction moves most.

Shapes: B texts of one batch, T tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.fast import kernels
from gptviz.tokenizer import has_token

MOST = 64  # tokens that are tried: the last ones
INSTEAD = 12  # of the model's first choices for a place, the first that a text can hold
BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Counterpart:
    """The text with `token` in the place of what stood at `position`.

    `moved` is by how many logits the difference of the two texts' first choices changed.
    """

    ids: tuple[int, ...]
    text: str
    position: int
    token: int
    moved: float


def counterpart(
    lm: LanguageModel, ids: Sequence[int], position: int = -1, special_tokens: bool = False
) -> Counterpart | None:
    """Return, of the texts with one token changed, the one that moves the prediction at `position` most.

    Changed are tokens before `position`, the last 64 of them, and that at `position` only if no other change
    makes the model say something else. The very first token, which nothing predicts, becomes the one with
    the most similar embedding. A text counts only if it is cut into these very tokens again. None if no such
    change makes the model say another word first. Raises ValueError as `lm.trace` does.
    """
    ids = list(ids)
    trace = lm.trace(ids, keep=["final"])
    at = range(len(ids))[position]
    own = _logits(lm, [ids[: at + 1]])[0]  # (V,)
    first = int(own.argmax())
    for places in (range(max(0, at - MOST), at), [at]):
        changed = _changed(lm, trace["final"], ids, places, special_tokens)
        texts = {place: text for place, text in zip(places, changed, strict=True) if text is not None}
        logits = _logits(lm, [text[: at + 1] for text in texts.values()])  # (n, V)
        now = logits.argmax(dim=-1)  # (n,)
        moved = own[first] - own[now] - logits[:, first] + logits.take_along_dim(now[:, None], 1)[:, 0]
        moved[now == first] = -torch.inf
        if (now != first).any():
            place = list(texts)[int(moved.argmax())]
            ids = texts[place]
            return Counterpart(tuple(ids), lm.decode(ids), place, ids[place], float(moved.max()))
    return None


def _changed(
    lm: LanguageModel, final: torch.Tensor, ids: list[int], places: Sequence[int], special: bool
) -> Iterator[list[int] | None]:
    """Yield for each place the ids with another token there; None where no text can hold one."""
    head = lm.model.out_head.weight.detach()
    scores = kernels.linear(final[[max(0, place - 1) for place in places]].to(head), head)  # (P, V)
    for place, row in zip(places, scores, strict=True):
        if not place:
            table = lm.model.tok_emb.weight.detach()
            row = torch.nn.functional.cosine_similarity(table, table[ids[0]][None])  # (V,)
        yield next(
            (
                changed
                for token in row.float().topk(min(INSTEAD, len(row))).indices.tolist()
                if token != ids[place] and has_token(lm.tokenizer, token)
                for changed in ([*ids[:place], token, *ids[place + 1 :]],)
                if lm.encode(lm.decode(changed), special_tokens=special) == changed
            ),
            None,
        )


def _logits(lm: LanguageModel, texts: list[list[int]]) -> torch.Tensor:
    """(n, T) ids -> (n, V), after the last token, in batches; with the model's own edits a pass each."""
    if lm.edits:
        rows = [lm.trace(ids, keep=[]).logits(-1)[None] for ids in texts]
    else:
        size = max(1, BATCH_TOKENS // max(map(len, texts), default=1))
        batches = (texts[i : i + size] for i in range(0, len(texts), size))
        device = lm.model.tok_emb.weight.device
        rows = [
            forward.last_logits(lm.model, torch.tensor(batch, device=device)).float().cpu()
            for batch in batches
        ]
    return torch.cat(rows) if rows else torch.zeros(0, lm.config.vocab_size)
