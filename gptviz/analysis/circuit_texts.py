"""One circuit on many texts: what it keeps of a difference of logits, and what all the other heads keep.

A circuit that was found on one text may be that text's alone. Here the same heads are kept on each text of a
set (Wang et al., Interpretability in the Wild, 2022, measure theirs over many prompts of one form). Of texts with two
names each head may be kept at its role alone, as theirs are; at which one it works is measured, too.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from gptviz.analysis.ablation import Target, check, muted_value
from gptviz.analysis.against import difference
from gptviz.analysis.circuit_passes import (
    Head,
    Heads,
    Passes,
    at_positions,
    edits_of,
    rest_of,
    role_positions,
)
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
from gptviz.analysis.role_patches import ROLES
from gptviz.engine.index import check_below
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed

MODEL = "the whole model"
CIRCUIT = "this circuit"
OTHERS = "every other head"
NOBODY = "no head"
# logits; a tenth of what one pair of texts needs for shares, since a mean over many is surer
LEAST_WAY = 0.1
KEPT = (MODEL, CIRCUIT, OTHERS, NOBODY)
EVERYWHERE = "its heads at every position"  # one row more where heads are kept at roles
KEPT_AT_ROLES = (*KEPT, EVERYWHERE)

# a circuit; or the items of a mapping that keeps heads at roles, which are hashable as jobs need it
Given = Iterable[Head] | Mapping[Head, Collection[Any]] | tuple[tuple[Head, Collection[Any]], ...]


@undisturbed
def circuit_on(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    heads: Given = (),
    baseline: str | list[str] = "mean",
    feed_forwards: bool = True,
    position: int = -1,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Return a row for each of `KEPT`: what is kept, and the logit of the target with only that.

    `logit` is the token's logit minus the mean of all, or minus that of `against`; `lost` is how far it is below
    the whole model's. Everything else outputs what `baseline` says, as in `circuit`. A text and its target, or
    a list of each, and of baselines: then means over them, with `_se` for their standard errors and n, as
    `knock_out` has it.

    `heads` are kept at every position. A mapping (or its items) keeps each at its roles in a text with two names, or
    at positions by their numbers: {(5, 4): ["END"], (3, 0): ["S1+1", 7]}; everywhere else such a head outputs what
    the others do. In the row `OTHERS` it is taken out of the model at these positions alone. One more row,
    `EVERYWHERE`, keeps the same heads at every position.

    Raises ValueError as `knock_out` does, for a head that does not exist, and as `at_positions` does.
    """
    kept = _circuit(lm, heads)
    if is_many(text):
        options = {"heads": kept, "feed_forwards": feed_forwards, "position": position}
        each = {"baseline": baseline}
        tables = over(circuit_on, lm, text, target, progress, each, **options)
        return averaged(tables, ["logit", "lost"], groups=groups_of(lm, text, target))
    null: str = of_one_text(baseline, "baseline", "one baseline")
    trace = lm.trace(text, keep=())
    index = trace.place_of(position)
    logits = trace.logits(index)
    aim = of_one_text(target)
    pair = check(lm, int(logits.argmax()) if aim is None else aim, null)
    ids = [token.id for token in trace.tokens]
    value = muted_value(lm, null, ids, pair)
    placed = at_positions(lm, ids, pair, kept, index)
    found = [float(difference(logits, *pair))]
    circuits: list[Heads] = [placed, rest_of(lm, placed, len(ids)), ()]
    names: tuple[str, ...] = KEPT
    if isinstance(kept, Mapping):
        circuits.append(tuple(kept))
        names = KEPT_AT_ROLES
    for done, circuit in enumerate(circuits, start=1):
        edits = edits_of(lm, circuit, value, feed_forwards, len(ids))
        logits_left = lm.trace(text, keep=(), edits=edits).logits(index)
        found.append(float(difference(logits_left, *pair)))
        progress(done, len(circuits))
    table = pd.DataFrame({"kept": names, "logit": found})
    return table.assign(lost=found[0] - table["logit"])


def _circuit(lm: LanguageModel, heads: Given) -> Heads:
    """The heads as a tuple, or as a mapping. Raises ValueError for one that does not exist."""
    listed = tuple(heads.items() if isinstance(heads, Mapping) else heads)
    has_places = isinstance(heads, Mapping) or any(
        isinstance(second, Collection) for _, second in listed
    )
    circuit: Heads = tuple((block, head) for block, head in listed)
    if has_places:
        circuit = {(block, head): places for (block, head), places in listed}
    for block, head in circuit:
        check_below("block", block, lm.config.n_layers)
        check_below("head", head, lm.config.n_heads)
    return circuit


def share_kept(table: pd.DataFrame, row: str = CIRCUIT) -> float | None:
    """The share of the way from no head to the whole model that the circuit goes, by the means of a table.

    `row` is the circuit's row, or `EVERYWHERE`.

    None where there is little way to go: the two are less than `LEAST_WAY` logits apart, and a share of that
    says nothing.
    """
    logit = dict(zip(table["kept"], table["logit"], strict=True))
    whole_way = logit[MODEL] - logit[NOBODY]
    if abs(whole_way) < LEAST_WAY:
        return None
    return float((logit[row] - logit[NOBODY]) / whole_way)


@undisturbed
def heads_by_role(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target],
    heads: Iterable[Head],
    baseline: str | list[str] = "mean",
    feed_forwards: bool = True,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Return at which role each head of a circuit works: a row for each head and each of `ROLES`.

    Columns: block, head, role, and lost: by how many logits the difference of the pair `target` falls when this
    head of the circuit, whose heads are kept at every position, is muted at this role's position alone. A text with
    two names, or a list: then means over them, with `lost_se` and n, as `circuit_on` has it.

    Raises ValueError as `circuit_on` does.
    """
    kept = tuple(sorted(set(_circuit(lm, heads))))
    if is_many(text):
        options = {"heads": kept, "feed_forwards": feed_forwards}
        each = {"baseline": baseline}
        tables = over(heads_by_role, lm, text, target, progress, each, **options)
        return averaged(tables, ["lost"], groups=groups_of(lm, text, target))
    null: str = of_one_text(baseline, "baseline", "one baseline")
    passes = Passes(lm, text, of_one_text(target), null, feed_forwards, measure="logit")
    at = role_positions(lm, passes.ids[: passes.at + 1], passes.target)
    everywhere = {head: [*range(len(passes.ids))] for head in kept}
    rows = [(head, role) for head in kept for role in ROLES]
    circuits: list[Heads] = [everywhere]
    for head, role in rows:
        left = [place for place in everywhere[head] if place != at[role]]
        circuits.append({**everywhere, head: left})
    whole, *without = passes.of(circuits, progress).tolist()
    table = pd.DataFrame([(*head, role) for head, role in rows], columns=["block", "head", "role"])
    return table.assign(lost=[whole - value for value in without])


def strongest_roles(table: pd.DataFrame) -> dict[Head, tuple[str]]:
    """The role at which each head changes the difference most, on either side, by a table of `heads_by_role`."""
    found: dict[Head, tuple[str]] = {}
    for (block, head), rows in table.groupby(["block", "head"]):
        found[int(block), int(head)] = (str(rows.loc[rows["lost"].abs().idxmax(), "role"]),)
    return found
