"""The passes of activation patching: every patch of a text's pass with another's values, in batches.

A patch of the residual stream, of what attention or the feed-forward adds, changes one row of the stream: the
pass goes on from the block where that row comes in. A patch of one head's queries, keys, values or pattern
changes that head's output and nothing else of its block's attention: it is worked out from both texts' own
q, k, v, and the pass goes on from the block's output matrix.

Shapes: B patches of one batch, T tokens, H heads, D emb_dim, d = D/H.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from gptviz.engine.config import GPTConfig
from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook, hidden_from, running
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Before
from gptviz.engine.trace import Trace

POSITION_SITES = ("resid_pre", "attn_out", "mlp_out")
HEAD_SITES = ("z", "q", "k", "v", "attn")
SITES = (*POSITION_SITES, *HEAD_SITES)

# numbers of the widest layer that a batch may have: 16 MB of them, and about as much around it
BATCH_NUMBERS = 2**22


@dataclass(frozen=True)
class Patch:
    """A place where a value is put: a site of a block at one position, or one head's at all positions."""

    site: str
    block: int
    head: int | None = None
    position: int | None = None

    def edit(self, ids: Sequence[int]) -> Edit:
        """The same as an edit of one pass, with the values that the model has when it reads these ids."""
        heads = None if self.head is None else [self.head]
        positions = None if self.position is None else [self.position]
        return Edit(self.site, self.block, value_of(ids), heads, positions)


def value_of(ids: Sequence[int]) -> str:
    """An edit's value that is taken from the pass of these ids."""
    return "ids" + "+".join(map(str, ids))


def patches_of(config: GPTConfig, n_tokens: int, sites: Iterable[str] = SITES, first: int = 0) -> list[Patch]:
    """All patches of these sites for a text of so many tokens, from position `first` on, as the rows are."""
    return [
        Patch(site, b, **{"head" if site in HEAD_SITES else "position": place})
        for site in sites
        for b in range(config.n_layers)
        for place in (range(config.n_heads) if site in HEAD_SITES else range(first, n_tokens))
    ]


def needed(sites: Sequence[str]) -> list[str]:
    """Return what a pass has to keep for patches of these sites."""
    found = {"resid_pre", "final", *(site for site in sites if site in POSITION_SITES)}
    found |= {"resid_mid", "resid_post"} if found & {"attn_out", "mlp_out"} else set()
    return sorted(found | {"k", "v"} | ({"z", "q"} if set(sites) & set(HEAD_SITES) else set()))


# patches, and (B, D) what the output head gets: None, as before
Batch = tuple[list[Patch], torch.Tensor | None]


def one_by_one(
    lm: LanguageModel, own: Trace, source: Trace, at: int, patches: list[Patch]
) -> Iterator[Batch]:
    """Each patch as an edit on top of the model's own: a whole pass for every one."""
    own.of(lm.model), source.of(lm.model)
    ids, other = ([token.id for token in trace.tokens] for trace in (own, source))
    for patch in patches:
        final = lm.trace(ids, keep=["final"], edits=[patch.edit(other)])["final"][at]  # (D,)
        yield [patch], None if torch.equal(final, own["final"][at]) else final[None]


def batches(lm: LanguageModel, own: Trace, source: Trace, at: int, patches: list[Patch]) -> Iterator[Batch]:
    """The same, the patches of a site and block together, as many as fit into a batch."""
    own.of(lm.model), source.of(lm.model)
    size = max(1, BATCH_NUMBERS // (4 * lm.config.emb_dim * (at + 1)))
    same = [one.id == two.id for one, two in zip(own.tokens, source.tokens, strict=True)]
    first = min([*same, False].index(False), at)  # before it no patch changes anything
    kept = [[own[site, b][:, :first] for b in range(lm.config.n_layers)] for site in ("k", "v")]
    past = Before(*kept)
    groups: dict[tuple[str, int], list[Patch]] = {}
    for patch in patches:  # all that is of heads goes on from the block's output matrix
        groups.setdefault(("z" if patch.site in HEAD_SITES else patch.site, patch.block), []).append(patch)
    for (site, block), group in groups.items():
        moved = [patch for patch in group if _can_matter(own, source, patch, at)]
        if len(moved) < len(group):
            yield [patch for patch in group if patch not in set(moved)], None
        of_site = _at_positions if site in POSITION_SITES else _of_heads
        for i in range(0, len(moved), size):
            some = moved[i : i + size]
            yield some, of_site(lm, own, source, block, some, slice(first, at + 1), past)


def _can_matter(own: Trace, source: Trace, patch: Patch, at: int) -> bool:
    """Return whether the patch changes a value, and one that the position looked at can still read."""
    b = patch.block
    if b == own.config.n_layers - 1 and patch.site in ("attn_out", "mlp_out") and patch.position != at:
        return False
    sites = ("q", "k") if patch.site == "attn" else (patch.site,)
    place = patch.position if patch.head is None else patch.head
    return any(not torch.equal(own[site, b][place], source[site, b][place]) for site in sites)


def _at_positions(
    lm: LanguageModel, own: Trace, source: Trace, b: int, patches: list[Patch], rows: slice, past: Before
) -> torch.Tensor:
    """(B, D), after final_norm: a row of the stream is another one, and the pass goes on from there."""
    weight, site = lm.model.out_head.weight, patches[0].site
    places = torch.tensor([patch.position for patch in patches])
    value = source[site, b][places].to(weight)  # (B, D)
    start, stream = (b, own["resid_pre", b]) if site == "resid_pre" else (b + 1, own["resid_post", b])
    if site == "mlp_out":
        value = own["resid_mid", b][places].to(weight) + value
    if site == "attn_out":
        block = lm.model.trf_blocks[b]
        middle = own["resid_pre", b][places].to(weight) + value
        with running(lm.model):  # the feed-forward works on each token by itself
            value = middle + block.ff(block.norm2(middle))
    streams = stream[rows].to(weight).repeat(len(patches), 1, 1)  # (T, D) -> (B, T, D)
    streams[torch.arange(len(patches)), (places - rows.start).to(weight.device)] = value
    return hidden_from(lm.model, start, streams, (), streams.shape[1] - 1, past)


def _of_heads(
    lm: LanguageModel, own: Trace, source: Trace, b: int, patches: list[Patch], rows: slice, past: Before
) -> torch.Tensor:
    """(B, D), after final_norm: one head's output is what it makes of its patched queries, keys, ..."""

    def of(site: str) -> torch.Tensor:
        """Every head's output with its patch, (t, H, d)."""

        def one(name: str, *patched: str) -> torch.Tensor:
            return (source if site in patched else own)[name, b]  # (H, T, d)

        if site == "z":
            return one("z", "z")[:, rows].transpose(0, 1)
        queries, keys, values = one("q", "q", "attn"), one("k", "k", "attn"), one("v", "v")
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)[:, rows].transpose(0, 1)

    made = {site: of(site) for site in {patch.site for patch in patches}}
    z = own["z", b][:, rows].transpose(0, 1).repeat(len(patches), 1, 1, 1)  # (B, t, H, d)
    for text, patch in zip(z, patches, strict=True):
        text[:, patch.head] = made[patch.site][:, patch.head]
    stream = own["resid_pre", b][None, rows].to(lm.model.out_head.weight)  # (1, t, D)
    hook = Hook(f"trf_blocks.{b}.att.out_proj", "input", lambda _: z.flatten(-2).to(stream))
    return hidden_from(lm.model, b, stream, [hook], stream.shape[1] - 1, past)
