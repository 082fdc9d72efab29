"""Edit: replace what a site passes on, everywhere or for some heads and positions only.

An edit is data, and has a text form for addresses and sentences:

    site[.block[.head+head...]][@position+position...]=value

    z.4.3=zero    z.5.0+3+4=sample    mlp_out.2=mean    resid_pre.2@5=ids5+17+9    embed@-1=zero
    attn.*=hide5  attn.0.1=first      attn.3=uniform    pos_emb=shuffle7
    z.4.3=x0.5    resid_post.3=+2*tok512-2*tok733       resid_pre.2=+4*mean5+17+9

What the values mean for a tensor is in `edit_values`, how a pass makes them in `editing`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gptviz.engine import edit_values
from gptviz.engine.config import GPTConfig
from gptviz.engine.edit_values import EVERY, GRAMMAR, TABLES, Named, Plus, Source
from gptviz.engine.index import listed, whole_number
from gptviz.engine.sites import SITES, Key, check_key
from gptviz.engine.weights import stamp
from gptviz.text.as_html import table

Replacement = Callable[[torch.Tensor], torch.Tensor] | Source | torch.Tensor | str | Plus | tuple[Plus, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Edit:
    """One intervention on a forward pass.

    `value` says what the site gives instead, in the shape (T, D), (H, T, D/H) or (H, T, T) that a Trace has:

        "zero"       0
        "mean"       the mean over the positions of this text (for `attn`, whose rows must not look ahead,
                     "uniform")
        "sample"     the mean over all tokens of a sample (`sample_means`), in the model without edits
        "ids5+17+9"  what the model has here, at the same positions and heads, when it reads these token ids;
                     tokens beyond their end keep their own. It reads them with the edits that stand before
                     this one, but for those that take from the same ids, and those of places that these
                     ids do not have
        "x0.5"       what stands there times this number
        "+2*tok5-tok7"  what stands there, plus twice the embedding of token 5, minus that of token 7. A term
                     is "tok5" or "out5" (a row of the output head) for sites of the stream's width, "ids5+17"
                     (as above: position by position, beyond its end nothing), or "mean5+17" (its mean over
                     that text's positions, added at each)
        "shuffle7"   each position another one's row: the order of `shuffled(T, 7)`

    and for `attn` alone, where each query looks:

        "uniform"    at all keys that it may see alike
        "first"      at token 0 only
        "previous"   at the token before it only (token 0 at itself)
        "hide5"      as before, but no later token at token 5; each row's rest is scaled up to 1

    In Python only it may be another Trace (what it holds here: as "ids"), a tensor of the site's shape, of
    more rows (for a text that grows) or of one row for every position, `Plus` of either (or several of them,
    a tuple), or a function from the site's tensor to one of the same shape. Such numbers must be finite, and
    a tensor for `attn` must not look ahead.

    `block` "*" is every block. `heads` (sites split by heads only) and `positions` (for `attn`, the rows of
    these queries) limit what is replaced; the rest passes on untouched. Negative blocks and positions count
    from the end.
    Both become tuples, each number once and in order, so that equal edits are equal and can be hashed.

    `str(edit)` and `Edit.parse` are each other's reverse; a value of Python's is printed as <its kind>, which
    cannot be parsed. Raises ValueError for heads and positions that are not a list of whole numbers.
    """

    site: str
    block: int | str | None = None
    value: Replacement = "zero"
    heads: Sequence[int] | None = None
    positions: Sequence[int] | None = None
    _stamp: ClassVar[tuple[int, ...]] = ()  # of a tensor value up to now: a pass copies its edits to have it

    def __post_init__(self) -> None:
        if (block := whole_number(self.block)) is not None:
            object.__setattr__(self, "block", block)
        for what in ("heads", "positions"):
            given = getattr(self, what)
            if given is not None:
                object.__setattr__(self, what, edit_values.indices(what, given))
        if isinstance(self.value, torch.Tensor):
            object.__setattr__(self, "_stamp", stamp(self.value))
        if isinstance(self.value, Plus):
            object.__setattr__(self, "value", (self.value,))

    def _identity(self) -> tuple[object, ...]:
        # two tensors are the same value if they are one, and nothing was written into it in between
        value = (id(self.value), self._stamp) if isinstance(self.value, torch.Tensor) else self.value
        return (self.site, self.block, value, self.heads, self.positions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Edit):
            return self._identity() == other._identity()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Edit({str(self)!r})"

    def _repr_html_(self) -> str:
        if self.site in SITES:
            meaning = f"{self.site}: {SITES[self.site].meaning}"
        else:
            meaning = self.site
        limits = {"block": self.block, "heads": self.heads, "positions": self.positions}
        some = {name: str(value) for name, value in limits.items() if value is not None}
        return table({"edit": str(self), "site": meaning, **some})

    def __str__(self) -> str:
        """The text form; a value of Python's, which has none, is named by its kind."""
        value = self.value if isinstance(self.value, str) else f"<{_pythons(self.value)}>"
        if self.block is None:
            at = ""
        else:
            at = f".{self.block}"
        if self.heads is None:
            some = ""
        else:
            some = "." + "+".join(map(str, self.heads))
        if self.positions is None:
            here = ""
        else:
            here = "@" + "+".join(map(str, self.positions))
        return f"{self.site}{at}{some}{here}={value}"

    @classmethod
    def parse(cls, text: str) -> "Edit":
        """The edit that `text` writes down; a blank counts as the + that an address turns into one.

        Raises ValueError, which quotes the text and lists what is allowed. Blocks, heads, positions and ids
        are compared with a model and a prompt by `check`.
        """
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no edit; an edit is written {GRAMMAR}")
        try:
            edit = cls(*edit_values.parts_of(text))
            edit.check_form()
        except ValueError as error:
            raise ValueError(f"{text!r} is no edit: {error}; an edit is written {GRAMMAR}") from None
        return edit

    @property
    def named(self) -> Named | None:
        """The value as its name and numbers; None for a value of Python's, or one that does not exist."""
        return edit_values.named(self.value)

    def check_form(self) -> None:
        """Raise a ValueError for what no model could do: all that can be said before one is known."""
        self._check_block(None)
        site = SITES[self.site]
        value = self.named
        if value is None and _pythons(self.value) is None:
            raise ValueError(
                f"an edit's value is {self.value!r}; it must be one of {edit_values.NAMED}, "
                "or in Python a trace, a tensor or a function"
            )
        if value is not None and value.name in edit_values.NOT_FOR_WEIGHTS and site.form == "weights":
            why = edit_values.NOT_FOR_WEIGHTS[value.name]
            raise ValueError(f"{self.value!r} would {why} in {self.site!r}: choose another value or site")
        if value is not None and value.name in edit_values.FOR_WEIGHTS and site.form != "weights":
            looks = ", ".join(name for name, site in SITES.items() if site.form == "weights")
            raise ValueError(f"{self.value!r} says where a head looks: it is for {looks}, not {self.site!r}")
        wide = value is not None and any(term.name in TABLES for term in value.terms)
        if wide and site.shape != "(T, D)":
            fit = ", ".join(name for name, site in SITES.items() if site.shape == "(T, D)")
            raise ValueError(f"a token's row does not fit {self.site!r}; it does {fit}")
        if self.heads is not None and site.form == "rows":
            split = ", ".join(name for name, site in SITES.items() if site.form != "rows")
            raise ValueError(f"site {self.site!r} is not split by heads; those that are: {split}")
        if self.heads is not None and self.heads[0] < 0:
            raise ValueError(f"there is no head {self.heads[0]}; they are counted from 0")

    def check(self, config: GPTConfig, n_tokens: int | None = None) -> None:
        """Raise a ValueError for a site, block, head, position, value or id that does not exist.

        Without a number of tokens: for what no text of such a model could have.
        """
        self.check_form()
        exact = n_tokens is not None
        if n_tokens is None:
            n_tokens = config.context_length
        self._check_block(config.n_layers)
        edit_values.check_range("head", self.heads, 0, config.n_heads)
        edit_values.check_range("position", self.positions, -n_tokens, n_tokens)
        for part in () if self.named is None else self.named.parts:
            if part.name == "hide":
                edit_values.check_range("position", part.numbers, 0, n_tokens)
            elif part.name != "shuffle":
                edit_values.check_range("token id", part.numbers, 0, config.vocab_size)
                if len(part.numbers) > (longest := config.context_length):
                    raise ValueError(f"{len(part.numbers)} ids are more than the {longest} the model reads")
        if (end := self.known) is None:
            return
        tensor = isinstance(self.value, torch.Tensor)
        source = "the other text"
        if tensor:
            source = "the tensor"
        has = f"{source} has values for {end} of {n_tokens} positions"
        beyond = [p for p in self.positions or () if (exact or p >= 0) and p % n_tokens >= end]
        if beyond:
            raise ValueError(f"position {beyond[0]} has no value: {has}")
        if tensor and exact and self.positions is None and end < n_tokens:
            raise ValueError(f"{has}: give {self.site!r} a row for each, one for all, or positions")

    def _check_block(self, n_layers: int | None) -> None:
        every = self.block == EVERY and self.site in SITES and SITES[self.site].per_block
        check_key(self.site, 0 if every else self.block, n_layers)

    @property
    def known(self) -> int | None:
        """Return for how many tokens of a text the value has numbers; None where for any number of them."""
        if isinstance(self.value, torch.Tensor | Source):
            return edit_values.known(self.value, SITES[self.site].form == "weights")
        if isinstance(self.value, tuple):
            ends = [edit_values.known(part.numbers) for part in self.value]
        else:
            parts = () if self.named is None else self.named.parts
            ends = [len(part.numbers) if part.name == "ids" else None for part in parts]
        most: list[int] = [end for end in ends if end is not None]
        if most and len(most) == len(ends):
            return max(most)
        return None

    def within(self, n_tokens: int) -> "Edit | None":
        """This edit for `n_tokens`: without positions beyond them, None if nothing is left."""
        if self.named is not None and self.named.name == "hide" and self.named.numbers[0] >= n_tokens:
            return None
        end = min(n_tokens, n_tokens if self.known is None else self.known)
        if self.positions is None:
            if end == n_tokens:
                return self
            return replace(self, positions=range(end))
        places = [p for p in self.positions if -n_tokens <= p < n_tokens and p % n_tokens < end]
        if places:
            return replace(self, positions=places)
        return None

    @property
    def is_function(self) -> bool:
        """Whether the value is a Python function, which may do anything."""
        return callable(self.value) and not isinstance(self.value, torch.Tensor | Source)

    @property
    def is_causal(self) -> bool:
        """Whether its effect at a token is the same in every longer text that begins so.

        A mean over the text is not, nor a shuffle of its positions, nor a position counted from the end, nor
        what a function may do.
        """
        if self.named is None:
            name = None
        else:
            name = self.named.name
        spread = name == "mean" and SITES[self.site].form != "weights"
        from_the_end = any(position < 0 for position in self.positions or ())
        return not (self.is_function or spread or name == "shuffle" or from_the_end)

    @property
    def is_of_any_text(self) -> bool:
        """Whether it means something in other texts, too: no position, no text's numbers."""
        parts = () if self.named is None else self.named.parts
        return self.positions is None and not any(part.name in ("ids", "hide") for part in parts)

    def of(self, config: GPTConfig) -> "Edit":
        """The same with its block counted from 0, where that is given from the end. It must be checked."""
        last = isinstance(self.block, int) and self.block < 0
        return replace(self, block=int(self.block) % config.n_layers) if last else self  # type: ignore[arg-type]

    @property
    def key(self) -> Key:
        """The trace key (site, block) that this edit replaces."""
        return self.site, None if self.block is None else int(self.block)

    def blocks(self, n_layers: int) -> tuple[int, ...]:
        """The blocks that it is made in; none for a site outside of them."""
        if self.block == EVERY:
            return tuple(range(n_layers))
        if self.block is None:
            return ()
        return (int(self.block),)

    def is_of_head(self, block: int, head: int) -> bool:
        """Whether it changes a head's own numbers: its queries, keys, values, pattern or output."""
        here = SITES[self.site].form != "rows" and block in self.blocks(block + 1)
        return here and (self.heads is None or head in self.heads)

    def each(self, n_layers: int) -> list["Edit"]:
        """The same with one block each."""
        if self.block == EVERY:
            return [replace(self, block=b) for b in self.blocks(n_layers)]
        return [self]

    def apply(self, value: torch.Tensor, first: int = 0) -> torch.Tensor:
        """A new tensor, never the one that was given: (T, D), (H, T, D/H) or (H, T, T) as the site has it.

        `first` is the position of the first row, where only the end of a text is computed (`attn` is
        (H, T, K) then): for causal edits. The block must be one, and the value not "sample" or "ids".
        """
        replacement = self._replacement(value, first)
        if self.heads is None and self.positions is None:
            return replacement
        count = value.shape[-2]
        rows = torch.full((count,), self.positions is None)
        for position in self.positions or ():
            if position >= 0:
                here = position - first
            else:
                here = position + count
            if 0 <= here < count:
                rows[here] = True
        chosen = rows
        if value.dim() == 3:
            chosen = torch.zeros(value.shape[:-1], dtype=torch.bool)  # (H, T)
            chosen[slice(None) if self.heads is None else list(self.heads)] = rows
        return torch.where(chosen.unsqueeze(-1).to(value.device), replacement, value)

    def _replacement(self, value: torch.Tensor, first: int) -> torch.Tensor:
        weights = SITES[self.site].form == "weights"
        if self.named is not None:
            return edit_values.made(self.named, value, weights)
        if isinstance(self.value, torch.Tensor | Source):
            new = edit_values.given(self.value, value, self.key, first, weights)
            if isinstance(self.value, Source):
                return new
            return edit_values.sound(new, self.site, weights)
        if isinstance(self.value, tuple):
            more = [part.times(value, self.key, first) for part in self.value]
            return edit_values.sound(sum(more, value), self.site)
        assert callable(self.value)
        result = self.value(value.clone())
        if not isinstance(result, torch.Tensor) or result.shape != value.shape:
            if isinstance(result, torch.Tensor):
                got = tuple(result.shape)
            else:
                got = type(result).__name__
            raise ValueError(f"the edit of {self.site!r} returned {got}, not a tensor {tuple(value.shape)}")
        return edit_values.sound(result.to(value), self.site)


Given = Edit | str


def edits_of(given: Iterable[Given]) -> tuple[Edit, ...]:
    """Edits, of edits and their text forms. Raises ValueError for what is neither."""
    found = listed("edits", given, "give a list of them, such as ['z.4.3=zero']")
    return tuple(one if isinstance(one, Edit) else Edit.parse(one) for one in found)


def _pythons(value: object) -> str | None:
    """A Python value of an edit, described in words; None for any other value."""
    if isinstance(value, tuple):
        if value and all(isinstance(p, Plus) for p in value):
            return "numbers that are added"
        return None
    if isinstance(value, torch.Tensor | Source):
        if isinstance(value, torch.Tensor):
            return "a tensor"
        return "another trace"
    if callable(value):
        return "a Python function"
    return None
