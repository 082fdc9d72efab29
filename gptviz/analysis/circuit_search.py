"""Search for the circuit of a prediction: few heads that keep it as it is when all other heads are muted.

M is the model with all its heads, and C a circuit, that is a set of heads. In the pass of C, the output of
every other head is replaced: by its mean over the positions of this text ("mean"), by its mean over a sample
of texts ("sample"), or by 0 ("zero"). Embeddings, LayerNorms and the biases of attention always stay; the
feed-forwards stay, or are replaced as well. F(C) is the measure of that pass: the probability of a token, its
loss, or the first logit of a pair minus the second one. F(nobody) is that without any head.

The criteria are those of Wang et al., Interpretability in the Wild, 2022, section 4. (Their F is the
difference of logits, averaged over many prompts of one form, and their mean is taken over prompts of the same
forms with three other names, position by position. Here there is one text.)

    faithfulness   |F(M) - F(C)|: how far the circuit is from the model, on either side
    completeness   |F(C \\ K) - F(M \\ K)| for sets K of the circuit's heads: without them, the circuit and
                   the model should change alike. It is large if other heads of the model can replace them
    size           |C|, the number of heads

A circuit keeps the prediction if |F(M) - F(C)| is at most a share of |F(M) - F(nobody)|, by default one
tenth. The third criterion of the paper, minimality, is that each head matters: see `brings`.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gptviz.analysis.ablation import Target
from gptviz.analysis.circuit_passes import Head, Heads, Passes, Values, all_heads, only
from gptviz.engine.given import Text
from gptviz.engine.index import check_below, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed

WAYS = ("remove", "add")  # start with all heads and remove some, or with none and add some
# the share of |F(M) - F(nobody)| by which a circuit that keeps the prediction may differ from M
WITHIN = 0.1
ROUNDING = 1e-6  # the F of two passes of one circuit may differ by this much
# up to this number of heads, completeness is measured with all subsets (64 for 6 heads)
WHOLE_SUBSETS = 6
SOME_SUBSETS = 24  # for larger circuits: the number of random subsets
# In a round of `ranked` several heads go at once: this share of those that are left, which bounds the rounds,
ALWAYS = 1 / 16
# and of all others up to this share those without which F is off by little more than without the first of them,
AT_ONCE = 0.25
# that is by at most this share of what is allowed
ALIKE = 0.1

GRAMMAR = "block.head+block.head, such as 4.3+5.0"


@dataclass(frozen=True)
class Circuit:
    """The result of a search: a circuit, and the steps that led to it.

    Columns of `steps`: size (the number of heads in the circuit), block and head (of the head that was added
    or removed, <NA> in the first row), value (F).
    """

    heads: tuple[Head, ...]  # the circuit, in the order of the pass
    whole: float  # F(M)
    value: float  # F(C)
    empty: float  # F(nobody)
    allowed: float  # by how much F(C) may differ from F(M)
    steps: pd.DataFrame
    stages: list[tuple[Head, ...]]  # the heads in the circuit at each step

    @property
    def kept(self) -> bool:
        """Whether the circuit keeps the prediction."""
        return abs(self.whole - self.value) <= self.allowed

    def __str__(self) -> str:
        return written(self.heads)


@undisturbed
def circuit(
    lm: LanguageModel,
    text: Text,
    target: Target,
    baseline: str = "mean",
    feed_forwards: bool = True,
    way: str = "remove",
    within: float = WITHIN,
    position: int = -1,
    progress: Progress = ignore_progress,
    measure: str | None = None,
) -> Circuit:
    """Search greedily for few heads that keep a prediction: |F(M) - F(C)| <= `within` * |F(M) - F(nobody)|.

    With "remove", the circuit starts with all heads. Each step removes the head without which F is closest to
    F(M), as long as the difference is allowed or smaller than before. With "add", it starts with no head, and
    each step adds the head with which F is closest to F(M), until the difference is allowed. If no circuit
    of the search is close enough (without the feed-forwards, even that of all heads may not be), the closest
    one is returned, and its `kept` is False.

    Each step tries every head that it could take, in batches that begin at the block of the head, so N heads
    take at most N (N + 1) / 2 passes. The result need not be the smallest possible circuit: the gain of heads
    that work only together cannot be seen by trying one, and of heads that can replace each other, each may
    be removed while the others are still in.

    `measure` is what F is: see `Passes`. The F of each step is that of
    `lm.trace(text, edits=edits_of(lm, heads, baseline, feed_forwards))`, within 1e-5 in float32.
    `progress(done, of)` is called after every batch with the number of passes done and the most that there can
    be; an exception that it raises stops the search. Raises ValueError as `knock_out`
    does, for an unknown way, and unless `within` is between 0 and 1.
    """
    return search(
        Passes(lm, text, target, baseline, feed_forwards, position, measure), way, within, progress
    )


def allowed(whole: float, empty: float, within: float = WITHIN) -> float:
    """The largest difference from F(M), `whole`, with which a circuit keeps it; `empty` is F(nobody)."""
    return max(within * abs(whole - empty), ROUNDING)


def search(
    passes: Passes,
    way: str = "remove",
    within: float = WITHIN,
    progress: Progress = ignore_progress,
) -> Circuit:
    """`circuit` for the `Passes` of a text."""
    one_of("way", way, WAYS)
    if not isinstance(within, int | float) or not 0 < within < 1:
        raise ValueError(
            f"within is {within!r}; it is the share of |F(M) - F(nobody)| that may be wrong, a number "
            "between 0 and 1"
        )
    everyone = all_heads(passes.lm)
    model_value = passes.whole
    count = len(everyone)
    done = 0
    heads = set(everyone if way == "remove" else ())
    first, empty = passes.of([heads, ()]).tolist()
    enough = allowed(model_value, empty, within)
    steps: list[tuple[int, Head | None, float]] = [(len(heads), None, first)]
    stages = [tuple(sorted(heads))]
    gaps = [abs(model_value - first)]
    while heads if way == "remove" else gaps[-1] > enough and len(heads) < count:
        values: dict[Head, float] = {}
        for tried, results in passes.with_each(
            heads, sorted(heads if way == "remove" else set(everyone) - heads)
        ):
            values |= zip(tried, results.tolist(), strict=True)
            done += len(tried)
            progress(done, count * (count + 1) // 2)
        head = min(values, key=lambda candidate: abs(model_value - values[candidate]))
        heads ^= {head}
        steps.append((len(heads), head, values[head]))
        stages.append(tuple(sorted(heads)))
        gaps.append(abs(model_value - values[head]))
        if way == "remove" and gaps[-1] > max(enough, gaps[-2]):
            break
    # the step with the fewest heads that is close enough, or if there is none, the closest one
    chosen = min(
        range(len(steps)), key=lambda i: (0, steps[i][0]) if gaps[i] <= enough else (1, gaps[i])
    )
    return Circuit(
        stages[chosen], model_value, steps[chosen][2], empty, enough, _table(steps), stages
    )


@undisturbed
def of_passes(
    lm: LanguageModel,
    question: tuple[Any, ...],
    function: Callable[..., Any],
    *args: Any,
    progress: Progress = ignore_progress,
) -> Any:
    """Return `function(passes, *args)`, with `Passes(lm, *question)`: text, target, baseline, and so on."""
    return function(Passes(lm, *question), *args, progress=progress)


def three_values(
    passes: Passes, heads: Heads, progress: Progress = ignore_progress
) -> tuple[float, float, float]:
    """F of the whole model, of a circuit, and without any head."""
    is_model = passes.feed_forwards and passes.is_everything(heads)
    *circuit_values, empty = passes.of([()] if is_model else [heads, ()], progress).tolist()
    return passes.whole, *(circuit_values or [passes.whole]), empty


def in_order(
    passes: Passes, heads: Sequence[Head], progress: Progress = ignore_progress
) -> pd.DataFrame:
    """A table of steps, as in `Circuit`, in which these heads are added in this order."""
    values = passes.of([heads[:size] for size in range(len(heads) + 1)], progress).tolist()
    return _table(
        [(size, heads[size - 1] if size else None, value) for size, value in enumerate(values)]
    )


@dataclass(frozen=True)
class Ranking:
    """All heads, the strongest first, and F of the circuits of the first k of them, k = 0 to all.

    The strongest are those that go last when heads are left out round by round, always those that F can do
    without best (`ranked`). A head's own `effects` are another matter: F with all heads minus F when this one
    alone is replaced. Heads that stand in for each other have small ones, and yet one of them is needed.
    """

    heads: tuple[Head, ...]
    effects: Values  # (L, H)
    values: Values  # (N + 1,): F of the first 0, 1, ... N heads
    whole: float  # F(M)
    allowed: float  # by how much F(C) may differ from F(M)

    @property
    def fewest(self) -> int:
        """The smallest k that keeps the prediction; where none does, the one that is closest to it."""
        gaps = np.abs(self.values - self.whole)
        kept = np.flatnonzero(gaps <= self.allowed)
        if kept.size > 0:
            return int(kept[0])
        return int(gaps.argmin())

    def loses_again(self, count: int) -> bool:
        """Whether the first `count` heads keep the prediction, more of the order lose it, and still more keep it.

        Lost is it towards no head: a later head takes back what the earlier ones gave.
        """
        gone = (self.whole - self.values) * np.sign(self.whole - self.values[0])
        keeps = np.flatnonzero(np.abs(gone) <= self.allowed)
        if count not in keeps:
            return False
        return bool((gone[count : keeps[-1]] > self.allowed).any())

    def size_of(self, heads: Heads) -> int | None:
        """The k whose circuit these heads are; None where they are no beginning of the order."""
        count = len(set(heads))
        if set(heads) == set(self.heads[:count]):
            return count
        return None


def most_passes(count: int) -> int:
    """The largest number of passes in which `ranked` orders so many heads."""
    passes = count + 1
    left = count
    while left > 0:
        passes += left
        left -= max(1, int(ALWAYS * left))
    return passes


def ranked(passes: Passes, within: float = WITHIN, progress: Progress = ignore_progress) -> Ranking:
    """`ranking` for the `Passes` of a text."""
    everyone = all_heads(passes.lm)
    count = len(everyone)
    most = most_passes(count)
    left = set(everyone)
    whole, empty = passes.of([everyone, ()]).tolist()
    alike = ALIKE * allowed(passes.whole, empty, within)
    effects = np.zeros((passes.lm.config.n_layers, passes.lm.config.n_heads))
    gone: list[Head] = []
    done = 0
    while left:
        without: dict[Head, float] = {}
        for tried, results in passes.with_each(left, sorted(left)):
            without |= zip(tried, results.tolist(), strict=True)
            done += len(tried)
            progress(done, most)
        if not gone:
            for head, value in without.items():
                effects[head] = whole - value
        gaps = {head: abs(passes.whole - value) for head, value in without.items()}
        easiest = sorted(gaps, key=lambda head: gaps[head])
        always = max(1, int(ALWAYS * len(left)))
        at_most = max(always, int(AT_ONCE * len(left)))
        as_easy = [
            head for head in easiest[always:at_most] if gaps[head] <= gaps[easiest[0]] + alike
        ]
        go = easiest[:always] + as_easy
        gone += go
        left -= set(go)
    heads = tuple(reversed(gone))
    first = [heads[:size] for size in range(count + 1)]
    values = passes.of(first, lambda so_far, _: progress(done + so_far, most))
    return Ranking(heads, effects, values, passes.whole, allowed(passes.whole, values[0], within))


@undisturbed
def ranking(
    lm: LanguageModel,
    text: Text,
    target: Target,
    baseline: str = "mean",
    feed_forwards: bool = True,
    position: int = -1,
    within: float = WITHIN,
    progress: Progress = ignore_progress,
    measure: str | None = None,
) -> Ranking:
    """Order all heads by how long a circuit needs them, and measure the circuits of the first k, for every k.

    In each round every head that is left is left out in turn, and those go without which F is closest to F(M):
    the first of them, a sixteenth of those that are left in any case, and those that matter as little. N heads
    take some 4 to 18 N passes, each from the head's block on, and N + 1 for the circuits. `Passes` explains the
    parameters.
    """
    return ranked(
        Passes(lm, text, target, baseline, feed_forwards, position, measure), within, progress
    )


def random_order(lm: LanguageModel, seed: int = 0) -> list[Head]:
    """All heads in a random order, as a baseline."""
    heads = all_heads(lm)
    return [heads[i] for i in np.random.default_rng(seed).permutation(len(heads))]


def _table(steps: Sequence[tuple[int, Head | None, float]]) -> pd.DataFrame:
    """The table of `Circuit.steps` from (size, head, F) for each step."""
    rows = [(size, *(head or (None, None)), value) for size, head, value in steps]
    table = pd.DataFrame(rows, columns=["size", "block", "head", "value"])
    return table.astype({"block": "Int64", "head": "Int64"})


# ---- what a circuit is worth ----


def score(
    passes: Passes, heads: Heads, seed: int = 0, progress: Progress = ignore_progress
) -> pd.DataFrame:
    """Measure completeness: F of the circuit and of the model, both without K, for sets K of its heads.

    Columns: K (the text form of `written`), size, circuit, model, and gap, the absolute difference of the
    two. The gap of the first row, with an empty K, is the faithfulness; the largest gap is the completeness.
    A circuit of up to `WHOLE_SUBSETS` heads is measured with all its subsets. For a larger one they are the
    empty set, each single head, all heads, and `SOME_SUBSETS` random ones, in which each head is with
    probability 1/2; a subset that was not tried may have a larger gap. Of a mapping, which keeps heads at roles, the
    model without K loses K's heads at their roles' positions alone.
    """
    sets = subsets(sorted(set(heads)), seed)[0]
    members = set(heads)
    model_passes = copy(passes)
    # the model keeps its feed-forwards, even if the circuit does not
    model_passes.feed_forwards = True
    circuits = passes.of(
        [only(heads, members - set(k)) for k in sets], lambda done, total: progress(done, 2 * total)
    )
    models = model_passes.of(
        [passes.rest_of(only(heads, k)) for k in sets],
        lambda done, total: progress(total + done, 2 * total),
    )
    table = pd.DataFrame({"K": [written(k) for k in sets], "size": [len(k) for k in sets]})
    return table.assign(circuit=circuits, model=models, gap=np.abs(circuits - models))


def subsets(heads: Sequence[Head], seed: int = 0) -> tuple[list[tuple[Head, ...]], bool]:
    """Subsets of a circuit's heads, the empty one first, and whether these are all its subsets."""
    if len(heads) <= WHOLE_SUBSETS:
        return [
            k for size in range(len(heads) + 1) for k in itertools.combinations(heads, size)
        ], True
    chosen = np.random.default_rng(seed).random((SOME_SUBSETS, len(heads))) < 0.5
    random_sets = [
        tuple(head for head, drawn in zip(heads, row, strict=True) if drawn) for row in chosen
    ]
    return list(
        dict.fromkeys([(), *((head,) for head in heads), tuple(heads), *random_sets])
    ), False


@undisturbed
def brings(
    lm: LanguageModel,
    text: Text,
    target: Target,
    heads: Heads,
    baseline: str = "mean",
    feed_forwards: bool = True,
    position: int = -1,
    progress: Progress = ignore_progress,
    measure: str | None = None,
) -> Values:
    """What each head of the model adds to this circuit: F with the head minus F without it, (L, H).

    All other heads stay as they are in the circuit. Of a mapping, which keeps heads at roles, a head of the circuit
    comes and goes at its roles' positions, and any other one at every position. `Passes` says what F is, and
    explains the parameters.
    """
    return each_brings(
        Passes(lm, text, target, baseline, feed_forwards, position, measure), heads, progress
    )[0]


def each_brings(
    passes: Passes, heads: Heads, progress: Progress = ignore_progress
) -> tuple[Values, tuple[float, float, float]]:
    """`brings` for the `Passes` of a text, and `three_values`."""
    values = three_values(passes, heads)
    everyone = all_heads(passes.lm)
    circuit_value = values[1]
    gains = np.zeros((passes.lm.config.n_layers, passes.lm.config.n_heads))
    done = 0
    for changed, changed_values in passes.with_each(heads, everyone):
        for head, value in zip(changed, changed_values, strict=True):
            if head in heads:
                gains[head] = circuit_value - value
            else:
                gains[head] = value - circuit_value
        done += len(changed)
        progress(done, len(everyone))
    return gains, values


# ---- as text ----


def written(heads: Heads) -> str:
    """The heads as the text form "4.3+5.0" (block.head), sorted; an empty text for no heads."""
    return "+".join(f"{block}.{head}" for block, head in sorted(set(heads)))


def parse(text: str, lm: LanguageModel) -> list[Head]:
    """The heads of a text such as `written` gives. A blank counts as a +, since web addresses may lose a +.

    Raises ValueError for any other text, and for a head that the model does not have.
    """
    heads = []
    for part in re.split(r"[+ ]", text) if text.strip() else []:
        if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", part):
            raise ValueError(f"{part!r} is no head; a circuit is written {GRAMMAR}")
        block, head = map(int, part.split("."))
        block = check_below("block", block, lm.config.n_layers)
        head = check_below("head", head, lm.config.n_heads)
        heads.append((block, head))
    return sorted(set(heads))
