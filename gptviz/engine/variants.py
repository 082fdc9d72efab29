"""One text under many choices of edits at once, each in a pass of its own.

What stands before an edit does not change. So the passes begin at a block, with what came into it, and
part ways where the first of the edited sites is: from there on they go on together, as one batch.

Shapes: B choices of one batch, T tokens, D emb_dim.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook, hidden_from
from gptviz.engine.past import Before
from gptviz.engine.reader import Reader, ready
from gptviz.engine.sites import SITES, Key

# numbers of the widest layer that a batch may have: 64 MB of them, and about as much around it
BATCH_NUMBERS = 2**24


def variants(
    lm: Reader,
    stream: torch.Tensor,
    block: int,
    choices: Sequence[Sequence[Edit]],
    row: int | None = None,
    past: Before | None = None,
    most: int = sys.maxsize,
) -> Iterator[torch.Tensor]:
    """Yield the input of the output head, (B, T, D), or (B, D) of a `row`, with each of these choices.

    As many as fit are made in a batch, and no more than `most`. `stream` (T, D) came into the block, after
    the tokens of `past`. No edit is of `q`, `k`, `v` or `attn`, between which a batch cannot part ways, and
    those of earlier blocks are in the stream already; in every pass the model's own are made before them.
    The rows are those of `lm.trace(ids, edits=edits)`, within 1e-5 in float32.
    """
    start = stream[None].to(lm.model.out_head.weight)  # (1, T, D)
    first = 0 if past is None else len(past)
    own_hooks = lm.hooks(first + len(stream), first, entered=block)
    size = max(1, min(most, BATCH_NUMBERS // (4 * stream.numel())))
    for i in range(0, len(choices), size):
        batch = choices[i : i + size]
        finals = hidden_from(lm.model, block, start, [*own_hooks, *_hooks(lm, batch, first)], row, past)
        yield finals.expand(len(batch), *finals.shape[1:])  # one text where no choice changes anything


def _hooks(lm: Reader, choices: Sequence[Sequence[Edit]], first: int) -> list[Hook]:
    """Hooks that make a batch of a text, a row a choice, and each one's edits in its own row."""
    places: dict[Key, list[tuple[int, Edit]]] = {}
    for number, edits in enumerate(choices):
        for edit in ready(lm, edits):
            places.setdefault(edit.key, []).append((number, edit))

    def visit(key: Key, value: torch.Tensor) -> torch.Tensor:
        value = value.repeat(len(choices), 1, 1) if len(value) == 1 else value.clone()  # (B, T, D)
        for number, edit in places[key]:
            site = SITES[edit.site]
            text = value[number]
            text.copy_(site.restore(edit.apply(site.present(text[None], lm.config.n_heads), first), text))
        return value

    sites = [(key, SITES[key[0]]) for key in places]
    return [Hook(site.edited_module.format(b=key[1]), site.side, partial(visit, key)) for key, site in sites]
