"""An edit's text form, read and refused in a sentence; and what it puts in the place of a site's numbers: the
values' names, and the tensors that they give.

Shapes as a Trace hands a site out: (T, D), (H, T, D/H), or (H, T, K) for attention weights, whose T queries
are the last of K keys. Nothing here writes into a tensor that it was given.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from gptviz.engine.index import listed, whole_number
from gptviz.engine.sites import Key

# ---- the text form ----

EVERY = "*"  # as a block: each of them
GRAMMAR = "site[.block[.head+head]][@position+position]=value, such as z.4.3=zero or resid_pre.2@5=mean"

_PARTS = re.compile(
    r"(?P<site>[^.@=]*)(?:\.(?P<block>[^.@=]*)(?:\.(?P<heads>[^.@=]*))?)?(?:@(?P<positions>[^@=]*))?"
    r"=(?P<value>[^=]*)"
)
_WHOLE = re.compile(r"-?[0-9]{1,9}")

Parts = tuple[str, int | str | None, str, list[int] | None, list[int] | None]


def parts_of(text: str) -> Parts:
    """Site, block, value, heads, positions, as they are written; a blank counts as a +. Raises ValueError."""
    found = _PARTS.fullmatch(text.strip())
    if found is None:
        raise ValueError("it does not have the form of one")
    block = found["block"]
    return (
        found["site"],
        block if block is None or block == EVERY else _whole("block", block),
        found["value"].replace(" ", "+"),
        _split("head", found["heads"]),
        _split("position", found["positions"]),
    )


def indices(what: str, given: Iterable[int]) -> tuple[int, ...]:
    """Whole numbers, each once and in order. Raises ValueError for what is none, and for no number."""
    found = set()
    for one in listed(what, given, "give a list of whole numbers, or None for all of them"):
        if (number := whole_number(one)) is None:
            raise ValueError(f"{what} has {one!r}, which is no whole number")
        found.add(number)
    if not found:
        raise ValueError(f"{what} is empty: nothing would be replaced; name at least one, or None for all")
    return tuple(sorted(found))


def check_range(what: str, given: Iterable[int] | None, low: int, high: int) -> None:
    """Raise a ValueError for the first that is not from `low` to below `high`."""
    wrong = [i for i in given or () if not low <= i < high]
    if wrong:
        raise ValueError(f"there is no {what} {wrong[0]!r}; they go from {low} to {high - 1}")


def _split(what: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    return [_whole(what, part) for part in re.split(r"[+ ]", text)]


def _whole(what: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no {what}, which is a whole number")
    return int(text)


# ---- values ----

NAMES = ("zero", "mean", "sample", "uniform", "first", "previous")
NAMED = (
    ", ".join(f'"{name}"' for name in NAMES)
    + ', or a name with numbers: "hide5" (a position), "shuffle7" (a seed), "ids5+17+9" (token ids), "x0.5" '
    '(times), "+2*tok5-out9" (added rows of tokens; ids, mean: other texts)'
)
FOR_WEIGHTS = ("uniform", "first", "previous", "hide")  # each says where a head looks
NOT_FOR_WEIGHTS = {  # and what they would do to them
    "sample": "give rows of no text",
    "shuffle": "let rows look ahead",
    "add": "add to weights that sum to 1",
}
TABLES = {"tok": "tok_emb", "out": "out_head"}  # a term's name: the table of the model whose row is added

_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_NUMBERED = re.compile(rf"(hide|shuffle)({_NUMBER})|(ids)({_NUMBER}(?:\+{_NUMBER})*)")
_FACTOR = r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{0,5}[1-9])?"
_TIMES = re.compile(f"x(-?{_FACTOR})")
# a number after a + is an id as long as no * stands behind it: then it is the next term's factor
_TERM = re.compile(
    rf"([+-])(?:({_FACTOR})\*)?(tok(?={_NUMBER}\b)|out(?={_NUMBER}\b)|ids|mean)"
    rf"({_NUMBER}(?:\+{_NUMBER})*)(?=[+-]|\Z)"
)


@dataclass(frozen=True)
class Named:
    """A value that can be written down: its name, and its numbers if it has any.

    "x" is a `factor`. "add" is a sum of `terms`: "tok" and "out", a row of the token embedding or the output
    head, "ids", what another text has here, and "mean", the mean over its positions; each times its factor.
    """

    name: str
    numbers: tuple[int, ...] = ()
    factor: float = 1.0
    terms: tuple["Named", ...] = ()

    @property
    def parts(self) -> tuple["Named", ...]:
        """Return its terms, or itself where it has none."""
        return self.terms or (self,)

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """The other texts that it takes numbers from."""
        texts = (one.numbers for one in self.parts if one.name in ("ids", "mean") and one.numbers)
        return tuple(dict.fromkeys(texts))


def named(value: object) -> Named | None:
    """Parse the name of a value; None for what is no value's name."""
    if not isinstance(value, str):
        return None
    if value in NAMES:
        return Named(value)
    if (times := _TIMES.fullmatch(value)) is not None:
        return Named("x", factor=float(times[1]))
    if value[:1] in ("+", "-"):
        return _sum(value)
    found = _NUMBERED.fullmatch(value)
    if found is None:
        return None
    name = found[1] or found[3]
    numbers = found[2] or found[4]
    return Named(name, tuple(map(int, numbers.split("+"))))


def _sum(value: str) -> Named | None:
    terms = []
    at = 0
    while at < len(value):
        found = _TERM.match(value, at)
        numbers = () if found is None else tuple(map(int, found[4].split("+")))
        if found is None or (found[3] in TABLES and len(numbers) > 1):
            return None
        terms.append(Named(found[3], numbers, float(found[1] + (found[2] or "1"))))
        at = found.end()
    return Named("add", terms=tuple(terms))


@runtime_checkable
class Source(Protocol):
    """A holder of a site's numbers in another pass: a Trace."""

    def __len__(self) -> int: ...

    def rows(
        self, site: str, block: int | None = None, start: int = 0, stop: int | None = None
    ) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Plus:
    """In Python: what an edit adds to what stands there, `numbers` times `factor`.

    `numbers` is a trace (what it holds here), or a tensor as an edit may have one; it is copied, and two with
    the same numbers are equal. Of fewer rows than the text has, later positions are given nothing.
    """

    numbers: Tensor | Source
    factor: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.numbers, Tensor):
            object.__setattr__(self, "numbers", self.numbers.detach().float().cpu().clone())
        elif isinstance(self.numbers, str) or not isinstance(self.numbers, Source):
            kind = type(self.numbers).__name__
            raise ValueError(f"what is added is a {kind}; give a trace, or a tensor: torch.as_tensor(...)")
        if not isinstance(self.factor, Real) or not math.isfinite(self.factor):
            raise ValueError(f"factor is {self.factor!r}; it must be a finite number")

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        if not isinstance(self.numbers, Tensor):
            return self.numbers, self.factor
        return self.numbers.shape, sha256(self.numbers.numpy().tobytes()).digest(), self.factor

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Plus):
            return self._identity == other._identity
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def times(self, like: Tensor, key: Key, first: int) -> Tensor:
        """The numbers to add to `like`, whose rows begin at position `first`; 0 beyond its end."""
        return self.factor * given(self.numbers, torch.zeros_like(like), key, first, weights=False)


def known(numbers: Tensor | Source, weights: bool = False) -> int | None:
    """Return for how many tokens of a text there are numbers; None where one row stands for every token."""
    if not isinstance(numbers, Tensor):
        return len(numbers)
    if not weights and numbers.shape[-2:-1] in ((), (1,)):
        return None
    return numbers.shape[-2]


def made(what: Named, value: Tensor, weights: bool) -> Tensor:
    """A new tensor like `value`. Raises ValueError for what only a model can say ("sample", "ids", "add")."""
    if what.name == "zero":
        return torch.zeros_like(value)
    if what.name == "x":
        return value * what.factor
    if what.name == "uniform" or (what.name == "mean" and weights):
        seen = torch.ones_like(value).tril(value.shape[-1] - value.shape[-2])  # the last T of K tokens
        return seen / seen.sum(dim=-1, keepdim=True)
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


def without(weights: Tensor, position: int) -> Tensor:
    """Attention weights (..., T, K) in which no later token looks at `position`; rows sum to 1 as before.

    What each row has left is scaled up: the weights that the softmax would give if the causal mask hid that
    token as well. A row that gave it all its attention (to float32's last digit) looks at itself instead.
    """
    changed = weights.clone()
    rows, keys = weights.shape[-2:]
    first = max(0, position + 1 - (keys - rows))  # the first row that is a later token's
    changed[..., first:, position : position + 1] = 0  # none, where it is later than all of them
    later = changed[..., first:, :]
    rest = later.sum(dim=-1, keepdim=True)
    own = _one_key(weights, back=0)[..., first:, :]
    return torch.cat([changed[..., :first, :], torch.where(rest > 0, later / rest, own)], dim=-2)


def given(numbers: Tensor | Source, like: Tensor, key: Key, first: int, weights: bool) -> Tensor:
    """A new tensor like `like`, whose rows begin at the position `first`, with what `numbers` has for these.

    Rows beyond its end are those of `like`, keys that it lacks are 0. ValueError for what does not fit.
    """
    if isinstance(numbers, Tensor):
        found = _of_tensor(numbers, like, first, weights)
    else:
        stop = min(len(numbers), first + like.shape[-2])
        if stop <= first:
            return like.clone()
        found = numbers.rows(*key, first, stop)
        if weights:
            wide = like.shape[-1] >= found.shape[-1]
        else:
            wide = like.shape[-1] == found.shape[-1]
        if found.shape[:-2] != like.shape[:-2] or not wide:
            raise ValueError(
                f"the trace has {key[0]!r} in the shape {tuple(found.shape)}, this model "
                f"{tuple(like.shape)}: they are of models of other sizes"
            )
    new = like.clone()
    rows = new[..., : found.shape[-2], :]  # a view
    rows[..., found.shape[-1] :] = 0
    rows[..., : found.shape[-1]] = found.to(like)
    return new


def _of_tensor(numbers: Tensor, like: Tensor, first: int, weights: bool) -> Tensor:
    """The rows that a tensor of a whole text has for those of `like`, which begin at the position `first`.

    A tensor of one row, or without that dimension, stands for every position. ValueError if it does not fit.
    """
    if numbers.dim() == 1 and like.dim() == 2:
        numbers = numbers[None]
    heads = numbers.shape[:-2] == like.shape[:-2] or (like.dim() == 3 and numbers.shape[:-2] == (1,))
    wide = numbers.shape[-1:] == like.shape[-1:] or (weights and numbers.shape[-1:] == numbers.shape[-2:-1])
    if numbers.dim() != like.dim() or not heads or not wide:
        raise ValueError(f"a tensor {tuple(numbers.shape)} does not fit; the model has {tuple(like.shape)}")
    if numbers.shape[-2] == 1 and not weights:
        return numbers.expand_as(like)
    keys = like.shape[-1]  # of weights of a whole text, those that are there already
    return numbers[..., first : first + like.shape[-2], :keys].expand(*like.shape[:-2], -1, -1)


def sound(new: Tensor, site: str, weights: bool = False) -> Tensor:
    """Check numbers for a site: ValueError where a pass cannot go on with them.

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


def _one_key(attn: Tensor, back: int) -> Tensor:
    """(..., T, K): all of each row on the key so many tokens back, on the first where there is none."""
    rows, keys = attn.shape[-2:]
    at = (torch.arange(keys - rows, keys, device=attn.device) - back).clamp(min=0)  # (T,)
    looks = torch.zeros_like(attn)
    looks[..., torch.arange(rows, device=attn.device), at] = 1
    return looks
