"""How far a change reaches: which of a pass's numbers an edit can alter, by the wiring of the model alone.

Every position goes through the blocks by itself, but for one place: in a block's attention later positions
take over keys and values of earlier ones. So a change at position j can be seen at position i > j only if an
attention stands between the two sites, and never at a position before j. Within a block queries, keys and
values are made side by side, and so are the heads up to the output projection.
"""

from collections.abc import Collection
from typing import Literal

from gptviz.engine.edits import Edit
from gptviz.engine.kinds import Config
from gptviz.engine.sites import ALL_SITES

# Why nothing of an edit can be seen at a place: it is made later in the pass, beside it (in another head, or
# at a site that the other does not read), at later positions, or at others without an attention in between.
Unseen = Literal["later", "beside", "later position", "other position"]

_ORDER = {name: place for place, name in enumerate(ALL_SITES)}
# what of its own block reads a site, where there are others behind it that do not
_READ_BY = {
    "q": ("q_rot", "attn", "z"),
    "k": ("k_rot", "attn", "z"),
    "v": ("z",),
    "q_rot": ("attn", "z"),
    "k_rot": ("attn", "z"),
}
# a head's own sites, which other heads of its block do not read
_BY_HEAD = (*_READ_BY, "attn", "z")


def unseen(
    edit: Edit,
    site: str,
    block: int | None,
    config: Config,
    n_tokens: int,
    head: int | None = None,
    position: int | None = None,
) -> Unseen | None:
    """The reason why `edit` cannot change `site` of `block`, in this head, at this position; None if it can.

    `head` None: in any of them, `position` None: at any. "final" stands for the prediction. The edit is one
    that fits the model and the text (`Edit.check`). Where None is given back the change may still be zero.
    """
    n_layers = config.n_layers
    places = positions_of(edit, n_tokens)
    site_depth = _depth(site, block, n_layers)

    def from_block(changed: int | None) -> Unseen | None:
        """The same for an edit of one block, or of none."""
        edit_depth = _depth(edit.site, changed, n_layers)
        if edit_depth > site_depth:
            return "later"
        if edit_depth[0] == site_depth[0]:
            between = edit.site in _READ_BY and site in _BY_HEAD and site != edit.site
            if between and site not in _READ_BY[edit.site]:
                return "beside"
            if {edit.site, site} == {"mlp_gate", "mlp_up"}:
                return "beside"
            by_head = edit.site in _BY_HEAD and site in _BY_HEAD
            if head is not None and by_head and not edit.is_of_head(edit_depth[0], head, config):
                return "beside"
        if position is None:
            return None
        if not any(place <= position for place in places):
            return "later position"
        if position not in places and not _mixed(edit_depth, site_depth, n_layers):
            return "other position"
        return None

    reasons = [from_block(changed) for changed in edit.blocks(n_layers) or (None,)]
    if None in reasons:
        return None
    return reasons[0]


def positions_of(edit: Edit, n_tokens: int) -> Collection[int]:
    """The positions, 0 to `n_tokens` - 1, at which an edit may replace a value of its site."""
    positions = (
        range(n_tokens) if edit.positions is None else {p % n_tokens for p in edit.positions}
    )
    hidden = hidden_token(edit)
    if hidden is None:
        return positions
    return [p for p in positions if p > hidden]


def hidden_token(edit: Edit) -> int | None:
    """The token that no later one may look at, 5 for "hide5"; None for any other edit."""
    value = edit.named
    if value is not None and value.name == "hide":
        return value.numbers[0]
    return None


def _depth(site: str, block: int | None, n_layers: int) -> tuple[int, int]:
    """A site's place in the pass: before the blocks (-1), in one of them, after them."""
    if ALL_SITES[site].per_block:
        assert block is not None, "a site of a block has a block"
        return block, _ORDER[site]
    return (n_layers if site == "final" else -1), _ORDER[site]


def _mixed(edit_depth: tuple[int, int], site_depth: tuple[int, int], n_layers: int) -> bool:
    """Whether an attention, from its keys and values on, stands between an edit and a site of the pass."""
    if edit_depth[1] in [_ORDER[site] for site in ("resid_pre", "k", "v", "k_rot")]:
        begins = edit_depth[0]
    else:
        begins = edit_depth[0] + 1
    if _ORDER["attn"] <= site_depth[1] < _ORDER["final"]:
        ends = site_depth[0]
    else:
        ends = site_depth[0] - 1
    return begins <= min(ends, n_layers - 1)
