"""Edit: replace what a site passes on, everywhere or for some heads and positions only.

An edit is data, and has a text form for addresses and sentences:

    site[.block[.head+head...]][@position+position...]=value

    z.4.3=zero    z.5.0+3+4=zero    mlp_out.2=mean    resid_pre.2@5=zero    attn.0=uniform    embed@-1=zero
    pos_emb=shuffle7
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from gptviz.config import GPTConfig
from gptviz.sites import SITES, check_key

VALUES = ("zero", "mean", "uniform")
NAMED = ", ".join(f'"{value}"' for value in VALUES) + ', or "shuffle" and a number, such as "shuffle7"'
Replacement = Callable[[torch.Tensor], torch.Tensor] | str

GRAMMAR = "site[.block[.head+head]][@position+position]=value, such as z.4.3=zero or resid_pre.2@5=mean"
_PARTS = re.compile(
    r"(?P<site>[^.@=]*)(?:\.(?P<block>[^.@=]*)(?:\.(?P<heads>[^.@=]*))?)?(?:@(?P<positions>[^@=]*))?"
    r"=(?P<value>[^=]*)"
)
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_SHUFFLE = re.compile(r"shuffle(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Edit:
    """One intervention on a forward pass.

    `value` is "zero", "mean", "uniform", "shuffle0", "shuffle1", ... or, in Python only, a function from
    the site's tensor (in the shape that a Trace hands out) to one of the same shape. "mean" is the mean over
    the positions of this text; for `attn`, whose rows must not look ahead, it is "uniform": each row even
    over the keys it may see. "shuffle7" gives each position another one's row: the order that
    `shuffled(T, 7)` has. `heads` (sites split by heads only) and `positions` (negative ones count from the
    end; for `attn`, the rows of these queries) limit what is replaced; the rest passes on untouched.
    Both become tuples, each number once and in order, so that equal edits are equal and can be hashed.

    `str(edit)` and `Edit.parse` are each other's reverse. Raises ValueError for heads and positions that
    are not a list of whole numbers.
    """

    site: str
    block: int | None = None
    value: Replacement = "zero"
    heads: Sequence[int] | None = None
    positions: Sequence[int] | None = None

    def __post_init__(self) -> None:
        block = self.block
        if block is not None and not isinstance(block, bool) and hasattr(block, "__index__"):
            object.__setattr__(self, "block", operator.index(block))  # NumPy's and torch's integers too
        for what in ("heads", "positions"):
            given = getattr(self, what)
            if given is not None:
                object.__setattr__(self, what, _indices(what, given))

    def __str__(self) -> str:
        """The text form. Raises ValueError for a function, which has none."""
        if callable(self.value):
            raise ValueError(
                f"this edit of {self.site!r} replaces values by a Python function, which has no text form: "
                f"an edit that can be written down has one of the values {', '.join(VALUES)}, or shuffle7"
            )
        block = "" if self.block is None else f".{self.block}"
        heads = "" if self.heads is None else "." + _joined(self.heads)
        positions = "" if self.positions is None else "@" + _joined(self.positions)
        return f"{self.site}{block}{heads}{positions}={self.value}"

    @classmethod
    def parse(cls, text: str) -> "Edit":
        """The edit that `text` writes down; a blank counts as the + that an address turns into one.

        Raises ValueError, which quotes the text and lists what is allowed. Blocks, heads and positions
        are compared with a model and a prompt by `check`.
        """
        found = _PARTS.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r} is no edit; an edit is written {GRAMMAR}")
        try:
            block = found["block"]
            edit = cls(
                found["site"],
                None if block is None else _whole("block", block),
                found["value"],  # check_form looks at it
                _split("head", found["heads"]),
                _split("position", found["positions"]),
            )
            edit.check_form()
        except ValueError as error:
            raise ValueError(f"{text!r} is no edit: {error}; an edit is written {GRAMMAR}") from None
        return edit

    def check_form(self) -> None:
        """Raise a ValueError for what no model could do: all that can be said before one is known."""
        check_key(self.site, self.block, None)
        shuffles = _seed(self.value) is not None
        if not callable(self.value) and self.value not in VALUES and not shuffles:
            raise ValueError(
                f"an edit's value is {self.value!r}; it must be one of {NAMED}, or a function in Python"
            )
        if shuffles and SITES[self.site].form == "weights":
            raise ValueError(
                f"{self.value!r} would let rows of {self.site!r} look ahead: shuffle another site"
            )
        if self.value == "uniform" and SITES[self.site].form != "weights":
            spread = ", ".join(name for name, site in SITES.items() if site.form == "weights")
            raise ValueError(f'"uniform" spreads attention evenly: it is for {spread}, not for {self.site!r}')
        if self.heads is not None and SITES[self.site].form == "rows":
            split = ", ".join(name for name, site in SITES.items() if site.form != "rows")
            raise ValueError(f"site {self.site!r} is not split by heads; those that are: {split}")

        if self.heads is not None and self.heads[0] < 0:
            raise ValueError(f"there is no head {self.heads[0]}; they are counted from 0")

    def check(self, config: GPTConfig, n_tokens: int) -> None:
        """Raise a ValueError for a site, block, head, position or value that does not exist."""
        self.check_form()
        check_key(self.site, self.block, config.n_layers)
        _check_range("head", self.heads, 0, config.n_heads)
        _check_range("position", self.positions, -n_tokens, n_tokens)

    @property
    def is_causal(self) -> bool:
        """Whether what it does at a token is the same in every longer text that begins so.

        A mean over the text is not, nor a shuffle of its positions, nor a position counted from the end, nor
        what a function may do.
        """
        spread = self.value == "mean" and SITES[self.site].form != "weights"
        from_the_end = any(position < 0 for position in self.positions or ())
        shuffles = _seed(self.value) is not None
        return not (callable(self.value) or spread or shuffles or from_the_end)

    def apply(self, value: torch.Tensor, first: int = 0) -> torch.Tensor:
        """A new tensor, never the one that was given: (T, D), (H, T, D/H) or (H, T, T) as the site has it.

        `first` is the position of the first row, where only the end of a text is computed (`attn` is
        (H, T, K) then): for causal edits.
        """
        if first and self.positions is not None:
            here = tuple(position - first for position in self.positions if position >= first)
            return replace(self, positions=here).apply(value) if here else value.clone()
        replacement = self._replacement(value)
        if self.heads is None and self.positions is None:
            return replacement
        chosen = torch.zeros(value.shape[:-1], dtype=torch.bool)  # (T,) or (H, T)
        heads = slice(None) if self.heads is None else torch.tensor(list(self.heads), dtype=torch.long)
        positions = (
            slice(None) if self.positions is None else torch.tensor(list(self.positions), dtype=torch.long)
        )
        if value.dim() == 2:
            chosen[positions] = True
        else:
            rows = torch.zeros(value.shape[1], dtype=torch.bool)
            rows[positions] = True
            chosen[heads] = rows
        return torch.where(chosen.unsqueeze(-1).to(value.device), replacement, value)

    def _replacement(self, value: torch.Tensor) -> torch.Tensor:
        if self.value == "zero":
            return torch.zeros_like(value)
        if self.value in ("mean", "uniform"):
            if SITES[self.site].form == "weights":
                return _uniform(value)
            return value.mean(dim=-2, keepdim=True).expand_as(value).clone()
        seed = _seed(self.value)
        if seed is not None:
            return value[..., torch.from_numpy(shuffled(value.shape[-2], seed)).to(value.device), :]
        assert callable(self.value)
        result = self.value(value.clone())
        if not isinstance(result, torch.Tensor) or result.shape != value.shape:
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise ValueError(
                f"the edit of {self.site!r} must return a tensor {tuple(value.shape)}, it returned {got}"
            )
        return result.to(value)


def shuffled(count: int, seed: int) -> np.ndarray:
    """The order of "shuffle" and this seed: position i is given the row of position `order[i]`, (count,)."""
    return np.random.default_rng(seed).permutation(count)


def _seed(value: Replacement) -> int | None:
    """Of a shuffle its number, of anything else None."""
    found = _SHUFFLE.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else int(found[1])


def _uniform(attn: torch.Tensor) -> torch.Tensor:
    """(H, T, K) of 1 / (number of keys that the query may see): the last T of K tokens."""
    seen = torch.ones_like(attn).tril(attn.shape[-1] - attn.shape[-2])
    return seen / seen.sum(dim=-1, keepdim=True)


def _indices(what: str, given: Iterable[int]) -> tuple[int, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{what} is {given!r}; give a list of whole numbers, or None for all of them")
    given = tuple(given)
    wrong = [i for i in given if isinstance(i, bool) or not hasattr(i, "__index__")]
    if wrong:
        raise ValueError(f"{what} has {wrong[0]!r}, which is no whole number")
    if not given:
        raise ValueError(f"{what} is empty: nothing would be replaced; name at least one, or None for all")
    return tuple(sorted({operator.index(i) for i in given}))


def _check_range(what: str, given: Sequence[int] | None, low: int, high: int) -> None:
    wrong = [i for i in given or () if not low <= i < high]
    if wrong:
        raise ValueError(f"there is no {what} {wrong[0]!r}; they go from {low} to {high - 1}")


def _joined(numbers: Sequence[int]) -> str:
    return "+".join(map(str, numbers))


def _split(what: str, text: str | None) -> list[int] | None:
    return None if text is None else [_whole(what, part) for part in re.split(r"[+ ]", text)]


def _whole(what: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no {what}, which is a whole number")
    return int(text)
