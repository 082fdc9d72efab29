"""Path patching: what one head passes to another, or to the logits, and to nobody else.

Patching a head's output (`activation_patching`) moves everything that reads it later. Path patching asks of one
path: how far does the prediction move if only the *receiver* reads the head as it is in the other text? Three
passes answer that for each *sender*, as Wang et al. do it:

1. both texts, as they are;
2. the own text, with the sender's output from the other text, and every other head's output from pass 1.
   Feed-forward layers and LayerNorms are worked out anew: what they pass on belongs to the path;
3. the own text, with the receivers' queries, keys or values as pass 2 has them. All else is worked out anew.

Where the receiver is the logits, pass 2 is already the answer. The senders of a block go through passes 2 and
3 together, as batches (`gptviz.engine.variants`).

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022,
section 3.1; Goldowsky-Dill et al., Localizing Model Behavior with Path Patching, 2023.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pandas as pd
import torch

from gptviz.analysis import against
from gptviz.analysis.activation_patching import (
    DIRECTIONS,
    BothPasses,
    Target,
    averaged_patches,
    passes_of,
    with_effects,
)
from gptviz.analysis.circuit_passes import Head
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, is_many, of_one_text, over
from gptviz.engine.edits import Edit
from gptviz.engine.given import Text
from gptviz.engine.index import check_below, index_of, one_of
from gptviz.engine.kinds import Config
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sites import Key, sites_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.variants import variants

LOGITS = "logits"
READS = ("q", "k", "v")  # what of a head reads the stream
KEPT = ("resid_pre", "final", "z", *READS)  # what is kept of both texts' passes

Receiver = tuple[str, int, int]  # "q", "k" or "v"; block; head


@undisturbed
def path_patching(
    lm: LanguageModel,
    clean: Texts,
    corrupt: Texts,
    target: Target | list[Target] | None = None,
    receivers: str | Sequence[Receiver] = LOGITS,
    direction: str = "denoising",
    position: int = -1,
    progress: Progress = ignore_progress,
    sent_at: int | None = None,
) -> pd.DataFrame:
    """Patch the path from every head to the receivers in turn, and measure the difference of two logits.

    `receivers` are "logits", or heads' reads: [("q", 5, 0), ("k", 5, 0)] are the queries and the keys of head 0
    of block 5, patched together. Texts, `target`, `direction` and `position` are as `patching` takes them; of
    two lists of texts the numbers are means with their standard errors, as there. With `sent_at`, a position,
    the sender's output is exchanged only there, not at every position.

    A row a sender: block and head of every head that stands before a receiver. Columns: logit (the difference
    in the patched pass), metric ((patched - corrupt) / (clean - corrupt)), effect (metric less that of the pass
    without a patch), and change (logit less that of the pass without a patch).

    Two passes a sender, one for the logits, and all senders of a block in one batch. A model with edits of its
    own has them in every pass, one sender after the other. Raises ValueError as `patching` does, and for
    receivers that do not exist or that no head stands before.
    """
    one_of("direction", direction, DIRECTIONS)
    read = receivers_of(lm.config, receivers)
    options: dict[str, Any] = {"read": read, "direction": direction, "position": position}
    options["sent_at"] = sent_at
    if is_many(clean):
        if not is_many(corrupt) or len(clean) != len(corrupt):
            raise ValueError(
                "clean is a list of texts: give corrupt as one, with a text for each of them"
            )
        pairs = list(zip(clean, corrupt, strict=True))
        tables, distances = zip(
            *over(_of_pair, lm, pairs, target, progress, **options), strict=True
        )
        return averaged_patches(tables, distances, groups=groups_of(lm, clean, target))
    return _of_pair(lm, (clean, corrupt), of_one_text(target), progress, **options)[0]


@undisturbed
def path_positions(
    lm: LanguageModel,
    clean: Text,
    corrupt: Text,
    senders: Sequence[Head],
    positions: Sequence[int],
    target: Target | None = None,
    receivers: str | Sequence[Receiver] = LOGITS,
    direction: str = "denoising",
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Where in the text some heads write what their paths pass on: `path_patching` at one position at a time.

    A row for each of the `senders`, (block, head), and each of the `positions`: the columns of `path_patching`
    and position. The numbers are those of its `sent_at`, and need not add up to those of all positions, since
    the model is not linear. The logits read the position that is looked at, and of a model without edits no
    other one moves them. `progress(done, of)` counts positions. Raises ValueError as `path_patching` does, and
    for a sender that no receiver stands behind.
    """
    one_of("direction", direction, DIRECTIONS)
    read = receivers_of(lm.config, receivers)
    possible = _senders(lm.config, read)
    wanted = {(block, head) for block, head in senders}
    for block, head in sorted(wanted):
        if (block, head) not in possible:
            raise ValueError(
                f"senders has head {head} of block {block}, which stands before no receiver; give heads of "
                f"blocks 0 to {possible[-1][0]}, with heads 0 to {possible[-1][1]}"
            )
    passes = passes_of(lm, (clean, corrupt), target, position, direction, KEPT)
    tables = []
    for done, place in enumerate(positions, 1):
        table = _logits(lm, passes, read, place, ignore_progress, wanted)
        tables.append(table.assign(position=place))
        progress(done, len(positions))
    if not tables:
        raise ValueError("positions is empty; give at least one position of the text")
    return with_effects(pd.concat(tables, ignore_index=True), passes)


def receivers_of(config: Config, receivers: str | Sequence[Receiver]) -> tuple[Receiver, ...]:
    """The receivers, each once; none stands for the logits. Raises ValueError as `path_patching` says."""
    if isinstance(receivers, str):
        one_of("receivers", receivers, [LOGITS])
        return ()
    checked = []
    for receiver in receivers:
        if len(receiver) != 3:
            raise ValueError(
                f'receivers has {receiver!r}; give "logits", or reads such as ("q", 5, 0)'
            )
        site, block, head = receiver
        one_of("receivers' read", site, READS)
        row = sites_of(config)[site]
        checked.append(
            (
                site,
                check_below("receivers' block", block, config.n_layers),
                check_below(f"receivers' {row.part}", head, row.count(config)),
            )
        )
    if not checked:
        raise ValueError('receivers is empty; give "logits", or reads such as ("q", 5, 0)')
    if max(block for _, block, _ in checked) == 0:
        raise ValueError("all receivers are in block 0, which no head stands before")
    return tuple(dict.fromkeys(checked))


def _of_pair(
    lm: LanguageModel,
    clean_and_corrupt: tuple[Text, Text],
    target: Target | None,
    progress: Progress,
    *,
    read: tuple[Receiver, ...],
    direction: str,
    position: int,
    sent_at: int | None,
) -> tuple[pd.DataFrame, float]:
    """`path_patching` of one pair of texts, and how far apart their differences are."""
    passes = passes_of(lm, clean_and_corrupt, target, position, direction, KEPT)
    table = with_effects(_logits(lm, passes, read, sent_at, progress), passes)
    return table, passes.ends.distance


@undisturbed
def changes(
    lm: LanguageModel,
    text: Text,
    other: Text,
    target: Target,
    receivers: str | Sequence[Receiver] = LOGITS,
    sent_at: int | None = None,
) -> pd.DataFrame:
    """The columns block, head and change of `path_patching` with `direction="noising"`.

    Without a scale to measure them by: the two texts may have the same difference.
    """
    read = receivers_of(lm.config, receivers)
    passes = passes_of(lm, (text, other), target, -1, "noising", KEPT, scale=False)
    table = _logits(lm, passes, read, sent_at, ignore_progress)
    return table[["block", "head"]].assign(change=table["logit"] - passes.before)


def _logits(
    lm: LanguageModel,
    passes: BothPasses,
    read: tuple[Receiver, ...],
    sent_at: int | None,
    progress: Progress,
    only: Collection[Head] | None = None,
) -> pd.DataFrame:
    """A row a sender: block, head, and logit, the difference in the pass with its path patched.

    With `only` these senders, in the order of the blocks.
    """
    base = passes.base
    ends = passes.ends
    towards = against.direction(lm.model, ends.token, ends.against)  # (D,)
    senders = [one for one in _senders(lm.config, read) if only is None or one in only]
    if sent_at is None:
        places = slice(None)
    else:
        place = index_of("sent_at", sent_at, len(base))
        places = slice(place, place + 1)
    sent = {}
    for block in range(lm.config.n_layers):
        outputs = base["z", block].clone()  # (H, T, d)
        outputs[:, places] = passes.source["z", block][:, places]
        sent[block] = outputs
    moved = [(b, h) for b, h in senders if not torch.equal(sent[b][h], base["z", b][h])]
    if lm.edits:
        finals = _one_by_one(lm, base, sent, moved, read, passes.index)
    else:
        finals = _batches(lm, base, sent, moved, read, passes.index)
    logits = dict.fromkeys(senders, passes.before)
    done = len(senders) - len(moved)
    for some, rows in finals:
        differences = rows.double().cpu() @ towards  # (B, D) x (D,)
        logits |= zip(some, differences.tolist(), strict=True)
        done += len(some)
        progress(done, len(senders))
    if not moved:
        progress(len(senders), len(senders))
    return pd.DataFrame(senders, columns=["block", "head"]).assign(
        logit=[logits[sender] for sender in senders]
    )


def _senders(config: Config, read: tuple[Receiver, ...]) -> list[Head]:
    """(block, head) of every head before the last receiver; before the logits that are all."""
    last = max((block for _, block, _ in read), default=config.n_layers)
    return [(block, head) for block in range(last) for head in range(config.n_heads)]


# senders, and (B, D) what the output head gets when the receivers alone read what they send
Batch = tuple[list[Head], torch.Tensor]
Outputs = dict[int, torch.Tensor]  # block -> (H, T, d)
Places = dict[tuple[str, int], list[int]]  # a read and a block -> its heads


def _batches(
    lm: LanguageModel,
    own: Trace,
    sent: Outputs,
    senders: Iterable[Head],
    read: tuple[Receiver, ...],
    at: int,
) -> Iterator[Batch]:
    """The senders of a block together, as many as fit into a batch."""
    places = _by_place(read)
    first = min((block for _, block in places), default=0)
    for block, group in groupby(senders, key=lambda sender: sender[0]):
        of_block = list(group)
        frozen = [_frozen(own, sent, sender, lm.config.n_layers) for sender in of_block]
        seen: dict[Key, torch.Tensor] = {
            place: torch.zeros(0) for place in places if place[1] > block
        }
        row = None if read else at
        done = 0
        for finals in variants(lm, own["resid_pre", block], block, frozen, row, seen=seen):
            some = of_block[done : done + len(finals)]
            done += len(some)
            if not read:
                yield some, finals
                continue
            edits = [_as_read(lm, seen, places, number) for number in range(len(some))]
            rows = variants(lm, own["resid_pre", first], first, edits, at, most=len(some))
            yield some, torch.cat(list(rows))


def _as_read(
    lm: LanguageModel, seen: dict[Key, torch.Tensor], places: Places, number: int
) -> list[Edit]:
    """The edits of pass 3 for one sender: the receivers' reads as they stood in its row of pass 2."""
    edits = []
    for (site, block), heads in places.items():
        if (site, block) in seen:
            value = seen[site, block][number][None].float().cpu()  # (1, T, D)
            shown = sites_of(lm.config)[site].present(value, lm.config)  # (H, T, d)
            edits.append(Edit(site, block, shown.contiguous(), heads))
    return edits


def _one_by_one(
    lm: LanguageModel,
    own: Trace,
    sent: Outputs,
    senders: Iterable[Head],
    read: tuple[Receiver, ...],
    at: int,
) -> Iterator[Batch]:
    """Each sender by itself, as edits on top of the model's own, which may look at the whole text."""
    ids = [token.id for token in own.tokens]
    for sender in senders:
        edits = _frozen(own, sent, sender, lm.config.n_layers)
        if read:
            path = lm.trace(ids, keep=READS, edits=edits)
            edits = [
                Edit(site, block, path[site, block], heads)
                for (site, block), heads in _by_place(read).items()
            ]
        yield [sender], lm.trace(ids, keep=["final"], edits=edits)["final"][at][None]


def _frozen(own: Trace, sent: Outputs, sender: Head, n_layers: int) -> list[Edit]:
    """The edits of pass 2: the sender's output as it is sent, all other heads' from this text."""
    block, head = sender
    edits = []
    for b in range(block, n_layers):
        outputs = own["z", b].clone()  # (H, T, d)
        if b == block:
            outputs[head] = sent[b][head]
        edits.append(Edit("z", b, outputs))
    return edits


def _by_place(read: Iterable[Receiver]) -> Places:
    """The heads of each read and block."""
    places: Places = {}
    for site, block, head in read:
        places.setdefault((site, block), []).append(head)
    return places
