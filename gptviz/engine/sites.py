"""The table of sites: every place in a GPTModel whose numbers can be captured or replaced.

It drives the capture, the edits, the documentation and the tests; a site that is not in it does not
exist. Shapes: T tokens, D emb_dim, H heads.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from gptviz.engine.config import GPTConfig
from gptviz.engine.index import index_of, listed
from gptviz.text.suggest import did_you_mean

SMALL = 2**24  # bytes: all of a pass that has no more is held, as that costs less than to open a block

Key = tuple[str, int | None]  # (site, block); block is None for the sites outside the blocks


@dataclass(frozen=True)
class Shortcut:
    """Where a site's value also goes, past the module it is captured at: `end` is it plus the site `plus`."""

    plus: str
    end: str


@dataclass(frozen=True)
class Site:
    """One row of the table.

    `module` is a path inside GPTModel, with `{b}` for the block's number; `side` says whether the
    site is that module's input or its output. `form` is how the tensor is handed out: "rows" (T, D)
    as it is, "heads" (H, T, D/H), "weights" (H, T, T).

    The residual stream leaves for the shortcut before the LayerNorm it is captured at, so that a
    replacement there would not reach all that the value reaches. Such a row says what else an edit has
    to do: `edit_at` is the module to replace the value at instead (on the same side), `shortcut` the site
    that has to be made anew from the replacement.
    """

    name: str
    module: str
    side: Literal["input", "output"]
    form: Literal["rows", "heads", "weights"]
    shape: str
    meaning: str
    edit_at: str | None = None
    shortcut: Shortcut | None = None
    # later tokens look at it: `gptviz.engine.past.Past` has it
    in_past: Literal["keys", "values"] | None = None

    @property
    def in_attention(self) -> bool:
        """Whether it is inside a block's attention: so far a block must be run to have it."""
        return ".att." in self.module

    @property
    def edited_module(self) -> str:
        return self.edit_at or self.module

    @property
    def per_block(self) -> bool:
        return "{b}" in self.module

    def floats(self, n_tokens: int, config: GPTConfig) -> int:
        """The number of floats that it holds for a text of `n_tokens`, as `shape` says."""
        d = config.emb_dim
        h = config.n_heads
        sizes = {"T": n_tokens, "D": d, "H": h, "4D": 4 * d, "D/H": d // h}
        return math.prod(sizes[part] for part in self.shape.strip("()").split(", "))

    def present(self, value: torch.Tensor, n_heads: int) -> torch.Tensor:
        """The model's tensor as a Trace hands it out: without the batch of one, split by heads."""
        if self.form == "weights":
            return value[0]  # (1, H, T, T) -> (H, T, T)
        rows = value.reshape(value.shape[-2:])  # (1, T, D) or, for pos_emb, (T, D) -> (T, D)
        if self.form == "rows":
            return rows
        return rows.view(len(rows), n_heads, -1).transpose(0, 1)  # (T, D) -> (T, H, D/H) -> (H, T, D/H)

    def restore(self, shown: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """The reverse of `present`: a tensor of the shape, dtype and device of `like`."""
        rows = shown.transpose(0, 1) if self.form == "heads" else shown  # (H, T, D/H) -> (T, H, D/H)
        return rows.reshape(like.shape).to(like)  # back to (1, T, D), (T, D) or (1, H, T, T)


_BLOCK = "trf_blocks.{b}."
INTO_BLOCK = "resid_pre"  # what a block is worked out from, once more

SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Site("tok_emb", "tok_emb", "output", "rows", "(T, D)", "each token's embedding"),
        Site("pos_emb", "pos_emb", "output", "rows", "(T, D)", "each position's embedding"),
        Site("embed", "drop_emb", "input", "rows", "(T, D)", "their sum"),
        # the shortcut leaves before norm1: replace what the block is given
        Site("resid_pre", _BLOCK + "norm1", "input", "rows", "(T, D)", "the residual stream into the block",
             edit_at="trf_blocks.{b}"),
        Site("q", _BLOCK + "att.W_query", "output", "heads", "(H, T, D/H)", "queries"),
        Site("k", _BLOCK + "att.W_key", "output", "heads", "(H, T, D/H)", "keys", in_past="keys"),
        Site("v", _BLOCK + "att.W_value", "output", "heads", "(H, T, D/H)", "values", in_past="values"),
        # the softmax is no module of its own, but the book passes it through a dropout: it is that input
        Site("attn", _BLOCK + "att.dropout", "input", "weights", "(H, T, T)", "attention weights"),
        Site("z", _BLOCK + "att.out_proj", "input", "heads", "(H, T, D/H)", "each head's weighted values"),
        Site("attn_out", _BLOCK + "att", "output", "rows", "(T, D)", "what attention adds"),
        # no module is given both ways of it
        Site("resid_mid", _BLOCK + "norm2", "input", "rows", "(T, D)", "the stream after attention",
             shortcut=Shortcut(plus="mlp_out", end="resid_post")),
        Site("mlp_pre", _BLOCK + "ff.layers.0", "output", "rows", "(T, 4D)", "the feed-forward before GELU"),
        Site("mlp_act", _BLOCK + "ff.layers.1", "output", "rows", "(T, 4D)", "the feed-forward's GELU"),
        Site("mlp_out", _BLOCK + "ff", "output", "rows", "(T, D)", "what the feed-forward adds"),
        Site("resid_post", "trf_blocks.{b}", "output", "rows", "(T, D)", "the stream out of the block"),
        Site("final", "final_norm", "output", "rows", "(T, D)", "after the final LayerNorm"),
    )
}  # fmt: skip


def all_keys(config: GPTConfig) -> list[Key]:
    """Every (site, block) that a model of this size has, in the order of the forward pass."""
    sites = list(SITES.values())
    before = [(site.name, None) for site in sites[:3]]
    blocks = [(site.name, b) for b in range(config.n_layers) for site in sites if site.per_block]
    return [*before, *blocks, ("final", None)]


def held_keys(config: GPTConfig, n_tokens: int, at_once: Iterable[str | Key] = ()) -> list[Key]:
    """The keys that a trace of everything holds: all of a small pass.

    Of a larger one, those that the rest is made of: the streams, keys and values, and what is outside
    the blocks; and `at_once`.
    """
    every = all_keys(config)
    last = config.n_layers - 1
    held = dict.fromkeys(expand(at_once, config, "at_once"))
    if 4 * sum(SITES[site].floats(n_tokens, config) for site, _ in every) <= SMALL:
        return every
    for key in every:
        site, block = key
        if block is None or SITES[site].in_past or site == INTO_BLOCK or key == ("resid_post", last):
            held[key] = None
    return list(held)


def between_blocks(config: GPTConfig) -> list[tuple[Key, Key]]:
    """The pairs of a block's output and the next block's input: equal but for an edit."""
    return [(("resid_post", b), (INTO_BLOCK, b + 1)) for b in range(config.n_layers - 1)]


def key_of(wanted: str | Key) -> Key:
    """A bare name, or (site, block), as the latter. Raises ValueError for what is neither."""
    if isinstance(wanted, str):
        return wanted, None
    if not isinstance(wanted, tuple | list) or len(wanted) != 2:
        raise ValueError(
            f'{wanted!r} is neither a site nor a site and a block, such as ("attn", 3); a head is a row '
            'of what a trace has there: t["attn", 3][1]'
        )
    return wanted[0], wanted[1]


def check_key(site: str, block: object, n_layers: int | None) -> Key:
    """The key, its block counted from 0, if there is such a place; else a ValueError that says what there is.

    `n_layers` None: in a model of any depth.
    """
    if not isinstance(site, str) or site not in SITES:
        raise ValueError(
            f"there is no site {site!r}{did_you_mean(site, SITES)}; the sites are {', '.join(SITES)}"
        )
    if not SITES[site].per_block:
        if block is not None:
            raise ValueError(f"site {site!r} is outside the blocks; ask for it without the block {block!r}")
        return site, None
    if block is None:
        if n_layers is None:
            there_are = ""
        else:
            there_are = f", from 0 to {n_layers - 1}"
        raise ValueError(f"site {site!r} needs a block{there_are}")
    return site, index_of("block", block, n_layers)


def expand(keep: Iterable[str | Key] | None, config: GPTConfig, what: str = "keep") -> list[Key]:
    """`keep` as a list of keys: None is every site, a bare name is that site in every block."""
    if keep is None:
        return all_keys(config)
    keys: dict[Key, None] = {}
    for wanted in listed(what, keep, 'give a list of sites, such as ["z", ("attn", 3)]'):
        name, block = key_of(wanted)
        everywhere = isinstance(wanted, str) and name in SITES and SITES[name].per_block
        blocks = range(config.n_layers) if everywhere else [block]
        keys |= dict.fromkeys(check_key(name, b, config.n_layers) for b in blocks)
    return list(keys)
