"""The sentences of a trial and of a portrait: numbers in, Markdown out."""

import math
from collections.abc import Mapping

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_trial import BASELINES, ON_REPEATS, SURE
from gptviz.digits import fixed

Measured = tuple[float, float]  # a mean over the passages, and its standard error


# ---- the trial ----

REASONS = {
    "enough": "the label holds",
    "not enough": "needed for more than its label says",
    "not missed": "not shown to be needed here",
    "as others": "not shown to be needed more than other heads",
    "anywhere": "not shown to matter where it looks",
}
CHANGES = {
    "zero": "with zero in its place",
    "sample": "with its mean in its place",
    "even": "looking at all tokens alike",
    "label": "looking only where its label says",
}


def verdict(label: str, said: str, reasons: Mapping[str, str], missed: Mapping[str, Measured]) -> str:
    """The trial's outcome, in a sentence or two. `missed`: by each baseline how much the head is missed."""
    start = f"On trial as *{ROLES[label].label}*:"
    zero, sample = (REASONS[reasons[baseline]] for baseline in BASELINES)
    if said == "not decided":
        more = " more on repeats than elsewhere" if label in ON_REPEATS else ""
        costs = [plus_minus(*missed[baseline]) for baseline in BASELINES]
        return (
            f"{start} **not decided**. With zero in its place it costs {costs[0]} nats per token{more}, with "
            f"its mean {costs[1]}."
        )
    by = (
        "" if label == "first" else ", whether zero or its mean stands in for the head"
    )  # a head at rest need not be missed
    if said == "holds":
        return f"{start} the label **holds**{by}."
    if said == "withdrawn":
        return f"{start} the label is **withdrawn**{by}: the head is {zero}."
    return (
        f"{start} **{zero}**{by}."
        if zero == sample
        else f"{start} **{zero}** with zero in its place, and **{sample}** with its mean."
    )


def plus_minus(mean: float, error: float) -> str:
    """A rise with its sign and its standard error, to the same decimals: "+2.06 ± 0.25"."""
    decimals = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 4
    return f"{'+' if mean > 0 else ''}{fixed(mean, decimals)} ± {fixed(error, decimals)}"


STANDS_IN = (
    "This does not say that the head looks elsewhere: other heads may stand in for it. The label says where "
    "it looks, which was measured, and stays."
)


WAITS = "A head's label in general is what is put on trial, and that is not known yet."


def no_claim(role: str) -> str:
    """Of a head whose general role is not one that can be tried."""
    if ROLES[role].quiet:
        return "This head has no label in general, so there is none to put on trial. Choose one to try it."
    return f"There is no trial for *{ROLES[role].label}*. Choose a label to try it all the same."


def intro(label: str, passages: int, tokens: int, others: int, repeated: str, unrepeated: str) -> str:
    """What the trial is. `repeated`, `unrepeated`: the model's own loss on these passages."""
    test = "" if label == "first" else " It must be missed."
    if label in ON_REPEATS:
        test = (
            " A head that makes use of repeats must be missed more on them than elsewhere, and more so than "
            "heads without the label."
        )
    return (
        f"Does the model need the head to do what its label, *{ROLES[label].label}*, says? The model reads "
        f"{passages} passages of books ({tokens} predicted tokens each), once after themselves (repeated: "
        f"loss {repeated} nats per token) and once after another one (unrepeated: {unrepeated}). The head's "
        f"output is replaced by zero, and then by its mean over the sample of books{_OTHERS[others]}."
        f"{test} Then it looks at all tokens alike, and only "
        "where its label says, which must cost less than half as much. A verdict is given only where "
        "both baselines, zero and the mean, agree."
    )


_OTHERS = (
    "",
    ", and so is that of its block's other head",
    *(
        f", and so is that of {n} other heads of its block, drawn at random"
        for n in ("two", "three", "four", "five")
    ),
)


def table_says(passages: int) -> str:
    """Below the table."""
    return (
        f"By how much the loss rises, in nats per token: the mean over {passages} passages ± its standard "
        f"error. What is less than {SURE:.0f} standard errors above zero cannot be told from nothing."
    )


def working(done: int, of: int) -> str:
    return f"On trial: {done} of {of} passes"


STOPPED = "The trial was stopped: there is no verdict."


def all_trials(count: int) -> str:
    return f"Put all {count} labels on trial"


def all_working(done: int, of: int) -> str:
    return f"{done} of {of} labels tried"


def tried(verdicts: Mapping[str, int], of: int) -> str:
    """How many of the labels in general were tried, and how these trials ended."""
    if not verdicts:
        return f"Of the {of} labels in general that can be tried, none was tried yet."
    ended = ", ".join(f"{_ENDED[said]} {verdicts.get(said, 0)}" for said in _ENDED)
    return f"Labels in general that were tried: {sum(verdicts.values())} of the {of} that can be. {ended}."


_ENDED = {
    "holds": "They hold:",
    "withdrawn": "withdrawn (struck out above):",
    "not shown": "not shown to be needed:",
    "not decided": "not decided:",
}

NUMBERS = (
    "A row a change, those of the head on trial first: it or another head of its block gives zero, or its "
    "mean over the sample; the head on trial looks at all tokens alike (even), or only where its label says "
    "(label). By how much the loss is above the model's own, in nats per token: on repeated and on "
    "unrepeated passages, the first minus the second (extra), and the mean of both (rise); _se is a standard "
    "error over the passages."
)
