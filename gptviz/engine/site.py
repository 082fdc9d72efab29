"""A site: a place in a model whose numbers can be captured or replaced, as one row of a table says it.

Shapes: T tokens, D emb_dim, H heads, K groups of heads that share a key and a value, d head_dim. The "residual
stream" is the (T, D) tensor that runs through all blocks; each block adds the outputs of its attention and its
feed-forward to it (the book's shortcut connections).
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

Key = tuple[str, int | None]  # (site, block); block is None for the sites outside the blocks


class Sizes(Protocol):
    """A config, as a site's shape needs it."""

    @property
    def n_heads(self) -> int: ...

    @property
    def n_kv_groups(self) -> int: ...

    def sizes(self, n_tokens: int) -> dict[str, int]:
        """The numbers behind the names in a shape, such as "D", for a text of `n_tokens`."""
        ...


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

    `module` is a path inside the model, with `{b}` for the block's number; `side` says whether the
    site is that module's input or its output. `form` is the shape in which a Trace hands the tensor out:
    "rows" (T, D) or (T, 4D), "heads" (H, T, d), "groups" (K, T, d), "weights" (H, T, T). `shape` says it
    exactly.

    `resid_pre` and `resid_mid` are captured at the input of a LayerNorm. The shortcut connection takes the
    residual stream before that, so a replacement at the LayerNorm alone would not reach it. Two fields say
    what an edit does instead: `edit_at` is another module whose input is replaced, and `shortcut` names the
    site that has to be computed again from the new value.
    """

    name: str
    module: str
    side: Literal["input", "output"]
    form: Literal["rows", "heads", "groups", "weights"]
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
    def before_context(self) -> bool:
        """Whether it is one of those that attention mixes: a batch of one and one of many do not go together."""
        return self.in_attention and not self.module.endswith(".out_proj")

    @property
    def edited_module(self) -> str:
        """The module, with `{b}` for the block's number, at which an edit replaces the value."""
        return self.edit_at or self.module

    @property
    def per_block(self) -> bool:
        """Whether every block has this site."""
        return "{b}" in self.module

    @property
    def part(self) -> str:
        """What it is split by, in a word, where it is split at all: "head" or "group"."""
        if self.form == "groups":
            return "group"
        return "head"

    def count(self, config: Sizes) -> int:
        """The number of heads, or of groups, that it is split by in such a model."""
        if self.form == "groups":
            return config.n_kv_groups
        return config.n_heads

    def of_head(self, head: int, config: Sizes) -> int:
        """The index at the site of what this head reads or writes there: its own, or that of its group."""
        return head * self.count(config) // config.n_heads

    def floats(self, n_tokens: int, config: Sizes) -> int:
        """The number of floats that the site has in one block for a text of `n_tokens`, by its `shape`."""
        sizes = config.sizes(n_tokens)
        return math.prod(sizes[part] for part in self.shape.strip("()").split(", "))

    def present(self, value: torch.Tensor, config: Sizes) -> torch.Tensor:
        """Reshape the model's tensor as a Trace hands it out: without the batch of 1, split by heads."""
        if value.dim() == 4:
            return value[0]  # (1, H, T, T) -> (H, T, T), or (1, H, T, d) -> (H, T, d)
        rows = value.reshape(value.shape[-2:])  # (1, T, D) or, for pos_emb, (T, D) -> (T, D)
        if self.form == "rows":
            return rows
        # (T, H * d) -> (T, H, d) -> (H, T, d)
        return rows.view(len(rows), self.count(config), -1).transpose(0, 1)

    def restore(self, shown: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Undo `present`: give the tensor the shape, dtype and device of the model's tensor `like`."""
        if shown.dim() == 3 and like.shape[-3:] != shown.shape:
            shown = shown.transpose(0, 1)  # (H, T, d) -> (T, H, d): the heads side by side
        return shown.reshape(like.shape).to(like)  # back to (1, T, D), (T, D) or (1, H, T, T)
