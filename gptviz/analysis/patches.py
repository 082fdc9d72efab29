"""The passes of activation patching: every patch of a text's pass with another's values, in batches.

A pass begins at the patch's block, and at the first token that the two texts do not share: the patches of a
site and block part ways there, and go on as one batch (`gptviz.engine.variants`). A patch of one head's
queries, keys, values or pattern changes that head's output and nothing else of its block's attention: it is
worked out from both texts' own q, k, v, and is a patch of that output.

Heads that share a key and a value are patched together there: a patch of `k` or `v` is one of a group.

Shapes: B patches of one batch, T tokens, H heads, D emb_dim, d head_dim.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from gptviz.analysis.attention import of_heads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.edits import Edit
from gptviz.engine.kinds import Config
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Before
from gptviz.engine.run import common_prefix
from gptviz.engine.sites import sites_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.variants import variants

POSITION_SITES = ("resid_pre", "attn_out", "mlp_out")
HEAD_SITES = ("z", "q", "k", "v", "attn")
SITES = (*POSITION_SITES, *HEAD_SITES)

# numbers of the widest layer that a batch may have: 16 MB of them, and about as much around it
BATCH_NUMBERS = 2**22


@dataclass(frozen=True)
class Patch:
    """A place where a value is put: a site of a block at one position, or one head's at all positions.

    The `head` of keys and values is a group where heads share them.
    """

    site: str
    block: int
    head: int | None = None
    position: int | None = None

    def edit(self, ids: Sequence[int]) -> Edit:
        """The same as an edit of one pass, with the values that the model has when it reads these ids."""
        if self.head is None:
            heads = None
        else:
            heads = [self.head]
        if self.position is None:
            positions = None
        else:
            positions = [self.position]
        return Edit(self.site, self.block, value_of(ids), heads, positions)


def value_of(ids: Sequence[int]) -> str:
    """An edit's value that is taken from the pass of these ids."""
    return "ids" + "+".join(map(str, ids))


def patches_of(
    config: Config, n_tokens: int, sites: Iterable[str] = SITES, first: int = 0
) -> list[Patch]:
    """All patches of these sites for a text of `n_tokens`, from position `first` on, in the table's order."""
    return [
        Patch(site, b, **{"head" if site in HEAD_SITES else "position": place})
        for site in sites
        for b in range(config.n_layers)
        for place in (
            range(sites_of(config)[site].count(config))
            if site in HEAD_SITES
            else range(first, n_tokens)
        )
    ]


# patches, and (B, D) what the output head gets; None if the patches change nothing
Batch = tuple[list[Patch], torch.Tensor | None]


@undisturbed
def one_by_one(
    lm: LanguageModel, own: Trace, source: Trace, at: int, patches: list[Patch]
) -> Iterator[Batch]:
    """Each patch as an edit on top of the model's own: a whole pass for every one."""
    own.of(lm.model), source.of(lm.model)
    ids, other = ([token.id for token in trace.tokens] for trace in (own, source))
    for patch in patches:
        final = lm.trace(ids, keep=["final"], edits=[patch.edit(other)])["final"][at]  # (D,)
        yield [patch], None if torch.equal(final, own["final"][at]) else final[None]


@undisturbed
def batches(
    lm: LanguageModel, own: Trace, source: Trace, at: int, patches: list[Patch]
) -> Iterator[Batch]:
    """The same, the patches of a site and block together, as many as fit into a batch."""
    own.of(lm.model), source.of(lm.model)
    most = BATCH_NUMBERS // (lm.config.hidden_dim * (at + 1))
    ids, other = ([token.id for token in trace.tokens] for trace in (own, source))
    kind = architecture_of(lm.config)
    first = min(common_prefix(ids, other), at)  # before it no patch changes anything
    past = Before(
        *([own[site, b][:, :first] for b in range(lm.config.n_layers)] for site in kind.past)
    )
    groups: dict[tuple[str, int], list[Patch]] = {}
    for patch in patches:  # every patch of a head becomes a patch of that head's output
        groups.setdefault(
            ("z" if patch.site in HEAD_SITES else patch.site, patch.block), []
        ).append(patch)
    for (_, block), group in groups.items():
        moved = [patch for patch in group if _can_matter(own, source, patch, at)]
        if len(moved) < len(group):
            yield [patch for patch in group if patch not in set(moved)], None
        # the numbers themselves, in the place of a text to be read for them
        values = {
            name: _value(own, source, block, name) for name in {patch.site for patch in moved}
        }
        edits = [
            [_as_output(lm.config, patch, replace(patch.edit(other), value=values[patch.site]))]
            for patch in moved
        ]
        stream = own["resid_pre", block][first : at + 1]
        done = 0
        for finals in variants(lm, stream, block, edits, at - first, past, most):
            yield moved[done : done + len(finals)], finals
            done += len(finals)


def _as_output(config: Config, patch: Patch, edit: Edit) -> Edit:
    """The edit of a patch of heads as one of their outputs; any other as it is."""
    if patch.head is None:
        return edit
    site = sites_of(config)[patch.site]
    heads = [h for h in range(config.n_heads) if site.of_head(h, config) == patch.head]
    return replace(edit, site="z", heads=heads)


def _can_matter(own: Trace, source: Trace, patch: Patch, at: int) -> bool:
    """Whether the patch changes a value that the position looked at can still read."""
    b = patch.block
    if (
        b == own.config.n_layers - 1
        and patch.site in ("attn_out", "mlp_out")
        and patch.position != at
    ):
        return False
    sites = ("q", "k") if patch.site == "attn" else (patch.site,)
    for name in sites:
        if patch.head is None:
            place = patch.position
        elif patch.site == "attn":
            place = sites_of(own.config)[name].of_head(patch.head, own.config)
        else:
            place = patch.head
        if not torch.equal(own[name, b][place], source[name, b][place]):
            return True
    return False


def _value(own: Trace, source: Trace, block: int, site: str) -> Trace | torch.Tensor:
    """The values that patches of a site put in; for a site of heads each head's output then, (H, T, d)."""
    if site in ("z", *POSITION_SITES):
        return source

    def chosen(name: str, *patched: str) -> torch.Tensor:
        return of_heads(source if site in patched else own, name, block)  # (H, T, d)

    # of all positions: what a position does to them, such as turning them, is done in both texts alike
    query, key = architecture_of(own.config).scores
    queries = chosen(query, "q", "attn")
    keys = chosen(key, "k", "attn")
    values = chosen("v", "v")
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
