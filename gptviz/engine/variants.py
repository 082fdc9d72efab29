"""Run one text with many different lists of edits, several of them in one batch.

An edit replaces numbers inside the model. Everything before the first edited site is the same for all lists.
So a pass begins at a block, with the block's input from an earlier pass, as a single text; at the first
edited site it becomes a batch, in which each row has its own edits.

Shapes: B lists of edits in one batch, T tokens, D emb_dim.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from gptviz.engine.edits import Edit
from gptviz.engine.forward import Hook, hidden_from
from gptviz.engine.past import Before
from gptviz.engine.reader import Reader, ready
from gptviz.engine.sites import Key, sites_of

# The most numbers that the widest layer, the feed-forward's hidden one, may have in a batch: 64 MB.
BATCH_NUMBERS = 2**24


def variants(
    lm: Reader,
    stream: torch.Tensor,
    block: int,
    choices: Sequence[Sequence[Edit]],
    row: int | None = None,
    past: Before | None = None,
    most: int = sys.maxsize,
    seen: dict[Key, torch.Tensor] | None = None,
) -> Iterator[torch.Tensor]:
    """Yield the input of the output head with each list of edits: (B, T, D), or (B, D) for one `row`.

    Args:
        stream: the input of `block`, (T, D), with the model's own edits of earlier blocks made.
        choices: the lists of edits. They must be of this block or later ones. The model's own edits are made
            before them. Between queries and keys one text cannot become a batch: with an edit of what
            attention mixes (`q`, `k`, `v`, `attn`) it is one from the beginning.
        row: the index of the only row that is needed; None for all.
        past: keys and values of tokens that stand before those of `stream`.
        most: the largest batch; it is smaller if `BATCH_NUMBERS` requires it.
        seen: a dict whose keys are sites of queries, keys or values; each batch puts its own there, as the
            model has them, (B, T, D).

    The numbers are those of `lm.trace(ids, edits=edits)`, within 1e-5 in float32.
    """
    start = stream[None].to(lm.model.out_head.weight)  # (1, T, D)
    first = 0 if past is None else len(past)
    own_hooks = lm.hooks(first + len(stream), first, entered=block)
    sites = sites_of(lm.config)
    widest = len(stream) * lm.config.hidden_dim
    size = max(1, min(most, BATCH_NUMBERS // widest))
    for i in range(0, len(choices), size):
        batch = choices[i : i + size]
        into = start
        if any(sites[edit.site].before_context for edits in batch for edit in edits):
            into = start.repeat(len(batch), 1, 1)  # (1, T, D) -> (B, T, D)
        hooks = [*own_hooks, *_hooks(lm, batch, first), *_watching(lm, seen, len(batch))]
        finals = hidden_from(lm.model, block, into, hooks, row, past)
        # still one text if no list of the batch has an edit
        yield finals.expand(len(batch), *finals.shape[1:])  # (B, T, D) or (B, D)


def _hooks(lm: Reader, choices: Sequence[Sequence[Edit]], first: int) -> list[Hook]:
    """Hooks that turn one text into a batch with a row per list, and make each list's edits in its row."""
    table = sites_of(lm.config)
    places: dict[Key, list[tuple[int, Edit]]] = {}
    for number, edits in enumerate(choices):
        for edit in ready(lm, edits):
            if table[edit.site].shortcut is not None:
                raise ValueError(
                    f"{edit.site} is replaced in a whole pass only: use lm.trace(ids, edits=...)"
                )
            places.setdefault(edit.key, []).append((number, edit))

    def visit(key: Key, value: torch.Tensor) -> torch.Tensor:
        # (1 or B, T, D) -> (B, T, D), and the same where there are heads
        value = value.expand(len(choices), *value.shape[1:]).clone()
        site = table[key[0]]
        for number, edit in places[key]:
            text = value[number]
            text.copy_(site.restore(edit.apply(site.present(text[None], lm.config), first), text))
        return value

    sites = [(key, table[key[0]]) for key in places]
    return [
        Hook(site.edited_module.format(b=key[1]), site.side, partial(visit, key))
        for key, site in sites
    ]


def _watching(lm: Reader, seen: dict[Key, torch.Tensor] | None, count: int) -> list[Hook]:
    """Hooks that put what stands at the keys of `seen` into it, a row per list of edits."""

    def keep(key: Key, value: torch.Tensor) -> None:
        seen_now[key] = value.expand(count, *value.shape[1:])  # (1 or B, T, D) -> (B, T, D)

    seen_now = seen if seen is not None else {}
    sites = [(key, sites_of(lm.config)[key[0]]) for key in seen_now]
    return [
        Hook(site.module.format(b=key[1]), site.side, partial(keep, key), True)
        for key, site in sites
    ]
