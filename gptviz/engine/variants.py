"""One text under many edits of one block at once, each in a pass of its own.

What stands before an edit does not change. So the passes begin at the block, with what came into it, and
part ways where the first of the edited sites is: from there on they go on together, as one batch.

Shapes: B edits of one batch, T tokens, D emb_dim.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook, hidden_from
from gptviz.engine.reader import Reader, ready
from gptviz.engine.sites import SITES, Site


def variants(
    lm: Reader, stream: torch.Tensor, block: int, edits: Sequence[Edit], size: int, row: int | None = None
) -> Iterator[torch.Tensor]:
    """Yield what the output head is given, (B, T, D), or (B, D) of a `row`, with each of these edits in turn.

    `size` of them are made in a batch. `stream` (T, D) came into the block. All edits are of sites of this
    block other than `attn`; in every pass the model's own are made before them. The rows are those of
    `lm.trace(ids, edits=[edit])`, within 1e-5 in float32.
    """
    edits, start = ready(lm, edits), stream[None].to(lm.model.out_head.weight)  # (1, T, D)
    for i in range(0, len(edits), size):
        some = edits[i : i + size]

        def visit(site: Site, value: torch.Tensor, some: list[Edit] = some) -> torch.Tensor:
            value = value.repeat(len(some), 1, 1) if len(value) == 1 else value.clone()  # (B, T, D)
            for text, edit in zip(value, some, strict=True):
                if edit.site == site.name:
                    shown = edit.apply(site.present(text[None], lm.config.n_heads))
                    text.copy_(site.restore(shown, text))
            return value

        sites = [SITES[name] for name in dict.fromkeys(edit.site for edit in some)]
        hooks = [Hook(site.edited_module.format(b=block), site.side, partial(visit, site)) for site in sites]
        yield hidden_from(lm.model, block, start, [*lm.hooks(len(stream), entered=block), *hooks], row)
