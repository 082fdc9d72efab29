"""The circuit of a prediction: the fewest heads that keep it as it is, everything else set to its mean.

M is the model with all its parts, C a choice of heads, and C(text) the pass in which every other head gives
its mean: over the positions of this text ("mean"), over a sample of text ("sample"), or nothing ("zero").
Embeddings, LayerNorms and the biases of the attentions always stay; the feed-forwards stay, or are replaced
as well. F(C) is what the pass is measured by: the probability of the token, or of a pair of tokens the first
one's logit minus the second one's.

After Wang et al., Interpretability in the Wild, 2022, section 4 (their F is the logit difference, averaged
over many prompts of one form; their mean is taken over those prompts, position by position. Here there is
one text):

    faithfulness   |F(M) - F(C)|: what the circuit gets wrong, too little or too much
    completeness   |F(C \\ K) - F(M \\ K)| for sets K of the circuit's heads: taken out of the circuit and out
                   of the model, they should do the same harm. Large, where the model has others to stand in
    size           |C|, the number of heads

A circuit keeps the prediction when it gets at most a share of |F(M) - F(nobody)| wrong, a tenth if not said
otherwise: one that gives the token more than the model does is as wrong as one that gives it less.
Their third criterion, minimality, asks that each head matters: see `brings`.
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
from gptviz.analysis.circuit_passes import Head, Heads, Passes, Values, all_heads
from gptviz.engine.given import Text
from gptviz.engine.index import below, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, unheard
from gptviz.engine.undisturbed import undisturbed

WAYS = ("remove", "add")
WITHIN = 0.1  # of |F(M) - F(nobody)|: a circuit that gets no more wrong than that keeps the prediction
ROUNDING = 1e-6  # two passes of one circuit may differ by so much
WHOLE_SUBSETS = 6  # a circuit of so many heads has 64 subsets: completeness is measured with all of them
SOME_SUBSETS = 24  # of a larger one, besides the whole and each head by itself

GRAMMAR = "block.head+block.head, such as 4.3+5.0"


@dataclass(frozen=True)
class Circuit:
    """What a search found: the heads, in the order of the pass, F(M), F(C) and F of nobody; its steps.

    `allowed` is how much F(C) may differ from F(M), and `kept` whether it differs by no more. Columns of
    `steps`: size (how many heads are in), block and head (the one that was added or taken away, <NA> at
    first), value (F). `stages` are the heads that are in at each of the steps.
    """

    heads: tuple[Head, ...]
    whole: float
    value: float
    empty: float
    allowed: float
    steps: pd.DataFrame
    stages: list[tuple[Head, ...]]

    @property
    def kept(self) -> bool:
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
    progress: Progress = unheard,
) -> Circuit:
    """Return the heads that keep a prediction, found greedily: |F(M) - F(C)| is at most `allowed`.

    That is `within` times |F(M) - F(nobody)|, F below or above. Where no circuit of the search is so close
    (without the feed-forwards not even all heads need be), the closest is given, and is not `kept`.

    With "remove" all heads are in at first, and each time that one goes without which F is closest to F(M),
    as long as that is within what is allowed, or closer than before. With "add" nobody is in at first, and
    each time that one comes with which F is closest to F(M), until it is within. Every step tries all heads
    that it may take, in batches, each begun at the block of the head: N heads take at most N (N + 1) / 2
    passes. Neither need find the fewest: heads that work only together are worth nothing one by one, and
    heads that stand in for one another go in turn.

    Each of the `steps` is `lm.trace(text, edits=edits_of(lm, heads, baseline, feed_forwards))`, within 1e-5
    in float32. `progress(done, of)` is called after every batch with the passes that are done, and the most
    that there can be; what it raises stops the search. Raises ValueError as `knock_out` does, and for an
    unknown way, and a `within` that is no number between 0 and 1.
    """
    return search(Passes(lm, text, target, baseline, feed_forwards, position), way, within, progress)


def allowed(whole: float, empty: float, within: float = WITHIN) -> float:
    """The largest difference from `whole`, F(M), that counts as none; `empty` is F of no head."""
    return max(within * abs(whole - empty), ROUNDING)


def search(
    passes: Passes, way: str = "remove", within: float = WITHIN, progress: Progress = unheard
) -> Circuit:
    """`circuit`, of a text whose passes there are."""
    one_of("way", way, WAYS)
    if not isinstance(within, int | float) or not 0 < within < 1:
        raise ValueError(
            f"within is {within!r}; it is the share of |F(M) - F(nobody)| that may be wrong, a number "
            "between 0 and 1"
        )
    everyone = all_heads(passes.lm)
    whole = passes.whole
    count = len(everyone)
    done = 0
    heads = set(everyone if way == "remove" else ())
    first, empty = passes.of([heads, ()]).tolist()
    enough = allowed(whole, empty, within)
    steps: list[tuple[int, Head | None, float]] = [(len(heads), None, first)]
    stages = [tuple(sorted(heads))]
    gaps = [abs(whole - first)]
    while heads if way == "remove" else gaps[-1] > enough and len(heads) < count:
        values: dict[Head, float] = {}
        for tried, found in passes.with_each(
            heads, sorted(heads if way == "remove" else set(everyone) - heads)
        ):
            values |= zip(tried, found.tolist(), strict=True)
            done += len(tried)
            progress(done, count * (count + 1) // 2)
        head = min(values, key=lambda one: abs(whole - values[one]))
        heads ^= {head}
        steps.append((len(heads), head, values[head]))
        stages.append(tuple(sorted(heads)))
        gaps.append(abs(whole - values[head]))
        if way == "remove" and gaps[-1] > max(enough, gaps[-2]):
            break
    # the fewest heads that are close enough; else those that come closest
    at = min(range(len(steps)), key=lambda i: (0, steps[i][0]) if gaps[i] <= enough else (1, gaps[i]))
    return Circuit(stages[at], whole, steps[at][2], empty, enough, _table(steps), stages)


@undisturbed
def of_passes(
    lm: LanguageModel,
    question: tuple[Any, ...],
    function: Callable[..., Any],
    *args: Any,
    progress: Progress = unheard,
) -> Any:
    """Return `function(passes, *args)` for the `Passes` of a question: text, target, baseline, and so on."""
    return function(Passes(lm, *question), *args, progress=progress)


def three_values(passes: Passes, heads: Heads, progress: Progress = unheard) -> tuple[float, float, float]:
    """Return F of the whole model, of a circuit, and of nobody."""
    is_model = passes.feed_forwards and not {*all_heads(passes.lm)} - {*heads}
    *own, empty = passes.of([()] if is_model else [heads, ()], progress).tolist()
    return passes.whole, *(own or [passes.whole]), empty


def in_order(passes: Passes, heads: Sequence[Head], progress: Progress = unheard) -> pd.DataFrame:
    """The steps when these heads are added in this order."""
    values = passes.of([heads[:size] for size in range(len(heads) + 1)], progress).tolist()
    return _table([(size, heads[size - 1] if size else None, value) for size, value in enumerate(values)])


def random_order(lm: LanguageModel, seed: int = 0) -> list[Head]:
    """All heads, in an order that knows nothing."""
    heads = all_heads(lm)
    return [heads[i] for i in np.random.default_rng(seed).permutation(len(heads))]


def _table(steps: Sequence[tuple[int, Head | None, float]]) -> pd.DataFrame:
    rows = [(size, *(head or (None, None)), value) for size, head, value in steps]
    table = pd.DataFrame(rows, columns=["size", "block", "head", "value"])
    return table.astype({"block": "Int64", "head": "Int64"})


# ---- what a circuit is worth ----


def score(passes: Passes, heads: Heads, seed: int = 0, progress: Progress = unheard) -> pd.DataFrame:
    """F of a circuit without K and of the model without K, for sets K of its heads: two passes each.

    Columns: K (as `written` has it), size, circuit, model, and gap, how far apart the two are. The first
    row's gap, of the empty K, is the faithfulness; the largest is the completeness. The sets are all subsets
    of a circuit of up to `WHOLE_SUBSETS` heads; of a larger one the empty set, each head, all of them, and
    `SOME_SUBSETS` in which each head is with probability one half: there may be a worse one.
    """
    sets = subsets(sorted(set(heads)), seed)[0]
    own = set(heads)
    everyone = set(all_heads(passes.lm))
    whole = copy(passes)
    whole.feed_forwards = True  # the model has its own, whatever the circuit has
    circuits = passes.of([own - set(k) for k in sets], lambda done, of: progress(done, 2 * of))
    models = whole.of([everyone - set(k) for k in sets], lambda done, of: progress(of + done, 2 * of))
    table = pd.DataFrame({"K": [written(k) for k in sets], "size": [len(k) for k in sets]})
    return table.assign(circuit=circuits, model=models, gap=np.abs(circuits - models))


def subsets(heads: Sequence[Head], seed: int = 0) -> tuple[list[tuple[Head, ...]], bool]:
    """Sets of a circuit's heads, the empty one first, and whether these are all that there are."""
    if len(heads) <= WHOLE_SUBSETS:
        return [k for size in range(len(heads) + 1) for k in itertools.combinations(heads, size)], True
    chosen = np.random.default_rng(seed).random((SOME_SUBSETS, len(heads))) < 0.5
    some = [tuple(head for head, one in zip(heads, row, strict=True) if one) for row in chosen]
    return list(dict.fromkeys([(), *((head,) for head in heads), tuple(heads), *some])), False


@undisturbed
def brings(
    lm: LanguageModel,
    text: Text,
    target: Target,
    heads: Heads,
    baseline: str = "mean",
    feed_forwards: bool = True,
    position: int = -1,
    progress: Progress = unheard,
) -> Values:
    """What each head of the model adds to this circuit: F with it minus F without it, (L, H).

    The others stay as they are, in or out. `Passes` says what F is, and of what.
    """
    return each_brings(Passes(lm, text, target, baseline, feed_forwards, position), heads, progress)[0]


def each_brings(
    passes: Passes, heads: Heads, progress: Progress = unheard
) -> tuple[Values, tuple[float, float, float]]:
    """`brings`, of a text whose passes there are, and `three_values`: what a circuit's sheet shows."""
    values = three_values(passes, heads)
    everyone = all_heads(passes.lm)
    own = values[1]
    found = np.zeros((passes.lm.config.n_layers, passes.lm.config.n_heads))
    done = 0
    for changed, with_it in passes.with_each(heads, everyone):
        for head, value in zip(changed, with_it, strict=True):
            if head in heads:
                found[head] = own - value
            else:
                found[head] = value - own
        done += len(changed)
        progress(done, len(everyone))
    return found, values


# ---- as text ----


def written(heads: Heads) -> str:
    """The heads as an address holds them: 4.3+5.0, in order; nobody is an empty text."""
    return "+".join(f"{block}.{head}" for block, head in sorted(set(heads)))


def parse(text: str, lm: LanguageModel) -> list[Head]:
    """The heads that a text names; a blank counts as the + that an address turns into one.

    Raises ValueError for what is no such text, and for a head that the model does not have.
    """
    found = []
    for part in re.split(r"[+ ]", text) if text.strip() else []:
        if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", part):
            raise ValueError(f"{part!r} is no head; a circuit is written {GRAMMAR}")
        block, head = map(int, part.split("."))
        found.append((below("block", block, lm.config.n_layers), below("head", head, lm.config.n_heads)))
    return sorted(set(found))
