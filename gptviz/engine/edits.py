"""Edit: an instruction to replace numbers inside a model during a forward pass.

An edit names a site (a place in the model, such as each head's output "z": see `sites.sites_of`), and what is
put in the place of its numbers. It can be limited to some blocks, heads and positions. It has a text form,
for the addresses of pages and for sentences:

    site[.block[.head+head...]][@position+position...]=value

    z.4.3=zero    z.5.0+3+4=sample    mlp_out.2=mean    resid_pre.2@5=ids5+17+9    embed@-1=zero
    attn.*=hide5  attn.0.1=first      attn.3=uniform    pos_emb=shuffle7
    z.4.3=x0.5    resid_post.3=+2*tok512-2*tok733       resid_pre.2=+4*mean5+17+9

Whatever is not in square brackets must be there; "*" is every block. `Edit` says what each value means;
`edit_values` computes the new tensors, and `editing` makes the edits in a pass.

Shapes: T tokens, D emb_dim, H heads, K keys.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gptviz.engine import edit_values
from gptviz.engine.edit_values import EVERY, GRAMMAR, TABLES, Named, Plus, Source
from gptviz.engine.index import listed, whole_number
from gptviz.engine.kinds import Config
from gptviz.engine.sites import ALL_SITES, Key, check_key, sites_of, table_with
from gptviz.engine.weights import stamp
from gptviz.text.as_html import table

Replacement = (
    Callable[[torch.Tensor], torch.Tensor] | Source | torch.Tensor | str | Plus | tuple[Plus, ...]
)


@dataclass(frozen=True, eq=False, repr=False)
class Edit:
    """One intervention on a forward pass.

    `value` says what stands at the site instead, in the shape that a Trace has there: (T, D), (H, T, D/H), or
    (H, T, T) for attention weights:

        "zero"       0
        "mean"       the mean over the positions of this text (for `attn` the same as "uniform", since a mean
                     of its rows would let a token attend to later ones)
        "sample"     the mean over all tokens of a sample (`sample_means`), in the model without edits
        "ids5+17+9"  what the model has here, at the same positions and heads, when it reads these token ids;
                     positions beyond their end keep their own numbers. It reads them with the edits that
                     come before this one, except those that use the same ids, and those of positions that
                     these ids do not have
        "x0.5"       the site's own numbers times this factor
        "+2*tok5-tok7"  the site's own numbers plus twice the embedding of token 5, minus that of token 7. A
                     term is "tok5" or "out5" (a row of the output head), both for sites of D numbers a row,
                     "ids5+17" (as above, position by position; nothing is added beyond its end), or
                     "mean5+17" (its mean over the positions of that text, added at each position)
        "shuffle7"   the site's own rows in another order, that of `shuffled(T, 7)`: 7 is the seed

    and for `attn` alone, whose rows are the attention weights of each query:

        "uniform"    the same weight for every key that the causal mask leaves
        "first"      all weight on token 0
        "previous"   all weight on the token before the query (token 0: on itself)
        "hide5"      no weight of a later query on token 5; what is left of its row is scaled up to sum to 1

    In Python the value may also be another Trace (its numbers at this site, as with "ids"), a tensor of the
    site's shape, one with more rows (for a text that grows) or with a single row for every position, a `Plus`
    of either (or a tuple of several), or a function from the site's tensor to one of the same shape. Such
    numbers must be finite, and a tensor for `attn` must be 0 above the diagonal.

    `block` "*" is every block. `heads` (only at sites that are split by heads; where several heads share a key and
    a value, the keys' and values' heads are those groups) and `positions` (for `attn`,
    of the queries) limit what is replaced; all else is passed on as it is. Negative blocks and positions
    count from the end. Heads and positions become sorted tuples without duplicates, so that edits that do the
    same are equal and can be hashed.

    `Edit.parse(str(edit))` is the same edit; a value of Python's is printed as <its kind>, which cannot be
    parsed. Raises ValueError for heads and positions that are not a list of whole numbers.
    """

    site: str
    block: int | str | None = None
    value: Replacement = "zero"
    heads: Sequence[int] | None = None
    positions: Sequence[int] | None = None
    # `weights.stamp` of a value that is a tensor, when this Edit was made: it tells whether the tensor was
    # written into since. A pass makes new copies of its edits, so that theirs are of that moment.
    _stamp: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        if (block := whole_number(self.block)) is not None:
            object.__setattr__(self, "block", block)
        for what in ("heads", "positions"):
            numbers = getattr(self, what)
            if numbers is not None:
                object.__setattr__(self, what, edit_values.indices(what, numbers))
        if isinstance(self.value, torch.Tensor):
            object.__setattr__(self, "_stamp", stamp(self.value))
        if isinstance(self.value, Plus):
            object.__setattr__(self, "value", (self.value,))

    def _identity(self) -> tuple[object, ...]:
        # two edits have the same tensor if it is one object and nothing was written into it in between
        value = (
            (id(self.value), self._stamp) if isinstance(self.value, torch.Tensor) else self.value
        )
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
        if self.site in ALL_SITES:
            meaning = f"{self.site}: {ALL_SITES[self.site].meaning}"
        else:
            meaning = self.site
        limits = {"block": self.block, "heads": self.heads, "positions": self.positions}
        limits_set = {name: str(value) for name, value in limits.items() if value is not None}
        return table({"edit": str(self), "site": meaning, **limits_set})

    def __str__(self) -> str:
        """The text form; a value of Python's, which has no text form, is named by its kind."""
        value = self.value if isinstance(self.value, str) else f"<{_pythons(self.value)}>"
        if self.block is None:
            block = ""
        else:
            block = f".{self.block}"
        if self.heads is None:
            heads = ""
        else:
            heads = "." + "+".join(map(str, self.heads))
        if self.positions is None:
            positions = ""
        else:
            positions = "@" + "+".join(map(str, self.positions))
        return f"{self.site}{block}{heads}{positions}={value}"

    @classmethod
    def parse(cls, text: str) -> "Edit":
        """The edit of this text form. A blank counts as a +, since web addresses may turn a + into one.

        Raises ValueError, which quotes the text and lists what is allowed. Whether a model and a text have
        the blocks, heads, positions and ids is checked by `check`.
        """
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no edit; an edit is written {GRAMMAR}")
        try:
            edit = cls(*edit_values.parts_of(text))
            edit.check_form()
        except ValueError as error:
            raise ValueError(
                f"{text!r} is no edit: {error}; an edit is written {GRAMMAR}"
            ) from None
        return edit

    @property
    def named(self) -> Named | None:
        """The value parsed into its name and numbers; None for a value of Python's, and for no known name."""
        return edit_values.named(self.value)

    def check_form(self) -> None:
        """Raise a ValueError for an edit that no model could make; `check` needs the model's config, too."""
        self._check_block(None)
        site = ALL_SITES[self.site]
        value = self.named
        if value is None and _pythons(self.value) is None:
            raise ValueError(
                f"an edit's value is {self.value!r}; it must be one of {edit_values.NAMED}, "
                "or in Python a trace, a tensor or a function"
            )
        if (
            value is not None
            and value.name in edit_values.NOT_FOR_WEIGHTS
            and site.form == "weights"
        ):
            why = edit_values.NOT_FOR_WEIGHTS[value.name]
            raise ValueError(
                f"{self.value!r} would {why} in {self.site!r}: choose another value or site"
            )
        if value is not None and value.name in edit_values.FOR_WEIGHTS and site.form != "weights":
            weight_sites = ", ".join(
                name for name, site in table_with(self.site).items() if site.form == "weights"
            )
            raise ValueError(
                f"{self.value!r} says where a head looks: it is for {weight_sites}, not {self.site!r}"
            )
        adds_rows = value is not None and any(term.name in TABLES for term in value.terms)
        if adds_rows and site.shape != "(T, D)":
            stream_sites = ", ".join(
                name for name, site in table_with(self.site).items() if site.shape == "(T, D)"
            )
            raise ValueError(f"a token's row does not fit {self.site!r}; it does {stream_sites}")
        if self.heads is not None and site.form == "rows":
            split_sites = ", ".join(
                name for name, site in table_with(self.site).items() if site.form != "rows"
            )
            raise ValueError(
                f"site {self.site!r} is not split by heads; those that are: {split_sites}"
            )
        if self.heads is not None and self.heads[0] < 0:
            raise ValueError(f"there is no head {self.heads[0]}; they are counted from 0")

    def check(self, config: Config, n_tokens: int | None = None) -> None:
        """Raise a ValueError for a site, block, head, position, value or token id that does not exist.

        `n_tokens` is the length of the text; None allows whatever some text that the model can read has.
        """
        self.check_form()
        exact = n_tokens is not None
        if n_tokens is None:
            n_tokens = config.context_length
        self._check_block(config)
        site = sites_of(config)[self.site]
        edit_values.check_range(site.part, self.heads, 0, site.count(config))
        edit_values.check_range("position", self.positions, -n_tokens, n_tokens)
        for part in () if self.named is None else self.named.parts:
            if part.name == "hide":
                edit_values.check_range("position", part.numbers, 0, n_tokens)
            elif part.name != "shuffle":
                edit_values.check_range("token id", part.numbers, 0, config.vocab_size)
                if len(part.numbers) > (longest := config.context_length):
                    raise ValueError(
                        f"{len(part.numbers)} ids are more than the {longest} the model reads"
                    )
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

    def _check_block(self, config: Config | None) -> None:
        all_blocks = (
            self.block == EVERY and self.site in ALL_SITES and ALL_SITES[self.site].per_block
        )
        check_key(self.site, 0 if all_blocks else self.block, config)

    @property
    def known(self) -> int | None:
        """The number of positions that the value has numbers for; None if it fits a text of any length."""
        if isinstance(self.value, torch.Tensor | Source):
            return edit_values.positions_in(self.value, ALL_SITES[self.site].form == "weights")
        if isinstance(self.value, tuple):
            ends = [edit_values.positions_in(part.numbers) for part in self.value]
        else:
            parts = () if self.named is None else self.named.parts
            ends = [len(part.numbers) if part.name == "ids" else None for part in parts]
        known_ends: list[int] = [end for end in ends if end is not None]
        if known_ends and len(known_ends) == len(ends):
            return max(known_ends)
        return None

    def within(self, n_tokens: int) -> "Edit | None":
        """This edit for a text of `n_tokens`, without positions beyond it; None if no position is left."""
        if (
            self.named is not None
            and self.named.name == "hide"
            and self.named.numbers[0] >= n_tokens
        ):
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
        """Whether its effect on a token stays the same when more tokens follow, so that rows can be reused.

        This is not so for a mean over the text, a shuffle of its positions, a position that is counted from
        the end, and a Python function, which may do anything.
        """
        if self.named is None:
            name = None
        else:
            name = self.named.name
        spread = name == "mean" and ALL_SITES[self.site].form != "weights"
        from_the_end = any(position < 0 for position in self.positions or ())
        return not (self.is_function or spread or name == "shuffle" or from_the_end)

    @property
    def is_of_any_text(self) -> bool:
        """Whether it makes sense in any text: it has no positions and takes no numbers from another text."""
        parts = () if self.named is None else self.named.parts
        return self.positions is None and not any(part.name in ("ids", "hide") for part in parts)

    def of(self, config: Config) -> "Edit":
        """The same edit with a negative block counted from 0. It must be checked already."""
        last = isinstance(self.block, int) and self.block < 0
        return replace(self, block=int(self.block) % config.n_layers) if last else self  # type: ignore[arg-type]

    @property
    def key(self) -> Key:
        """The trace key (site, block) that this edit replaces."""
        return self.site, None if self.block is None else int(self.block)

    def blocks(self, n_layers: int) -> tuple[int, ...]:
        """The blocks that this edit changes; none for a site outside the blocks."""
        if self.block == EVERY:
            return tuple(range(n_layers))
        if self.block is None:
            return ()
        return (int(self.block),)

    def is_of_head(self, block: int, head: int, config: Config) -> bool:
        """Whether it changes the queries, keys, values, attention weights or output of this head."""
        site = sites_of(config)[self.site]
        in_block = site.form != "rows" and block in self.blocks(block + 1)
        return in_block and (self.heads is None or site.of_head(head, config) in self.heads)

    def each(self, n_layers: int) -> list["Edit"]:
        """The same edit as a list of edits, each of one block (or of a site outside the blocks)."""
        if self.block == EVERY:
            return [replace(self, block=b) for b in self.blocks(n_layers)]
        return [self]

    def apply(self, value: torch.Tensor, first: int = 0) -> torch.Tensor:
        """Make the edit: return a new tensor for a site's `value`, (T, D), (H, T, D/H) or (H, T, T).

        `first` is the position of the first row; it is above 0 if only the end of a text is computed, which
        causal edits allow (`attn` is (H, T, K) then). The edit must be of one block, and a value that only a
        model knows ("sample", "ids5") must have been turned into numbers: `gptviz.engine.reader.ready`.
        """
        replacement = self._replacement(value, first)  # for all heads and positions
        if self.heads is None and self.positions is None:
            return replacement
        count = value.shape[-2]
        rows = torch.full((count,), self.positions is None)  # (T,): which rows are replaced
        for position in self.positions or ():
            if position >= 0:
                row = position - first
            else:
                row = position + count
            if 0 <= row < count:
                rows[row] = True
        chosen = rows
        if value.dim() == 3:
            chosen = torch.zeros(value.shape[:-1], dtype=torch.bool)  # (H, T)
            chosen[slice(None) if self.heads is None else list(self.heads)] = rows
        # (T,) -> (T, 1), or (H, T) -> (H, T, 1): all numbers of a row, or none
        return torch.where(chosen.unsqueeze(-1).to(value.device), replacement, value)

    def _replacement(self, value: torch.Tensor, first: int) -> torch.Tensor:
        """The tensor to put in the place of all of `value`; of the same shape."""
        weights = ALL_SITES[self.site].form == "weights"
        if self.named is not None:
            return edit_values.replacement(self.named, value, weights)
        if isinstance(self.value, torch.Tensor | Source):
            new = edit_values.rows_from(self.value, value, self.key, first, weights)
            if isinstance(self.value, Source):
                return new
            return edit_values.checked(new, self.site, weights)
        if isinstance(self.value, tuple):
            added = [part.scaled(value, self.key, first) for part in self.value]
            return edit_values.checked(sum(added, value), self.site)
        assert callable(self.value)
        result = self.value(value.clone())
        if not isinstance(result, torch.Tensor) or result.shape != value.shape:
            if isinstance(result, torch.Tensor):
                got = tuple(result.shape)
            else:
                got = type(result).__name__
            raise ValueError(
                f"the edit of {self.site!r} returned {got}, not a tensor {tuple(value.shape)}"
            )
        return edit_values.checked(result.to(value), self.site)


Given = Edit | str


def edits_of(given: Iterable[Given]) -> tuple[Edit, ...]:
    """A tuple of edits from a list of edits and text forms. Raises ValueError for anything else."""
    entries = listed("edits", given, "give a list of them, such as ['z.4.3=zero']")
    return tuple(entry if isinstance(entry, Edit) else Edit.parse(entry) for entry in entries)


def _pythons(value: object) -> str | None:
    """The kind of an edit's value in words, if it can only be given in Python; None for any other value."""
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
