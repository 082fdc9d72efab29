"""What an edit can reach: which sites lie behind it in the pass, and which positions look back at it.

Nothing is measured here. What an edit cannot reach is the same to the bit with it and without it; what it
can reach may still be the same (a head that had written nothing before it was switched off).
"""

from collections.abc import Iterable

from gptviz.edits import Edit
from gptviz.sites import SITES

# What reads a site directly, inside its block or outside of all; resid_post goes on into the next block.
READ_BY: dict[str, tuple[str, ...]] = {
    "tok_emb": ("embed",),
    "pos_emb": ("embed",),
    "embed": (),
    "resid_pre": ("q", "k", "v", "resid_mid"),
    "q": ("attn",),
    "k": ("attn",),
    "v": ("z",),
    "attn": ("z",),
    "z": ("attn_out",),
    "attn_out": ("resid_mid",),
    "resid_mid": ("mlp_pre", "resid_post"),
    "mlp_pre": ("mlp_act",),
    "mlp_act": ("mlp_out",),
    "mlp_out": ("resid_post",),
    "resid_post": (),
    "final": (),
}


def reached(edits: Iterable[Edit], site: str, block: int | None, n_tokens: int) -> int | None:
    """From which position on these edits can change this site; None where they cannot at all.

    `block` is None outside the blocks. Attention looks back only, so what is done at position 5 changes
    nothing before it.
    """
    starts = [first_position(edit, n_tokens) for edit in edits if lies_behind(site, block, edit)]
    return min((start for start in starts if start < n_tokens), default=None)


def lies_behind(site: str, block: int | None, edit: Edit) -> bool:
    """Whether this is the site that the edit replaces, or one that reads it, directly or through others."""
    here, there = _depth(site, block), _depth(edit.site, edit.block)
    if edit.block == "*":
        return here > 0 or (here == 0 and (site == edit.site or site in _behind(edit.site)))
    if here != there:
        return here > there
    return site == edit.site or site in _behind(edit.site)


def first_position(edit: Edit, n_tokens: int) -> int:
    """The first position at which the edit replaces anything; `n_tokens` where that is behind the text."""
    first = 0
    if edit.positions is not None:
        first = min(p % n_tokens if p < 0 else p for p in edit.positions)
    if SITES[edit.site].form == "weights" and isinstance(edit.value, str):
        if edit.value.startswith("hide"):
            first = max(first, int(edit.value.removeprefix("hide")) + 1)  # the token still sees itself
        elif edit.value != "zero":
            first = max(first, 1)  # the first token sees itself alone, whatever its attention should be
    return min(first, n_tokens)


def _depth(site: str, block: int | str | None) -> float:
    """Before all blocks -1, in a block its number, after them infinity."""
    if isinstance(block, int):
        return block
    return float("inf") if site == "final" else 0 if block == "*" else -1


def _behind(site: str) -> set[str]:
    """All that read a site before its block ends, directly or through others."""
    found: set[str] = set()
    todo = [site]
    while todo:
        for reader in READ_BY[todo.pop()]:
            if reader not in found:
                found.add(reader)
                todo.append(reader)
    return found
