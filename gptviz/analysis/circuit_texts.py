"""One circuit on many texts: what it keeps of a difference of logits, and what all the other heads keep.

A circuit that was found on one text may be that text's alone. Here the same heads are kept on each text of a
set (Wang et al., Interpretability in the Wild, 2022, measure theirs over many prompts of one form).
"""

from collections.abc import Iterable

import pandas as pd

from gptviz.analysis.ablation import Target, check, muted_value
from gptviz.analysis.against import difference
from gptviz.analysis.circuit_passes import Head, all_heads, edits_of
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import Texts, averaged, is_many, of_one_text, over
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


@undisturbed
def circuit_on(
    lm: LanguageModel,
    text: Texts,
    target: Target | list[Target] | None = None,
    heads: Iterable[Head] = (),
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

    Raises ValueError as `knock_out` does, and for a head that does not exist.
    """
    kept = tuple((block, head) for block, head in heads)
    for block, head in kept:
        check_below("block", block, lm.config.n_layers)
        check_below("head", head, lm.config.n_heads)
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
    ids = check(lm, int(logits.argmax()) if aim is None else aim, null)
    value = muted_value(lm, null, [token.id for token in trace.tokens], ids)
    rest = tuple(head for head in all_heads(lm) if head not in kept)
    found = [float(difference(logits, *ids))]
    circuits: tuple[tuple[Head, ...], ...] = (kept, rest, ())
    for done, circuit in enumerate(circuits, start=1):
        edits = edits_of(lm, circuit, value, feed_forwards)
        only = lm.trace(text, keep=(), edits=edits).logits(index)
        found.append(float(difference(only, *ids)))
        progress(done, len(circuits))
    table = pd.DataFrame({"kept": KEPT, "logit": found})
    return table.assign(lost=found[0] - table["logit"])


def share_kept(table: pd.DataFrame) -> float | None:
    """The share of the way from no head to the whole model that the circuit goes, by the means of a table.

    None where there is little way to go: the two are less than `LEAST_WAY` logits apart, and a share of that
    says nothing.
    """
    logit = dict(zip(table["kept"], table["logit"], strict=True))
    whole_way = logit[MODEL] - logit[NOBODY]
    if abs(whole_way) < LEAST_WAY:
        return None
    return float((logit[CIRCUIT] - logit[NOBODY]) / whole_way)
