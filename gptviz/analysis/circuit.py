"""The circuit of a prediction: the fewest heads that keep it, everything else set to its mean.

M is the model with all its parts, C a choice of heads, and C(text) the pass in which every other head gives
its mean: over the positions of this text ("mean"), over a sample of text ("sample"), or nothing ("zero").
Embeddings, LayerNorms and the biases of the attentions always stay; the feed-forwards stay, or are replaced
by their mean as well. F(C) is what the pass is measured by: the probability of the token, or of a pair of
tokens the first one's logit less the second one's.

After Wang et al., Interpretability in the Wild, 2022, section 4 (their F is the logit difference, averaged
over many prompts of one form; their mean is taken over those prompts, position by position. Here there is
one text):

    faithfulness   |F(M) - F(C)|: what the circuit gets wrong
    completeness   |F(C \\ K) - F(M \\ K)| for sets K of the circuit's heads: taken out of the circuit and out
                   of the model, they should do the same harm. Large, where the model has others to stand in
    size           |C|, the number of heads

Their third criterion, minimality, asks that each head matters: `without_each` has F(C \\ {head}).
"""

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gptviz.analysis.circuit_passes import Head, Passes, Values, all_heads
from gptviz.analysis.knock_out import Target
from gptviz.language_model import LanguageModel
from gptviz.progress import Progress

WAYS = ("remove", "add")
ENOUGH = 0.9  # of the model's own F: the prediction counts as kept
WHOLE_SUBSETS = 6  # a circuit of so many heads has 64 subsets: completeness is measured with all of them
SOME_SUBSETS = 24  # of a larger one, besides the whole and each head by itself

GRAMMAR = "block.head+block.head, such as 4.3+5.0"


@dataclass(frozen=True)
class Circuit:
    """What a search found: the heads, in the order of the pass, F(M), and the search step by step.

    Columns of `steps`: size (how many heads are in), block and head (the one that was added or taken away,
    <NA> at first), value (F).
    """

    heads: tuple[Head, ...]
    whole: float
    steps: pd.DataFrame

    def __str__(self) -> str:
        return written(self.heads)

    @property
    def stages(self) -> list[tuple[Head, ...]]:
        """The heads that are in at each of the steps."""
        rows = zip(self.steps["block"][1:], self.steps["head"][1:], strict=True)
        changed = [(int(block), int(head)) for block, head in rows]
        now = {*self.heads, *changed} if self.steps["size"].iloc[0] else set()
        found = [tuple(sorted(now))]
        for head in changed:
            now ^= {head}
            found.append(tuple(sorted(now)))
        return found


def circuit(
    lm: LanguageModel,
    text: str | Sequence[int],
    target: Target,
    baseline: str = "mean",
    feed_forwards: bool = True,
    way: str = "remove",
    enough: float = ENOUGH,
    position: int = -1,
    progress: Progress | None = None,
) -> Circuit:
    """The heads that keep a prediction, found greedily: their F is at least `enough` of the model's.

    All heads, where no circuit of the search is enough: without the feed-forwards that can be.

    With "remove" all heads are in at first, and each time that one goes without which F is largest, as long
    as F is F(M) - (1 - enough) |F(M)| or more. With "add" nobody is in at first, and each time that one comes
    with which F is largest, until it is. Every step tries all heads that it may take, in batches, each begun
    at the block of the head: N heads take at most N (N + 1) / 2 passes. Neither need find the fewest: heads
    that work only together are worth nothing one by one, and heads that stand in for one another go in turn.

    Each of the `steps` is `lm.trace(text, edits=edits_of(lm, heads, baseline, feed_forwards))`, within 1e-5
    in float32. `progress(done, of)` is called after every batch with the passes that are done, and the most
    that there can be; what it raises stops the search. Raises ValueError as `knock_out` does, and for an
    unknown way, and an `enough` that is no number above 0.
    """
    return search(Passes(lm, text, target, baseline, feed_forwards, position), way, enough, progress)


def goal(whole: float, enough: float = ENOUGH) -> float:
    """The F from which on the prediction counts as kept."""
    return whole - (1 - enough) * abs(whole)


def search(
    passes: Passes, way: str = "remove", enough: float = ENOUGH, progress: Progress | None = None
) -> Circuit:
    """`circuit`, of a text whose passes there are."""
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; it must be one of {', '.join(WAYS)}")
    if not isinstance(enough, int | float) or isinstance(enough, bool) or not enough > 0:
        raise ValueError(f"enough is {enough!r}; it is the share of F to keep, a number above 0")
    everyone, wanted = all_heads(passes.lm), goal(passes.whole, enough)
    count, done = len(everyone), 0
    heads = set(everyone if way == "remove" else ())
    steps: list[tuple[int, Head | None, float]] = [(len(heads), None, float(passes.of([heads])[0]))]
    kept = set(heads if steps[0][2] >= wanted else everyone)
    while heads if way == "remove" else steps[-1][2] < wanted and len(heads) < count:
        best: tuple[float, Head] | None = None
        for tried, found in passes.with_each(
            heads, sorted(heads if way == "remove" else set(everyone) - heads)
        ):
            i = int(found.argmax())
            if best is None or found[i] > best[0]:
                best = (float(found[i]), tried[i])
            done += len(tried)
            if progress is not None:
                progress(done, count * (count + 1) // 2)
        assert best is not None, "there is a head to take"
        heads ^= {best[1]}
        steps.append((len(heads), best[1], best[0]))
        if best[0] >= wanted:
            kept = set(heads)
        elif way == "remove":
            break
    return Circuit(tuple(sorted(kept)), passes.whole, _table(steps))


def in_order(passes: Passes, heads: Sequence[Head]) -> pd.DataFrame:
    """The steps when these heads are added in this order."""
    values = passes.of([heads[:size] for size in range(len(heads) + 1)]).tolist()
    return _table([(size, heads[size - 1] if size else None, value) for size, value in enumerate(values)])


def random_order(lm: LanguageModel, seed: int = 0) -> list[Head]:
    """All heads, in an order that knows nothing."""
    heads = all_heads(lm)
    return [heads[i] for i in np.random.default_rng(seed).permutation(len(heads))]


def _table(steps: Sequence[tuple[int, Head | None, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": [size for size, _, _ in steps],
            "block": pd.array([head and head[0] for _, head, _ in steps], dtype="Int64"),
            "head": pd.array([head and head[1] for _, head, _ in steps], dtype="Int64"),
            "value": [value for _, _, value in steps],
        }
    )


# ---- what a circuit is worth ----


@dataclass(frozen=True)
class Score:
    """Of one circuit: F(M), F(C) and F of nobody; `table` has F(C \\ K) and F(M \\ K) for the sets K.

    Columns of the table: K (as `written` has it), size, circuit, model, gap.
    """

    size: int
    whole: float
    value: float
    empty: float
    table: pd.DataFrame
    all_subsets: bool

    @property
    def faithfulness(self) -> float:
        """|F(M) - F(C)|: 0 is faithful."""
        return abs(self.whole - self.value)

    @property
    def completeness(self) -> float:
        """The largest |F(C \\ K) - F(M \\ K)| of the sets that were tried: 0 is complete."""
        return float(self.table["gap"].max())

    @property
    def worst(self) -> str:
        """The set K of that gap."""
        return str(self.table["K"].iloc[int(self.table["gap"].argmax())])


def score(passes: Passes, heads: Collection[Head], seed: int = 0, progress: Progress | None = None) -> Score:
    """Faithfulness and completeness of a circuit. Two passes for every set K.

    The sets are all subsets of a circuit of up to `WHOLE_SUBSETS` heads; of a larger one the empty set, each
    head, all of them, and `SOME_SUBSETS` in which each head is with probability one half.
    """
    ordered = sorted(set(heads))
    sets, all_of_them = subsets(ordered, seed)
    everyone = set(all_heads(passes.lm))
    choices = [c for k in sets for c in (set(ordered) - set(k), everyone - set(k))]
    values = passes.of([(), *choices], progress)
    of_circuit, of_model = values[1::2], values[2::2]
    table = pd.DataFrame(
        {
            "K": [written(k) for k in sets],
            "size": [len(k) for k in sets],
            "circuit": of_circuit,
            "model": of_model,
            "gap": np.abs(of_circuit - of_model),
        }
    )
    return Score(len(ordered), passes.whole, float(of_circuit[0]), float(values[0]), table, all_of_them)


def subsets(heads: Sequence[Head], seed: int = 0) -> tuple[list[tuple[Head, ...]], bool]:
    """Sets of a circuit's heads, the empty one first, and whether these are all that there are."""
    if len(heads) <= WHOLE_SUBSETS:
        sizes = range(len(heads) + 1)
        return [k for size in sizes for k in itertools.combinations(heads, size)], True
    chosen = np.random.default_rng(seed).random((SOME_SUBSETS, len(heads))) < 0.5
    some = [tuple(head for head, one in zip(heads, row, strict=True) if one) for row in chosen]
    return list(dict.fromkeys([(), *((head,) for head in heads), tuple(heads), *some])), False


def without_each(passes: Passes, heads: Collection[Head], progress: Progress | None = None) -> Values:
    """F of the circuit with each head of the model the other way, (L, H): one less, or one more."""
    config = passes.lm.config
    found = np.zeros((config.n_layers, config.n_heads))
    everyone = all_heads(passes.lm)
    done = 0
    for changed, values in passes.with_each(heads, everyone):
        for (block, head), value in zip(changed, values, strict=True):
            found[block, head] = value
        done += len(changed)
        if progress is not None:
            progress(done, len(everyone))
    return found


# ---- as text ----


def written(heads: Collection[Head]) -> str:
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
        if block >= lm.config.n_layers or head >= lm.config.n_heads:
            raise ValueError(
                f"there is no head {part}: the blocks of {lm.name} go from 0 to {lm.config.n_layers - 1}, "
                f"the heads of each from 0 to {lm.config.n_heads - 1}"
            )
        found.append((block, head))
    return sorted(set(found))
