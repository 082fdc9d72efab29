"""Change one token of a text so that the model predicts another word.

Patching compares two texts that are as alike as can be. Each token in turn is replaced by what the model
itself would have written there instead, and all these texts are read, in batches; the one is taken whose
prediction moves most.

Shapes: B texts of one batch, T tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gptviz.engine import forward
from gptviz.engine.architecture import architecture_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Before
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.fast import kernels
from gptviz.tokenizer import has_token

MOST = 64  # tokens that are tried: the last ones
INSTEAD = 12  # of the model's first choices for a place, the first that a text can hold
BATCH_TOKENS = 2048
PARTS = 3  # batches: the texts of the last one share most of what comes before their changes


@dataclass(frozen=True)
class Counterpart:
    """The text with `token` instead of the token at `position`.

    `moved` is by how many logits the difference of the two texts' first choices changed.
    """

    ids: tuple[int, ...]
    text: str
    position: int
    token: int
    moved: float


@undisturbed
def counterpart(
    lm: LanguageModel,
    ids: Sequence[int],
    position: int = -1,
    special_tokens: bool = False,
    own: Trace | None = None,
) -> Counterpart | None:
    """Return, of the texts with one token changed, the one that moves the prediction at `position` most.

    Changed are tokens before `position`, the last 64 of them, and that at `position` only if no other change
    makes the model say something else. The very first token, which nothing predicts, becomes the one with
    the most similar embedding. A text counts only if it is cut into these very tokens again. None if no such
    change makes the model say another word first. `own` is the trace of these ids, where there is one.
    With the model's own edits in every pass. Raises ValueError as `lm.trace` does, and for a trace of other
    weights.
    """
    ids = list(ids)
    index = range(len(ids))[position] if ids else 0
    # a change may be about a later token, or count from the end: then the whole text is read
    read = len(ids) if lm.edits else index + 1
    trace = own or lm.trace(ids[:read], keep=["final", *architecture_of(lm.model).past])
    trace.of(lm.model)
    before = trace.logits(index)  # (V,)
    first = int(before.argmax())
    for places in (range(max(0, index - MOST), index), [index]):
        texts = dict(_changed(lm, trace["final"], ids, places, special_tokens))
        logits = _logits(lm, trace, texts, index)  # (n, V)
        top = logits.argmax(dim=-1)  # (n,)
        moved = (
            before[first]
            - before[top]
            - logits[:, first]
            + logits.take_along_dim(top[:, None], 1)[:, 0]
        )
        moved[top == first] = -torch.inf
        if (top != first).any():
            place = list(texts)[int(moved.argmax())]
            ids = texts[place]
            return Counterpart(
                tuple(ids), lm.decode(ids, begin=False), place, ids[place], float(moved.max())
            )
    return None


def _changed(
    lm: LanguageModel, final: torch.Tensor, ids: list[int], places: Sequence[int], special: bool
) -> Iterator[tuple[int, list[int]]]:
    """Yield each place with the ids that have another token there; places that no token fits are left out."""
    head = lm.model.out_head.weight.detach()
    scores = kernels.linear(final[[max(0, place - 1) for place in places]].to(head), head)  # (P, V)
    for place, row in zip(places, scores, strict=True):
        if not place:
            table = lm.model.tok_emb.weight.detach()  # (V, D)
            # (V,): the order of the cosines
            row = kernels.linear(table[ids[0]], table) / table.norm(dim=-1)
        for token in row.float().topk(min(INSTEAD, len(row))).indices.tolist():
            changed = [*ids[:place], token, *ids[place + 1 :]]
            is_other = token != ids[place] and has_token(lm.tokenizer, token)
            if (
                is_other
                and lm.encode(lm.decode(changed, begin=False), special_tokens=special) == changed
            ):
                yield place, changed
                break


def _logits(
    lm: LanguageModel, trace: Trace, texts: dict[int, list[int]], index: int
) -> torch.Tensor:
    """The logits at `index` of each text, (n, V); a text is that of `trace` up to its key, the changed place.

    In batches, from the first place on that is another; with the model's own edits a pass each.
    """
    if lm.edits:
        rows = [lm.trace(ids, keep=[]).logits(index)[None] for ids in texts.values()]
        if rows:
            return torch.cat(rows)  # (1, V) each -> (n, V)
        return torch.zeros(0, lm.config.vocab_size)
    places = list(texts)
    model = lm.model
    kind = architecture_of(model)
    finals = []
    size = max(1, min(BATCH_TOKENS // (index + 1), -(-len(places) // PARTS)))
    for i in range(0, len(places), size):
        batch = places[i : i + size]
        first = places[i]
        past = Before(
            *([trace[site, b][:, :first] for b in range(lm.config.n_layers)] for site in kind.past)
        )
        ids = torch.tensor([texts[place][first : index + 1] for place in batch])
        with forward.running(model):
            stream = kind.embed(model, ids, torch.arange(first, index + 1))  # (B, t, D)
        finals.append(forward.hidden_from(model, 0, stream.detach(), (), index - first, past))
    if finals:
        return forward.logits_of(model, torch.cat(finals))  # (B, D) each -> (n, D) -> (n, V)
    return torch.zeros(0, lm.config.vocab_size)
