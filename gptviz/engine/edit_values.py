"""What an edit puts in the place of a site's numbers: the values' names, and the tensors that they give.

Shapes as a Trace hands a site out: (T, D), (H, T, D/H), or (H, T, K) for attention weights, whose T queries
are the last of K keys. Nothing here writes into a tensor that it was given.
"""

import re
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch

NAMES = ("zero", "mean", "sample", "uniform", "first", "previous")
NAMED = (
    ", ".join(f'"{name}"' for name in NAMES)
    + ', or a name with numbers: "hide5" (a position), "shuffle7" (a seed), "ids5+17+9" (token ids)'
)
FOR_WEIGHTS = ("uniform", "first", "previous", "hide")  # each says where a head looks
NOT_FOR_WEIGHTS = ("sample", "shuffle")

_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_NUMBERED = re.compile(rf"(hide|shuffle)({_NUMBER})|(ids)({_NUMBER}(?:\+{_NUMBER})*)")


@dataclass(frozen=True)
class Named:
    """A value that can be written down: its name, and its numbers if it has any."""

    name: str
    numbers: tuple[int, ...] = ()


def named(value: object) -> Named | None:
    """Return what a text says; None for what is no value's name."""
    if not isinstance(value, str):
        return None
    if value in NAMES:
        return Named(value)
    found = _NUMBERED.fullmatch(value)
    if found is None:
        return None
    name, numbers = found[1] or found[3], found[2] or found[4]
    return Named(name, tuple(map(int, numbers.split("+"))))


@runtime_checkable
class Source(Protocol):
    """A holder of a site's numbers in another pass: a Trace."""

    def __len__(self) -> int: ...

    def rows(
        self, site: str, block: int | None = None, start: int = 0, stop: int | None = None
    ) -> torch.Tensor: ...


def made(what: Named, value: torch.Tensor, weights: bool) -> torch.Tensor:
    """A new tensor like `value`. Raises ValueError for what only a model can say ("sample", "ids")."""
    if what.name == "zero":
        return torch.zeros_like(value)
    if what.name == "uniform" or (what.name == "mean" and weights):
        return _uniform(value)
    if what.name == "mean":
        return value.mean(dim=-2, keepdim=True).expand_as(value).clone()
    if what.name in ("first", "previous"):
        return _one_key(value, back=1 if what.name == "previous" else value.shape[-1])
    if what.name == "hide":
        return without(value, what.numbers[0])
    if what.name == "shuffle":
        order = shuffled(value.shape[-2], what.numbers[0])
        return value[..., torch.from_numpy(order).to(value.device), :]
    raise ValueError(f"only a model can say what {what.name!r} is: give the edit to LanguageModel.trace")


def shuffled(count: int, seed: int) -> np.ndarray:
    """The order of "shuffle" and this seed: position i is given the row of position `order[i]`, (count,)."""
    return np.random.default_rng(seed).permutation(count)


def without(weights: torch.Tensor, position: int) -> torch.Tensor:
    """Attention weights (..., T, K) in which no later token looks at `position`; rows sum to 1 as before.

    What each row has left is scaled up: the weights that the softmax would give if the causal mask hid that
    token as well. A row that gave it all its attention (to float32's last digit) looks at itself instead.
    """
    changed = weights.clone()
    rows, keys = weights.shape[-2:]
    first = max(0, position + 1 - (keys - rows))  # the first row that is a later token's
    later = changed[..., first:, :]  # a view
    later[..., position : position + 1] = 0  # none, where it is later than all of them
    rest = later.sum(dim=-1, keepdim=True)
    own = _one_key(weights, back=0)[..., first:, :]
    later.copy_(torch.where(rest > 0, later / rest, own))
    return changed


def placed(given: torch.Tensor, value: torch.Tensor, weights: bool) -> torch.Tensor:
    """A new tensor like `value` whose first rows are `given`; fewer keys than it has are filled up with 0."""
    new, n = value.clone(), given.shape[-2]
    rows = new[..., :n, :]  # a view
    if weights:
        rows.zero_()
        rows[..., : given.shape[-1]] = given.to(value)
    else:
        rows.copy_(given)
    return new


def part_of(given: torch.Tensor, like: torch.Tensor, first: int, weights: bool) -> torch.Tensor:
    """The rows that a tensor of a whole text has for those of `like`, which begin at the position `first`.

    A tensor of one row, or without that dimension, stands for every position. ValueError if it does not fit.
    """
    if given.dim() == 1 and like.dim() == 2:
        given = given[None]
    heads = given.shape[:-2] == like.shape[:-2] or (like.dim() == 3 and given.shape[:-2] == (1,))
    wide = given.shape[-1:] == like.shape[-1:] or (weights and given.shape[-1:] == given.shape[-2:-1])
    if given.dim() != like.dim() or not heads or not wide:
        raise ValueError(
            f"a tensor {tuple(given.shape)} does not fit where the model has {tuple(like.shape)}"
        )
    rows, keys = like.shape[-2:]
    if weights:
        return given[..., first : first + rows, :keys].expand(len(like), -1, -1)
    if given.shape[-2] == 1:
        return given.expand_as(like)
    return given[..., first : first + rows, :].expand(*like.shape[:-2], -1, -1)


def of_source(
    source: Source, like: torch.Tensor, site: str, block: int | None, first: int, weights: bool
) -> torch.Tensor:
    """A new tensor like `like`, whose rows begin at the position `first`, with another pass's rows."""
    stop = min(len(source), first + like.shape[-2])
    if stop <= first:
        return like.clone()
    given = source.rows(site, block, first, stop)
    fits = like.shape[-1] >= given.shape[-1] if weights else like.shape[-1] == given.shape[-1]
    if given.shape[:-2] != like.shape[:-2] or not fits:
        raise ValueError(
            f"the trace has {site!r} in the shape {tuple(given.shape)}, this model {tuple(like.shape)}: they "
            "are of models of other sizes"
        )
    return placed(given, like, weights)


def sound(new: torch.Tensor, site: str, weights: bool = False) -> torch.Tensor:
    """Return what Python gave for a site, if a pass can go on with it; ValueError else.

    `weights` (H, T, K) must not look ahead, so that what stands before stays when the text goes on.
    """
    if not new.isfinite().all():
        raise ValueError(f"the edit of {site!r} gives numbers that are not finite: NaN, or infinite")
    known = new.shape[-1] - new.shape[-2]  # tokens before the first row's
    ahead = new.triu(known + 1).nonzero().tolist() if weights else []  # [head, row, key] each
    if ahead:
        _, row, key = ahead[0]
        raise ValueError(
            f"the edit of {site!r} lets position {row + known} look ahead at position {key}: weights must be "
            "0 where the token stands later (torch.tril makes them so)"
        )
    return new


def _uniform(attn: torch.Tensor) -> torch.Tensor:
    """(H, T, K) of 1 / (number of keys that the query may see): the last T of K tokens."""
    seen = torch.ones_like(attn).tril(attn.shape[-1] - attn.shape[-2])
    return seen / seen.sum(dim=-1, keepdim=True)


def _one_key(attn: torch.Tensor, back: int) -> torch.Tensor:
    """(..., T, K): all of each row on the key so many tokens back, on the first where there is none."""
    rows, keys = attn.shape[-2:]
    at = (torch.arange(keys - rows, keys, device=attn.device) - back).clamp(min=0)  # (T,)
    looks = torch.zeros_like(attn)
    looks[..., torch.arange(rows, device=attn.device), at] = 1
    return looks
