"""How long each token of a written text takes to write again, with the cache or without it: measured here."""

import time
from collections.abc import Iterator, Sequence

import torch

from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Past


def written_again(
    lm: LanguageModel, prompt: Sequence[int], new: Sequence[int], cached: bool, first: int = 0
) -> Iterator[tuple[float, torch.Tensor]]:
    """Yield for each step from `first` on: milliseconds of the pass, and the logits (V,) that give its token.

    The text is the one that was written, whatever these logits say. Timed is the pass alone, after the wait
    for others' passes; a first pass that is not timed makes the kernels ready. Where the context is full it
    slides, or an edit of the model depends on the whole text, no cache is of use: both ways are then alike.
    """
    ids, context = [*prompt, *new], lm.config.context_length
    past: Past | None = None
    for step in range(first, len(new)):
        known = ids[: len(prompt) + step]
        if not cached or not lm.is_causal or len(known) > context:
            past, read = None, known[-context:]
        elif past is None:
            past, read = Past(lm.model, room=min(len(ids), context)), known
            if step:  # what the steps before this one would have left
                lm.next_logits(known[:-1], past)
                read = known[-1:]
        else:
            read = known[-1:]
        if step == first:
            lm.next_logits(read, None if past is None else past.cut(len(past)))
        with forward.running(lm.model):
            began = time.perf_counter()
            logits = lm.next_logits(read, past)
            took = time.perf_counter() - began
        yield 1000 * took, logits
