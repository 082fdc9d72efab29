"""Muting a token: what the word's logit becomes if no later token may look at it, in any head of any block.

Real passes of the model. The attention weights on the muted token are set to zero for all later ones, and
what each has left is scaled up to 1 again: the weights that the softmax would give if the causal mask hid
that token as well. The token itself still sees itself. Nothing is frozen and nothing approximated: what later
parts make of the change is in the result.
"""

from collections.abc import Iterator, Sequence

import torch

from gptviz import forward
from gptviz.edits import Edit
from gptviz.language_model import LanguageModel
from gptviz.sites import SITES

PASS_TOKENS = 2048  # in one batch, at most (a text of more is a batch alone),
PASS_BYTES = 64 * 2**20  # and as many as have attention weights of this size in a block


def without(weights: torch.Tensor, position: int) -> torch.Tensor:
    """Attention weights (..., T, T) in which no later token looks at `position`; rows sum to 1 as before.

    A row that gave it all its attention (to float32's last digit) looks at itself instead.
    """
    changed = weights.clone()
    later = changed[..., position + 1 :, :]  # a view
    later[..., position] = 0
    rest = later.sum(dim=-1, keepdim=True)
    own = torch.eye(weights.shape[-1], dtype=torch.bool, device=weights.device)[position + 1 :]
    later.copy_(torch.where(rest > 0, later / rest, own.to(weights)))
    return changed


def muted(
    lm: LanguageModel,
    ids: Sequence[int],
    muted: Sequence[int],
    token: int,
    against: int | None = None,
    position: int = -1,
    edits: Sequence[Edit] = (),
) -> Iterator[tuple[int, float]]:
    """(position that was muted, the logit's loss by it), in order, as the passes are made.

    The loss is the logit of `token` at `position` (its difference to that of `against`) less what it is with
    that token muted: positive where the token speaks for the word. Texts go through in batches; with `edits`
    a pass each. ValueError at once for positions that the text does not have.
    """
    n = len(ids)
    wrong = [p for p in (*muted, position) if not -n <= p < n]
    if wrong:
        raise ValueError(f"there is no position {wrong[0]}; the text has 0 to {n - 1}")
    places = [p % n for p in muted]
    logits = _edited(lm, ids, places, position, edits) if edits else _batched(lm, ids, places, position)
    return _losses(logits, places, lm, token, against)


def _losses(
    finals: Iterator[torch.Tensor], muted: Sequence[int], lm: LanguageModel, token: int, against: int | None
) -> Iterator[tuple[int, float]]:
    head = lm.model.out_head.weight.detach()
    row = head[token].double().cpu() - (0.0 if against is None else head[against].double().cpu())  # (D,)
    whole = next(finals).double() @ row
    for place, final in zip(muted, finals, strict=True):
        yield place, float(whole - final.double() @ row)


def _batched(
    lm: LanguageModel, ids: Sequence[int], muted: Sequence[int], position: int
) -> Iterator[torch.Tensor]:
    """What the output head is given at `position`, (D,): as the model is, then for each muted token."""
    ids = list(ids)[: position % len(ids) + 1]  # nothing later has a say
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
        yield from forward.hidden(lm.model, batch, hooks)[:, -1].float().cpu()  # (b, T, D) -> b of (D,)


def _edited(
    lm: LanguageModel, ids: Sequence[int], muted: Sequence[int], position: int, edits: Sequence[Edit]
) -> Iterator[torch.Tensor]:
    """The same for a pass with edits, whose sites are those of one text."""
    for place in (None, *muted):
        hide = [] if place is None else [_hide(b, place) for b in range(lm.config.n_layers)]
        yield lm.trace(ids, keep=["final"], edits=[*edits, *hide])["final"][position]


def _hide(block: int, place: int) -> Edit:
    return Edit("attn", block, lambda weights: without(weights, place))
