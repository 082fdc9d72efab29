"""The table of sites: every place in a GPTModel whose numbers can be captured or replaced.

A site has a name, such as "attn" for attention weights; most sites exist once in every block. A key names one
place: the site and its block, such as ("attn", 3), or ("embed", None) outside the blocks. The capture, the
edits, the documentation and the tests all read this table, so that a new row in it is all that a new site
needs.

Shapes: T tokens, D emb_dim, H heads. The "residual stream" is the (T, D) tensor that runs through all blocks;
each block adds the outputs of its attention and its feed-forward to it (the book's shortcut connections).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from gptviz.engine.config import GPTConfig
from gptviz.engine.index import index_of, listed
from gptviz.text.suggest import did_you_mean

# A trace of at most this many bytes holds every site; that costs less than running a block once more.
SMALL = 2**24

Key = tuple[str, int | None]  # (site, block); block is None for the sites outside the blocks


@dataclass(frozen=True)
class Shortcut:
    """The shortcut connection that starts at a site: the site `end` is the site's own value plus `plus`.

    For `resid_mid`: resid_post = resid_mid + mlp_out.
    """

    plus: str
    end: str


@dataclass(frozen=True)
class Site:
    """One row of the table.

    `module` is a path inside GPTModel, with `{b}` for the block's number; `side` says whether the
    site is that module's input or its output. `form` is the shape in which a Trace hands the tensor out:
    "rows" (T, D) or (T, 4D), "heads" (H, T, D/H), "weights" (H, T, T). `shape` says it exactly.

    `resid_pre` and `resid_mid` are captured at the input of a LayerNorm. The shortcut connection takes the
    residual stream before that, so a replacement at the LayerNorm alone would not reach it. Two fields say
    what an edit does instead: `edit_at` is another module whose input is replaced, and `shortcut` names the
    site that has to be computed again from the new value.
    """

    name: str
    module: str
    side: Literal["input", "output"]
    form: Literal["rows", "heads", "weights"]
    shape: str
    meaning: str
    edit_at: str | None = None
    shortcut: Shortcut | None = None
    # keys and values are kept for later tokens (a KV cache): the name of the part of `Past` that has this
    # site
    in_past: Literal["keys", "values"] | None = None

    @property
    def in_attention(self) -> bool:
        """Whether it is inside a block's attention, so that running only the attention computes it."""
        return ".att." in self.module

    @property
    def edited_module(self) -> str:
        """The module, with `{b}` for the block's number, at which an edit replaces the value."""
        return self.edit_at or self.module

    @property
    def per_block(self) -> bool:
        """Whether every block has this site."""
        return "{b}" in self.module

    def floats(self, n_tokens: int, config: GPTConfig) -> int:
        """The number of floats that the site has in one block for a text of `n_tokens`, by its `shape`."""
        d = config.emb_dim
        h = config.n_heads
        sizes = {"T": n_tokens, "D": d, "H": h, "4D": 4 * d, "D/H": d // h}
        return math.prod(sizes[part] for part in self.shape.strip("()").split(", "))

    def present(self, value: torch.Tensor, n_heads: int) -> torch.Tensor:
        """Reshape the model's tensor as a Trace hands it out: without the batch of 1, split by heads."""
        if self.form == "weights":
            return value[0]  # (1, H, T, T) -> (H, T, T)
        rows = value.reshape(value.shape[-2:])  # (1, T, D) or, for pos_emb, (T, D) -> (T, D)
        if self.form == "rows":
            return rows
        # (T, D) -> (T, H, D/H) -> (H, T, D/H)
        return rows.view(len(rows), n_heads, -1).transpose(0, 1)

    def restore(self, shown: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Undo `present`: give the tensor the shape, dtype and device of the model's tensor `like`."""
        # (H, T, D/H) -> (T, H, D/H)
        rows = shown.transpose(0, 1) if self.form == "heads" else shown
        return rows.reshape(like.shape).to(like)  # back to (1, T, D), (T, D) or (1, H, T, T)


_BLOCK = "trf_blocks.{b}."
INTO_BLOCK = "resid_pre"  # the input of a block, from which it can be run once more

SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Site("tok_emb", "tok_emb", "output", "rows", "(T, D)", "each token's embedding"),
        Site("pos_emb", "pos_emb", "output", "rows", "(T, D)", "each position's embedding"),
        Site("embed", "drop_emb", "input", "rows", "(T, D)", "their sum"),
        # the shortcut starts before norm1: replace the input of the whole block
        Site("resid_pre", _BLOCK + "norm1", "input", "rows", "(T, D)", "the residual stream into the block",
             edit_at="trf_blocks.{b}"),
        Site("q", _BLOCK + "att.W_query", "output", "heads", "(H, T, D/H)", "queries"),
        Site("k", _BLOCK + "att.W_key", "output", "heads", "(H, T, D/H)", "keys", in_past="keys"),
        Site("v", _BLOCK + "att.W_value", "output", "heads", "(H, T, D/H)", "values", in_past="values"),
        # softmax is a function, not a module, so no hook can be put on it; the dropout after it is a module
        Site("attn", _BLOCK + "att.dropout", "input", "weights", "(H, T, T)", "attention weights"),
        Site("z", _BLOCK + "att.out_proj", "input", "heads", "(H, T, D/H)", "each head's weighted values"),
        Site("attn_out", _BLOCK + "att", "output", "rows", "(T, D)", "what attention adds"),
        # the shortcut starts before norm2, and no module has the stream before that as its input or output
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
    """The keys that a trace of all sites holds: every key, if they take no more bytes than `SMALL`.

    Otherwise the trace is lean: it holds what the other sites can be computed from (the input, keys and
    values of each block, the output of the last one, and the sites outside the blocks), and `at_once`.
    """
    keys = all_keys(config)
    last = config.n_layers - 1
    keys_held = dict.fromkeys(expand(at_once, config, "at_once"))
    if 4 * sum(SITES[site].floats(n_tokens, config) for site, _ in keys) <= SMALL:
        return keys
    for key in keys:
        site, block = key
        if (
            block is None
            or SITES[site].in_past
            or site == INTO_BLOCK
            or key == ("resid_post", last)
        ):
            keys_held[key] = None
    return list(keys_held)


def between_blocks(config: GPTConfig) -> list[tuple[Key, Key]]:
    """Pairs of keys: a block's output, and the next block's input, which is the same unless it is edited."""
    return [(("resid_post", b), (INTO_BLOCK, b + 1)) for b in range(config.n_layers - 1)]


def key_of(wanted: str | Key) -> Key:
    """Turn the name of a site, or (site, block), into a key; a name alone gets the block None.

    Raises ValueError for anything else. Whether the site exists is checked by `check_key`.
    """
    if isinstance(wanted, str):
        return wanted, None
    if not isinstance(wanted, tuple | list) or len(wanted) != 2:
        raise ValueError(
            f'{wanted!r} is neither a site nor a site and a block, such as ("attn", 3); a head is a row '
            'of what a trace has there: t["attn", 3][1]'
        )
    return wanted[0], wanted[1]


def check_key(site: str, block: object, n_layers: int | None) -> Key:
    """The key of a site and a block, with a negative block counted from 0.

    Raises ValueError, which lists what there is, if a model of `n_layers` blocks has no such place. With None
    for `n_layers`, only the site and whether it needs a block are checked.
    """
    if not isinstance(site, str) or site not in SITES:
        raise ValueError(
            f"there is no site {site!r}{did_you_mean(site, SITES)}; the sites are {', '.join(SITES)}"
        )
    if not SITES[site].per_block:
        if block is not None:
            raise ValueError(
                f"site {site!r} is outside the blocks; ask for it without the block {block!r}"
            )
        return site, None
    if block is None:
        if n_layers is None:
            there_are = ""
        else:
            there_are = f", from 0 to {n_layers - 1}"
        raise ValueError(f"site {site!r} needs a block{there_are}")
    return site, index_of("block", block, n_layers)


def expand(keep: Iterable[str | Key] | None, config: GPTConfig, what: str = "keep") -> list[Key]:
    """Turn `keep` into a list of keys: None is every key, the name of a site is that site in every block."""
    if keep is None:
        return all_keys(config)
    keys: dict[Key, None] = {}
    for wanted in listed(what, keep, 'give a list of sites, such as ["z", ("attn", 3)]'):
        name, block = key_of(wanted)
        everywhere = isinstance(wanted, str) and name in SITES and SITES[name].per_block
        blocks = range(config.n_layers) if everywhere else [block]
        keys |= dict.fromkeys(check_key(name, b, config.n_layers) for b in blocks)
    return list(keys)
