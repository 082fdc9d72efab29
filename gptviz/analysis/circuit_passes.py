"""The forward passes that measure circuits: how well a model does a task with only some of its heads.

A circuit is a set of heads. In its pass, the output of every head outside the set is replaced by its mean (or
by zero): the same numbers as `lm.trace(text, edits=edits_of(...))`. Many circuits are measured at once:
those that only differ from some block on share the input of that block, and run from there on as one batch
(`gptviz.engine.variants`).

Shapes: B circuits of one batch, T tokens, L blocks, H heads, D emb_dim, V vocabulary.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.ablation import Target, check, muted_value
from gptviz.analysis.against import MEASURES, measured
from gptviz.engine.edits import Edit, Replacement
from gptviz.engine.forward import logits_of
from gptviz.engine.given import Text
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reader import ready
from gptviz.engine.variants import variants

Head = tuple[int, int]  # (block, head)
Heads = Collection[Head]
Values = NDArray[np.float64]


def all_heads(lm: LanguageModel) -> list[Head]:
    """Every (block, head), in the order of the pass."""
    return [(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)]


def edits_of(
    lm: LanguageModel, heads: Heads, baseline: Replacement = "mean", feed_forwards: bool = True
) -> list[Edit]:
    """The edits that leave only the circuit `heads`: all other heads are replaced as `baseline` says, or by it.

    Without `feed_forwards`, the outputs of all feed-forwards are replaced, too.
    """
    edits = []
    for b in range(lm.config.n_layers):
        muted_heads = [h for h in range(lm.config.n_heads) if (b, h) not in heads]
        if muted_heads:
            edits.append(
                Edit(
                    "z", b, baseline, None if len(muted_heads) == lm.config.n_heads else muted_heads
                )
            )
        if not feed_forwards:
            edits.append(Edit("mlp_out", b, baseline))
    return edits


class Passes:
    """Measures circuits on one text.

    `target` is a token, by id or text, or a pair of tokens as in `knock_out`. F is what is measured after
    `position`, one of `MEASURES`: the difference of the pair's two logits (of a token's logit and the mean of
    all), the probability of the target, or its loss in nats. Without a `measure` it is the probability of a
    token, and of a pair the difference, as in Wang et al. (Interpretability in the Wild, 2022). `whole` is F
    of the unchanged model. Raises ValueError as `knock_out` does, and for an unknown measure.
    """

    def __init__(
        self,
        lm: LanguageModel,
        text: Text,
        target: Target,
        baseline: str = "mean",
        feed_forwards: bool = True,
        position: int = -1,
        measure: str | None = None,
    ):
        self.lm = lm
        self.baseline = baseline
        self.feed_forwards = feed_forwards
        self.target = check(lm, target, baseline)
        if measure is None:
            measure = "logit" if isinstance(target, tuple) else "probability"
        self.measure = one_of("measure", measure, MEASURES)
        # an edit -> the same with numbers as its value (`reader.ready`): most circuits share most edits
        self._ready: dict[Edit, Edit] = {}
        trace = lm.trace(text, keep=["resid_pre"])
        self.at = trace.place_of(position)
        ids = [token.id for token in trace.tokens]
        # a mean over the text, or an edit of the model, may depend on tokens after the position
        if baseline == "mean" or lm.edits:
            self.ids = ids
        else:
            self.ids = ids[: self.at + 1]
        self._value = muted_value(lm, baseline, ids, self.target)
        # (L, T, D): each block's input, with all heads
        self._into = trace["resid_pre"][:, : len(self.ids)]
        self.whole = float(self._measure(trace.logits(self.at)[None])[0])

    def of(self, circuits: Sequence[Heads], progress: Progress = ignore_progress) -> Values:
        """F of each of these n circuits, (n,)."""
        results = np.zeros(0)
        for values in self._batches(circuits, 0, self._into[0]):
            results = np.append(results, values)
            progress(len(results), len(circuits))
        return results

    def with_each(
        self, circuit: Heads, changed: Sequence[Head]
    ) -> Iterator[tuple[list[Head], Values]]:
        """F of the circuit with one of the heads in `changed` added, or removed if it is in it, for each.

        Yields batches of heads of one block with F for each; the passes begin at that block.
        """
        speaking = frozenset(circuit)
        streams = self._streams(speaking)
        for b in range(self.lm.config.n_layers):
            block_heads = [head for head in changed if head[0] == b]
            done = 0
            for values in self._batches([speaking ^ {head} for head in block_heads], b, streams[b]):
                yield block_heads[done : done + len(values)], values  # B heads, (B,)
                done += len(values)

    def _streams(self, circuit: Heads) -> torch.Tensor:
        """The input of each block when only the heads of the circuit are left: (L, T, D)."""
        if self.feed_forwards and len(circuit) == len(all_heads(self.lm)):
            return self._into
        return self.lm.trace(self.ids, keep=["resid_pre"], edits=self._edits(circuit))["resid_pre"]

    def _edits(self, circuit: Heads) -> list[Edit]:
        """The edits that leave only the circuit, with numbers as their values."""
        edits = edits_of(self.lm, circuit, self._value, self.feed_forwards)
        new = [edit for edit in edits if edit not in self._ready]
        self._ready |= zip(new, ready(self.lm, new), strict=True)
        return [self._ready[edit] for edit in edits]

    def _batches(
        self, circuits: Sequence[Heads], block: int, stream: torch.Tensor
    ) -> Iterator[Values]:
        """Yield F of the circuits, (B,) per batch; the passes begin at `block` with its input, (T, D)."""
        for finals in variants(self.lm, stream, block, list(map(self._edits, circuits)), self.at):
            yield self._measure(logits_of(self.lm.model, finals))  # (B, D) -> (B, V)

    def _measure(self, logits: torch.Tensor) -> Values:
        """F for each row of logits: (B, V) -> (B,)."""
        return measured(logits, *self.target)[self.measure].numpy()
