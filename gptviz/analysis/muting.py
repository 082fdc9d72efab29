"""Muting a token: what a word loses if no later token may look at it, in any head of any block.

Real passes of the model. The attention weights on the muted token are set to zero for all later ones, and
what each has left is scaled up to 1 again: the weights that the softmax would give if the causal mask hid
that token as well. The token itself still sees itself. Nothing is frozen and nothing approximated: what later
parts make of the change is in the result.
"""

from collections.abc import Iterator, Sequence

import torch

from gptviz.analysis.against import MEAN, Against, both_ids, direction
from gptviz.engine import forward
from gptviz.engine.edit_values import without
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import SITES
from gptviz.tokenizer.one import OneToken, one_token

PASS_TOKENS = 2048  # in one batch, at most (a text of more is a batch alone),
PASS_BYTES = 64 * 2**20  # and as many as have attention weights of this size in a block


def muted(
    lm: LanguageModel,
    ids: Sequence[int],
    muted: Sequence[int],
    token: OneToken,
    against: Against = MEAN,
    position: int = -1,
) -> Iterator[tuple[int, float]]:
    """(position that was muted, the logit's loss by it), in order, as the passes are made.

    The loss is the logit of `token` at `position` minus the mean of all logits (or minus that of `against`),
    less what that is with the token muted. Texts go through in batches, each with the model's edits.
    ValueError at once for positions that the text does not have, and for what is no token.
    """
    n = len(ids)
    wrong = [p for p in (*muted, position) if not -n <= p < n]
    if wrong:
        raise ValueError(f"there is no position {wrong[0]}; the text has 0 to {n - 1}")
    places = [p % n for p in muted]
    pair = both_ids(
        lambda one, what: one_token(lm.tokenizer, lm.config.vocab_size, one, what), token, against
    )
    return _losses(_batched(lm, ids, places, position), places, direction(lm.model, *pair))


def _losses(
    finals: Iterator[torch.Tensor], muted: Sequence[int], row: torch.Tensor
) -> Iterator[tuple[int, float]]:
    whole = next(finals).double() @ row
    for place, final in zip(muted, finals, strict=True):
        yield place, float(whole - final.double() @ row)


def _batched(
    lm: LanguageModel, ids: Sequence[int], muted: Sequence[int], position: int
) -> Iterator[torch.Tensor]:
    """What the output head is given at `position`, (D,): as the model is, then for each muted token."""
    at = position % len(ids)
    ids = list(ids) if lm.edits else list(ids)[: at + 1]  # nothing later has a say, but in an edit
    size = 4 * lm.config.n_heads * len(ids) ** 2
    some = max(1, min(PASS_TOKENS // len(ids), PASS_BYTES // size))
    wanted: list[int | None] = [None, *muted]
    for start in range(0, len(wanted), some):
        places = wanted[start : start + some]

        def visit(weights: torch.Tensor, places: list[int | None] = places) -> torch.Tensor:
            rows = [w if p is None else without(w, p) for w, p in zip(weights, places, strict=True)]
            return torch.stack(rows)  # (b, H, T, T)

        site = SITES["attn"]
        hooks = [
            forward.Hook(site.edited_module.format(b=b), site.side, visit) for b in range(lm.config.n_layers)
        ]
        batch = torch.tensor([ids] * len(places), device=lm.model.tok_emb.weight.device)  # (b, T)
        yield from lm.hidden(batch, hooks)[:, at].float().cpu()  # (b, T, D) -> b of (D,)
