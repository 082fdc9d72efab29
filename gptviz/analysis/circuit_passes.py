"""The forward passes that measure circuits: how well a model does a task with only some of its heads.

A circuit is a set of heads. In its pass, the output of every head outside the set is replaced by its mean (or
by zero): the same numbers as `lm.trace(text, edits=edits_of(...))`. Many circuits are measured at once:
those that only differ from some block on share the input of that block, and run from there on as one batch
(`gptviz.engine.variants`).

A head of a circuit is kept at every position. Given as a mapping, a circuit keeps each head at some positions alone:
at roles of two names, as Wang et al. have it, {(5, 4): ["END"], (3, 0): ["S2"]}, or at positions by their numbers.
Everywhere else such a head gives what the others give. Taken out of the whole model, it loses its value at these
positions alone.

Shapes: B circuits of one batch, T tokens, L blocks, H heads, D emb_dim, V vocabulary.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.ablation import Target, check, muted_value
from gptviz.analysis.against import MEASURES, measured
from gptviz.analysis.role_patches import ROLES, roles_of
from gptviz.engine.edits import Edit, Replacement
from gptviz.engine.forward import logits_of
from gptviz.engine.given import Text
from gptviz.engine.index import index_of, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reader import ready
from gptviz.engine.variants import variants

Head = tuple[int, int]  # (block, head)
Heads = Collection[Head]  # at every position; a mapping says at which ones: a role's, or a number
Values = NDArray[np.float64]


def all_heads(lm: LanguageModel) -> list[Head]:
    """Every (block, head), in the order of the pass."""
    return [(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)]


def edits_of(
    lm: LanguageModel,
    heads: Heads,
    baseline: Replacement = "mean",
    feed_forwards: bool = True,
    length: int | None = None,
) -> list[Edit]:
    """The edits that leave only the circuit `heads`: all other heads are replaced as `baseline` says, or by it.

    Of a mapping from heads to positions, by their numbers, each head is kept at its own of the `length` positions.
    Without `feed_forwards`, the outputs of all feed-forwards are replaced, too. Raises ValueError for a mapping
    without a length.
    """
    kept_at: Mapping[Head, Collection[int]] = {}
    if isinstance(heads, Mapping):
        kept_at = heads
        if length is None:
            raise ValueError(
                "heads are kept at some positions: give length, the number of the text's tokens"
            )
    edits = []
    for b in range(lm.config.n_layers):
        muted_heads = [h for h in range(lm.config.n_heads) if (b, h) not in heads]
        if muted_heads:
            edits.append(
                Edit(
                    "z", b, baseline, None if len(muted_heads) == lm.config.n_heads else muted_heads
                )
            )
        for head in [head for head in kept_at if head[0] == b]:
            muted = [p for p in range(length or 0) if p not in kept_at[head]]
            if muted:
                edits.append(Edit("z", b, baseline, [head[1]], muted))
        if not feed_forwards:
            edits.append(Edit("mlp_out", b, baseline))
    return edits


def at_positions(
    lm: LanguageModel,
    ids: Sequence[int],
    target: tuple[int, int | None],
    heads: Heads,
    position: int = -1,
) -> Heads:
    """The circuit with the positions in this text of its roles: {(5, 4): (13,)} for {(5, 4): ["END"]}.

    END is `position`. `target` is the name that is the answer, and the other one, by id. A circuit that is no mapping
    is returned as it is. Raises ValueError for an unknown role or position, and for a role in a text without two names.
    """
    if not isinstance(heads, Mapping):
        return heads
    up_to_end = ids[: index_of("position", position, len(ids)) + 1]
    roles: Mapping[str, int] = {}
    found: dict[Head, tuple[int, ...]] = {}
    for head, given in heads.items():
        places = [given] if isinstance(given, str) else [*given]
        named = [one_of("role", place, ROLES) for place in places if isinstance(place, str)]
        if named and not roles:
            roles = role_positions(lm, up_to_end, target)
        numbers = [
            index_of("position", place, len(ids)) for place in places if not isinstance(place, str)
        ]
        found[head] = tuple(sorted({*numbers, *(roles[role] for role in named)}))
    return found


def role_positions(
    lm: LanguageModel, ids: Sequence[int], target: tuple[int, int | None]
) -> dict[str, int]:
    """The position of each of `ROLES`, up to the last of these ids; `target` are the ids of both names.

    Raises ValueError for a text without two names, as `roles_of` does.
    """
    keeps = f"a head can be kept at {', '.join(ROLES)} where a text has two names"
    answer, instead = target
    if instead is None:
        raise ValueError(f"{keeps}: ask for one of them instead of the other")
    try:
        return roles_of(lm, ids, (answer, instead))
    except ValueError as error:
        raise ValueError(f"{keeps}: {error}") from None


def only(circuit: Heads, heads: Iterable[Head]) -> Heads:
    """The circuit of these of its heads, each where it is kept."""
    if isinstance(circuit, Mapping):
        return {head: circuit[head] for head in heads}
    return frozenset(heads)


def rest_of(lm: LanguageModel, circuit: Heads, length: int) -> Heads:
    """The whole model without a circuit, whose positions are numbers, in a text of `length` tokens.

    Of a mapping each head is left at all positions but those at which the circuit keeps it.
    """
    everyone = all_heads(lm)
    if isinstance(circuit, Mapping):
        return {
            head: [p for p in range(length) if p not in circuit.get(head, ())] for head in everyone
        }
    return frozenset(everyone) - frozenset(circuit)


class Passes:
    """Measures circuits on one text.

    `target` is a token, by id or text, or a pair of tokens as in `knock_out`. F is what is measured after
    `position`, one of `MEASURES`: the difference of the pair's two logits (of a token's logit and the mean of
    all), the probability of the target, or its loss in nats. Without a `measure` it is the probability of a
    token, and of a pair the difference, as in Wang et al. (Interpretability in the Wild, 2022). `whole` is F
    of the unchanged model. Raises ValueError as `knock_out` does, and for an unknown measure; where it measures a
    circuit that keeps heads at roles, as `at_positions` does.
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

    def placed(self, circuit: Heads) -> Heads:
        """The circuit with positions in the place of roles; END is that after which F is measured."""
        return at_positions(self.lm, self.ids, self.target, circuit, self.at)

    def rest_of(self, circuit: Heads) -> Heads:
        """The whole model without this circuit; of heads that are kept at some positions, without these."""
        return rest_of(self.lm, self.placed(circuit), len(self.ids))

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

        Yields batches of heads of one block with F for each; the passes begin at that block. A head that is added is
        kept at every position.
        """
        speaking = self.placed(circuit)
        if not isinstance(speaking, Mapping):
            speaking = frozenset(speaking)
        streams = self._streams(speaking)
        for b in range(self.lm.config.n_layers):
            block_heads = [head for head in changed if head[0] == b]
            done = 0
            for values in self._batches(
                [self._toggled(speaking, head) for head in block_heads], b, streams[b]
            ):
                yield block_heads[done : done + len(values)], values  # B heads, (B,)
                done += len(values)

    def is_everything(self, circuit: Heads) -> bool:
        """Whether the circuit keeps every head at every position: a mapping never counts as that."""
        return not isinstance(circuit, Mapping) and not {*all_heads(self.lm)} - {*circuit}

    def _toggled(self, circuit: Heads, head: Head) -> Heads:
        """The circuit without this head, or with it if it is not in it."""
        heads = frozenset(circuit) ^ {head}
        if isinstance(circuit, Mapping) and head in heads:
            return {**circuit, head: range(len(self.ids))}
        return only(circuit, heads)

    def _streams(self, circuit: Heads) -> torch.Tensor:
        """The input of each block when only the heads of the circuit are left: (L, T, D)."""
        if self.feed_forwards and self.is_everything(circuit):
            return self._into
        return self.lm.trace(self.ids, keep=["resid_pre"], edits=self._edits(circuit))["resid_pre"]

    def _edits(self, circuit: Heads) -> list[Edit]:
        """The edits that leave only the circuit, with numbers as their values."""
        placed = self.placed(circuit)
        edits = edits_of(self.lm, placed, self._value, self.feed_forwards, len(self.ids))
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
