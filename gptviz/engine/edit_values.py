"""The parser of an edit's text form, and the tensors that an edit's value stands for.

An edit replaces the numbers at a site, a place in the model (`sites.sites_of`). Its text form is taken apart by
`parts_of`, and the value in it, such as "zero" or "x0.5", by `named`. From the site's tensor, `replacement`
and the functions below it compute the new one. None of them writes into a tensor that it was given.

Shapes are those of a site in a Trace: T tokens, D emb_dim, H heads; (T, D), (H, T, D/H), or (H, T, K) for
attention weights, whose T queries are the last of K tokens.
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

EVERY = "*"  # written as the block of an edit that is made in every block
GRAMMAR = (
    "site[.block[.head+head]][@position+position]=value, such as z.4.3=zero or resid_pre.2@5=mean"
)

_PARTS = re.compile(
    r"(?P<site>[^.@=]*)(?:\.(?P<block>[^.@=]*)(?:\.(?P<heads>[^.@=]*))?)?(?:@(?P<positions>[^@=]*))?"
    r"=(?P<value>[^=]*)"
)
_WHOLE = re.compile(r"-?[0-9]{1,9}")

# in the order of Edit's fields
Parts = tuple[str, int | str | None, str, list[int] | None, list[int] | None]


def parts_of(text: str) -> Parts:
    """Take a text form apart: site, block, value, heads, positions. A blank counts as a +.

    Raises ValueError for another form, and for a block, head or position that is no whole number.
    """
    match = _PARTS.fullmatch(text.strip())
    if match is None:
        raise ValueError("it does not have the form of one")
    block = match["block"]
    return (
        match["site"],
        block if block is None or block == EVERY else _whole("block", block),
        match["value"].replace(" ", "+"),
        _split("head", match["heads"]),
        _split("position", match["positions"]),
    )


def indices(what: str, given: Iterable[int]) -> tuple[int, ...]:
    """Sort whole numbers and drop duplicates. Raises ValueError for anything else, and for an empty list."""
    numbers = set()
    for item in listed(what, given, "give a list of whole numbers, or None for all of them"):
        if (number := whole_number(item)) is None:
            raise ValueError(f"{what} has {item!r}, which is no whole number")
        numbers.add(number)
    if not numbers:
        raise ValueError(
            f"{what} is empty: nothing would be replaced; name at least one, or None for all"
        )
    return tuple(sorted(numbers))


def check_range(what: str, given: Iterable[int] | None, low: int, high: int) -> None:
    """Raise a ValueError for the first number that is below `low`, or not below `high`."""
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
FOR_WEIGHTS = ("uniform", "first", "previous", "hide")  # values for attention weights only
NOT_FOR_WEIGHTS = {  # values for any site but attention weights, and what they would do to those
    "sample": "give rows of no text",
    "shuffle": "let rows look ahead",
    "add": "add to weights that sum to 1",
}
# the name of a term -> the module whose weight row it adds
TABLES = {"tok": "tok_emb", "out": "out_head"}

_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_NUMBERED = re.compile(rf"(hide|shuffle)({_NUMBER})|(ids)({_NUMBER}(?:\+{_NUMBER})*)")
_FACTOR = r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{0,5}[1-9])?"
_TIMES = re.compile(f"x(-?{_FACTOR})")
# In "+ids5+17+2*tok3" the number after a + is another token id, unless a * follows it: then it is the factor
# of the next term.
_TERM = re.compile(
    rf"([+-])(?:({_FACTOR})\*)?(tok(?={_NUMBER}\b)|out(?={_NUMBER}\b)|ids|mean)"
    rf"({_NUMBER}(?:\+{_NUMBER})*)(?=[+-]|\Z)"
)


@dataclass(frozen=True)
class Named:
    """A value that has a text form, taken apart: "hide5" is the name "hide" with the number 5.

    "x0.5" has the name "x" and a `factor`. "+2*tok5-tok7" has the name "add" and two `terms`, each with its
    own name, numbers and factor: "tok" and "out" are a row of the token embedding or the output head, "ids"
    what another text has at the site, "mean" the mean of that over the other text's positions.
    """

    name: str
    numbers: tuple[int, ...] = ()
    factor: float = 1.0
    terms: tuple["Named", ...] = ()

    @property
    def parts(self) -> tuple["Named", ...]:
        """Its terms, or itself if it has none."""
        return self.terms or (self,)

    @property
    def texts(self) -> tuple[tuple[int, ...], ...]:
        """The token ids of the other texts that it takes numbers from."""
        texts = (
            part.numbers for part in self.parts if part.name in ("ids", "mean") and part.numbers
        )
        return tuple(dict.fromkeys(texts))


def named(value: object) -> Named | None:
    """Parse the text form of a value; None if it is not one."""
    if not isinstance(value, str):
        return None
    if value in NAMES:
        return Named(value)
    if (times := _TIMES.fullmatch(value)) is not None:
        return Named("x", factor=float(times[1]))
    if value[:1] in ("+", "-"):
        return _sum(value)
    match = _NUMBERED.fullmatch(value)
    if match is None:
        return None
    name = match[1] or match[3]
    numbers = match[2] or match[4]
    return Named(name, tuple(map(int, numbers.split("+"))))


def _sum(value: str) -> Named | None:
    """Parse a sum, such as "+2*tok5-tok7"; None if it is not one."""
    terms = []
    start = 0
    while start < len(value):
        match = _TERM.match(value, start)
        numbers = () if match is None else tuple(map(int, match[4].split("+")))
        if match is None or (match[3] in TABLES and len(numbers) > 1):
            return None
        terms.append(Named(match[3], numbers, float(match[1] + (match[2] or "1"))))
        start = match.end()
    return Named("add", terms=tuple(terms))


@runtime_checkable
class Source(Protocol):
    """What an edit needs of a Trace; the class itself cannot be imported here, as it imports the edits."""

    def __len__(self) -> int: ...

    def rows(
        self, site: str, block: int | None = None, start: int = 0, stop: int | None = None
    ) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Plus:
    """The value of an edit that adds to a site's own numbers: `numbers` times `factor`.

    `numbers` is a trace (its numbers at the edit's site), or a tensor of the site's shape or with one row for
    every position. A tensor is copied, and compared by its numbers. If it has fewer rows than the text,
    nothing is added at later positions.
    """

    numbers: Tensor | Source
    factor: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.numbers, Tensor):
            object.__setattr__(self, "numbers", self.numbers.detach().float().cpu().clone())
        elif isinstance(self.numbers, str) or not isinstance(self.numbers, Source):
            kind = type(self.numbers).__name__
            raise ValueError(
                f"what is added is a {kind}; give a trace, or a tensor: torch.as_tensor(...)"
            )
        if not isinstance(self.factor, Real) or not math.isfinite(self.factor):
            raise ValueError(f"factor is {self.factor!r}; it must be a finite number")

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        """What equality and the hash compare: a tensor's shape and the hash of its bytes."""
        if not isinstance(self.numbers, Tensor):
            return self.numbers, self.factor
        return self.numbers.shape, sha256(self.numbers.numpy().tobytes()).digest(), self.factor

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Plus):
            return self._identity == other._identity
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def scaled(self, like: Tensor, key: Key, first: int) -> Tensor:
        """What to add to the tensor `like`, whose first row is at position `first`; 0 beyond the numbers."""
        return self.factor * rows_from(
            self.numbers, torch.zeros_like(like), key, first, weights=False
        )


def positions_in(numbers: Tensor | Source, weights: bool = False) -> int | None:
    """The number of positions that `numbers` has rows for; None if it has one row for all of them."""
    if not isinstance(numbers, Tensor):
        return len(numbers)
    if not weights and numbers.shape[-2:-1] in ((), (1,)):
        return None
    return numbers.shape[-2]


def replacement(what: Named, value: Tensor, weights: bool) -> Tensor:
    """A new tensor in the place of `value`, as `what` says; `weights`: `value` is attention weights.

    Raises ValueError for values that take numbers from a model ("sample", "ids", "add").
    """
    if what.name == "zero":
        return torch.zeros_like(value)
    if what.name == "x":
        return value * what.factor
    if what.name == "uniform" or (what.name == "mean" and weights):
        # 1 for each key that the causal mask leaves; the T queries are the last of the K tokens
        seen = torch.ones_like(value).tril(value.shape[-1] - value.shape[-2])  # (H, T, K)
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
    raise ValueError(
        f"only a model can say what {what.name!r} is: give the edit to LanguageModel.trace"
    )


def shuffled(count: int, seed: int) -> np.ndarray:
    """The order of "shuffle" with this seed, (count,): position i gets the row of position `order[i]`."""
    return np.random.default_rng(seed).permutation(count)


def without(weights: Tensor, position: int) -> Tensor:
    """Attention weights (..., T, K) with 0 on the key at `position` in the rows of all later queries.

    The rest of each row is scaled up to sum to 1. These are the weights that the softmax would give if the
    causal mask hid that key as well. A row with nothing left gets all its weight on the query itself.
    """
    changed = weights.clone()
    rows, keys = weights.shape[-2:]
    first = max(0, position + 1 - (keys - rows))  # the first row of a query after `position`
    # an empty slice if `position` is after all keys
    changed[..., first:, position : position + 1] = 0
    later = changed[..., first:, :]
    remaining = later.sum(dim=-1, keepdim=True)
    itself = _one_key(weights, back=0)[..., first:, :]
    # (..., first, K) and (..., T - first, K) -> (..., T, K)
    return torch.cat(
        [changed[..., :first, :], torch.where(remaining > 0, later / remaining, itself)], dim=-2
    )


def rows_from(
    numbers: Tensor | Source, like: Tensor, key: Key, first: int, weights: bool
) -> Tensor:
    """A copy of `like`, whose first row is at position `first`, with the rows that `numbers` has for it.

    Rows for which `numbers` has nothing stay those of `like`; attention weights (`weights`) on keys that it
    does not have become 0. Raises ValueError if the shapes do not fit.
    """
    if isinstance(numbers, Tensor):
        source = _of_tensor(numbers, like, first, weights)
    else:
        stop = min(len(numbers), first + like.shape[-2])
        if stop <= first:
            return like.clone()
        source = numbers.rows(*key, first, stop)
        if weights:
            width_fits = like.shape[-1] >= source.shape[-1]
        else:
            width_fits = like.shape[-1] == source.shape[-1]
        if source.shape[:-2] != like.shape[:-2] or not width_fits:
            raise ValueError(
                f"the trace has {key[0]!r} in the shape {tuple(source.shape)}, this model "
                f"{tuple(like.shape)}: they are of models of other sizes"
            )
    new = like.clone()
    rows = new[..., : source.shape[-2], :]  # a view
    rows[..., source.shape[-1] :] = 0
    rows[..., : source.shape[-1]] = source.to(like)
    return new


def _of_tensor(numbers: Tensor, like: Tensor, first: int, weights: bool) -> Tensor:
    """The rows of `numbers`, a tensor for a whole text, at the positions of `like`, which begin at `first`.

    A tensor of one row, or without that dimension, is used for every position. Raises ValueError if the
    shapes do not fit.
    """
    if numbers.dim() == 1 and like.dim() == 2:
        numbers = numbers[None]
    heads_fit = numbers.shape[:-2] == like.shape[:-2] or (
        like.dim() == 3 and numbers.shape[:-2] == (1,)
    )
    width_fits = numbers.shape[-1:] == like.shape[-1:] or (
        weights and numbers.shape[-1:] == numbers.shape[-2:-1]
    )
    if numbers.dim() != like.dim() or not heads_fit or not width_fits:
        raise ValueError(
            f"a tensor {tuple(numbers.shape)} does not fit; the model has {tuple(like.shape)}"
        )
    if numbers.shape[-2] == 1 and not weights:
        return numbers.expand_as(like)
    keys = like.shape[-1]  # of attention weights for a whole text, only the keys that `like` has
    return numbers[..., first : first + like.shape[-2], :keys].expand(*like.shape[:-2], -1, -1)


def checked(new: Tensor, site: str, weights: bool = False) -> Tensor:
    """Return the new numbers for a site as they are. Raises ValueError if a pass cannot go on with them.

    They must be finite; attention weights (`weights`), (H, T, K), must be 0 for keys after the query.
    """
    if not new.isfinite().all():
        raise ValueError(
            f"the edit of {site!r} gives numbers that are not finite: NaN, or infinite"
        )
    known = new.shape[-1] - new.shape[-2]  # the number of tokens before that of the first row
    ahead = new.triu(known + 1).nonzero().tolist() if weights else []  # [head, row, key] each
    if ahead:
        _, row, key = ahead[0]
        raise ValueError(
            f"the edit of {site!r} lets position {row + known} look ahead at position {key}: weights must be "
            "0 where the token stands later (torch.tril makes them so)"
        )
    return new


def _one_key(attn: Tensor, back: int) -> Tensor:
    """Weights (..., T, K) with 1 on the key `back` tokens before each query (or on the first key), else 0."""
    rows, keys = attn.shape[-2:]
    # (T,) key numbers
    looked_at = (torch.arange(keys - rows, keys, device=attn.device) - back).clamp(min=0)
    looks = torch.zeros_like(attn)
    looks[..., torch.arange(rows, device=attn.device), looked_at] = 1
    return looks
