"""Path patching: what one head passes to another, or to the logits, and to nobody else.

Patching a head's output (`activation_patching`) moves everything that reads it later. Path patching asks of one
path: how far does the prediction move if only the *receiver* reads the head as it is in the other text? Three
passes answer that for each *sender*, as Wang et al. do it:

1. both texts, as they are;
2. the own text, with the sender's output from the other text, and every other head's output from pass 1.
   Feed-forward layers and LayerNorms are worked out anew: what they pass on belongs to the path;
3. the own text, with the receivers' queries, keys or values as pass 2 has them. All else is worked out anew.

Where the receiver is the logits, pass 2 is already the answer.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022,
section 3.1; Goldowsky-Dill et al., Localizing Model Behavior with Path Patching, 2023.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import torch

from gptviz.analysis import against
from gptviz.analysis.activation_patching import (
    DIRECTIONS,
    Ends,
    Target,
    averaged_patches,
    passes_of,
    with_effects,
)
from gptviz.analysis.prompts import Texts, is_many, of_one_text, over
from gptviz.engine.config import GPTConfig
from gptviz.engine.edits import Edit
from gptviz.engine.given import Text
from gptviz.engine.index import check_below, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

LOGITS = "logits"
READS = ("q", "k", "v")  # what of a head reads the stream

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
) -> pd.DataFrame:
    """Patch the path from every head to the receivers in turn, and measure the difference of two logits.

    `receivers` are "logits", or heads' reads: [("q", 5, 0), ("k", 5, 0)] are the queries and the keys of head 0
    of block 5, patched together. Texts, `target`, `direction` and `position` are as `patching` takes them; of
    two lists of texts the numbers are means with their standard errors, as there.

    A row a sender: block and head of every head that stands before a receiver. Columns: logit (the difference
    in the patched pass), metric ((patched - corrupt) / (clean - corrupt)), effect (metric less that of the pass
    without a patch), and change (logit less that of the pass without a patch).

    Two passes a sender, one for the logits. A model with edits of its own has them in every pass. Raises
    ValueError as `patching` does, and for receivers that do not exist or that no head stands before.
    """
    one_of("direction", direction, DIRECTIONS)
    read = receivers_of(lm.config, receivers)
    options: dict[str, Any] = {"read": read, "direction": direction, "position": position}
    if is_many(clean):
        if not is_many(corrupt) or len(clean) != len(corrupt):
            raise ValueError(
                "clean is a list of texts: give corrupt as one, with a text for each of them"
            )
        pairs = list(zip(clean, corrupt, strict=True))
        return averaged_patches(over(_of_pair, lm, pairs, target, progress, **options))
    return _of_pair(lm, (clean, corrupt), of_one_text(target), progress, **options)[0]


def receivers_of(config: GPTConfig, receivers: str | Sequence[Receiver]) -> tuple[Receiver, ...]:
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
        checked.append(
            (
                site,
                check_below("receivers' block", block, config.n_layers),
                check_below("receivers' head", head, config.n_heads),
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
) -> tuple[pd.DataFrame, Ends]:
    """`path_patching` of one pair of texts, and the scale that it is measured by."""
    keep = ["final", "z", *READS]
    passes = passes_of(lm, clean_and_corrupt, target, position, direction, keep)
    ends = passes.ends
    towards = against.direction(lm.model, ends.token, ends.against)  # (D,)
    senders = _senders(lm.config, read)
    logits = []
    for number, sender in enumerate(senders):
        final = _final(
            lm, passes.base, passes.source, sender, read
        )  # (T, D), or None where nothing changes
        if final is None:
            logits.append(passes.before)
        else:
            logits.append(float(final[passes.index].double().cpu() @ towards))
        progress(number + 1, len(senders))
    table = pd.DataFrame(senders, columns=["block", "head"]).assign(logit=logits)
    return with_effects(table, passes), ends


def _senders(config: GPTConfig, read: tuple[Receiver, ...]) -> list[tuple[int, int]]:
    """(block, head) of every head before the last receiver; before the logits that are all."""
    last = max((block for _, block, _ in read), default=config.n_layers)
    return [(block, head) for block in range(last) for head in range(config.n_heads)]


def _final(
    lm: LanguageModel,
    own: Trace,
    source: Trace,
    sender: tuple[int, int],
    read: tuple[Receiver, ...],
) -> torch.Tensor | None:
    """What the output head gets when the receivers alone read the sender's other output: (T, D)."""
    block, head = sender
    if torch.equal(own["z", block][head], source["z", block][head]):
        return None
    ids = [token.id for token in own.tokens]
    frozen = _frozen(own, source, sender, lm.config.n_layers)
    if not read:
        return lm.trace(ids, keep=["final"], edits=frozen)["final"]
    path = lm.trace(ids, keep=READS, edits=frozen)
    edits = [
        Edit(site, at, path[site, at], heads)
        for (site, at), heads in _by_place(read).items()
        if not torch.equal(path[site, at][heads], own[site, at][heads])
    ]
    if not edits:
        return None
    return lm.trace(ids, keep=["final"], edits=edits)["final"]


def _frozen(own: Trace, source: Trace, sender: tuple[int, int], n_layers: int) -> list[Edit]:
    """The edits of pass 2: the sender's output from the other text, all other heads' from this one."""
    block, head = sender
    edits = []
    for b in range(block, n_layers):
        outputs = own["z", b].clone()  # (H, T, d)
        if b == block:
            outputs[head] = source["z", b][head]
        edits.append(Edit("z", b, outputs))
    return edits


def _by_place(read: Iterable[Receiver]) -> dict[tuple[str, int], list[int]]:
    """The heads of each read and block."""
    places: dict[tuple[str, int], list[int]] = {}
    for site, block, head in read:
        places.setdefault((site, block), []).append(head)
    return places
