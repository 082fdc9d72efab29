"""The passes behind a circuit: a text read by a model of which only some heads speak, many choices at once.

Whoever does not speak gives its mean (or zero): the same numbers as `lm.trace(text, edits=edits_of(...))`.
Choices that part ways in one block share all before it, and go through the rest as one batch
(`gptviz.engine.variants`).

Shapes: B choices of one batch, T tokens, L blocks, H heads, D emb_dim, V vocabulary.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.ablation import Target, check
from gptviz.analysis.against import difference
from gptviz.engine.edits import Edit
from gptviz.engine.forward import logits_of
from gptviz.engine.given import Text
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, unheard
from gptviz.engine.reader import ready
from gptviz.engine.variants import variants

Head = tuple[int, int]  # (block, head)
Heads = Collection[Head]
Values = NDArray[np.float64]


def all_heads(lm: LanguageModel) -> list[Head]:
    """Every (block, head), in the order of the pass."""
    return [(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)]


def edits_of(
    lm: LanguageModel, heads: Heads, baseline: str = "mean", feed_forwards: bool = True
) -> list[Edit]:
    """The circuit as edits of one pass: every head but these replaced, and the feed-forwards if not kept."""
    edits = []
    for b in range(lm.config.n_layers):
        others = [h for h in range(lm.config.n_heads) if (b, h) not in heads]
        if others:
            edits.append(Edit("z", b, baseline, None if len(others) == lm.config.n_heads else others))
        if not feed_forwards:
            edits.append(Edit("mlp_out", b, baseline))
    return edits


class Passes:
    """What one text's circuits are measured with.

    `target` is a token, by id or text, or a pair as in `knock_out`. F, the measure, is the target's
    probability at `position`, or of a pair the first one's logit minus the second one's, as Wang et al. have
    it. `whole` is F(M), of the model with all its parts. Raises ValueError as `knock_out` does.
    """

    def __init__(
        self,
        lm: LanguageModel,
        text: Text,
        target: Target,
        baseline: str = "mean",
        feed_forwards: bool = True,
        position: int = -1,
    ):
        self.lm = lm
        self.baseline = baseline
        self.feed_forwards = feed_forwards
        self.target = check(lm, target, baseline)
        self._is_pair = isinstance(target, tuple)
        self._ready: dict[Edit, Edit] = {}  # with the numbers that it puts in: most choices share most edits
        trace = lm.trace(text, keep=["resid_pre"])
        self.at = trace.place_of(position)
        ids = [token.id for token in trace.tokens]
        # a mean over the text, and an edit, may look at what stands after the position
        if baseline == "mean" or lm.edits:
            self.ids = ids
        else:
            self.ids = ids[: self.at + 1]
        self._into = trace["resid_pre"][:, : len(self.ids)]  # (L, T, D): into each block if everybody speaks
        self.whole = float(self._measure(trace.logits(self.at)[None])[0])

    def of(self, circuits: Sequence[Heads], progress: Progress = unheard) -> Values:
        """F of each of these choices of heads, (n,)."""
        found = np.zeros(0)
        for values in self._batches(circuits, 0, self._into[0]):
            found = np.append(found, values)
            progress(len(found), len(circuits))
        return found

    def with_each(self, circuit: Heads, changed: Sequence[Head]) -> Iterator[tuple[list[Head], Values]]:
        """F of the circuit with each of these heads the other way: one more, or one less.

        Block by block: (the heads of the block, F of each). Each begins where the change does.
        """
        own = frozenset(circuit)
        streams = self._streams(own)
        for b in range(self.lm.config.n_layers):
            here = [head for head in changed if head[0] == b]
            done = 0
            for found in self._batches([own ^ {head} for head in here], b, streams[b]):
                yield here[done : done + len(found)], found
                done += len(found)

    def _streams(self, circuit: Heads) -> torch.Tensor:
        """The streams that enter the blocks when only these heads speak: (L, T, D)."""
        if self.feed_forwards and len(circuit) == len(all_heads(self.lm)):
            return self._into
        return self.lm.trace(self.ids, keep=["resid_pre"], edits=self._edits(circuit))["resid_pre"]

    def _edits(self, circuit: Heads) -> list[Edit]:
        edits = edits_of(self.lm, circuit, self.baseline, self.feed_forwards)
        new = [edit for edit in edits if edit not in self._ready]
        self._ready |= zip(new, ready(self.lm, new), strict=True)
        return [self._ready[edit] for edit in edits]

    def _batches(self, circuits: Sequence[Heads], block: int, stream: torch.Tensor) -> Iterator[Values]:
        for finals in variants(self.lm, stream, block, list(map(self._edits, circuits)), self.at):
            yield self._measure(logits_of(self.lm.model, finals))  # (B, D) -> (B, V)

    def _measure(self, logits: torch.Tensor) -> Values:
        """(B, V) -> (B,)"""
        if self._is_pair:
            return difference(logits, *self.target).numpy()
        return logits.double().softmax(dim=-1)[:, self.target[0]].numpy()
