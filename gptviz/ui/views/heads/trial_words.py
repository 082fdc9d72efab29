"""The sentences of a trial and of a portrait: numbers in, Markdown out."""

import math
from collections.abc import Mapping, Sequence

from gptviz.digits import significant
from gptviz.ui.views.heads.words import QUIET, TITLES

REPEATS = ("induction", "copies")  # labels that make use of repeats


# ---- the trial ----


def outcome(label: str, holds: bool) -> str:
    """Above the pictures: no more than what came of it."""
    return f"On trial as *{TITLES[label]}*, the label {'**holds**' if holds else 'is **withdrawn**'} (below)."


def verdict(label: str, reason: str, rises: Mapping[str, float], others: Sequence[tuple[float, bool]]) -> str:
    """The trial's outcome, by its reason.

    `rises`: how much the loss rises, in nats a token: "repeated" and "unrepeated" without the head, "extra"
    the first less the second, "rise" their mean, "even" where it looks at all tokens alike, "forced" where it
    looks only where its label says. `others`: of each other head of its block that was tried the "extra", and
    whether it bears the label, too.
    """
    start = f"On trial as *{TITLES[label]}*, the label"
    repeats = (
        f"without the head a repeated passage costs {_nats(rises['repeated'])}, an unrepeated one "
        f"{_more(rises['unrepeated'])}"
    )
    extra = significant(rises["extra"], 2)
    if reason == "as others":
        missed = "it is" if sum(not same for _, same in others) == 1 else "these are"
        return (
            f"{start} is **withdrawn**: {repeats}. The difference is {extra}{_beside(others)}: {missed} "
            "missed as much."
        )
    if reason == "not missed" and label in REPEATS:
        return f"{start} is **withdrawn**: {repeats}. Repeats do not need it more than other texts do."
    if reason == "not missed":
        return f"{start} is **withdrawn**: {repeats}, too little to be told from nothing."
    missed = (
        f"{repeats} (the difference is {extra}{_beside(others)})"
        if label in REPEATS
        else f"without the head the loss is {_nats(rises['rise'])}"
    )
    where = ", on a repeated passage," if label in REPEATS else ""
    alike = f"When it looks at all tokens alike, the loss is{where} {_nats(rises['even'])}"
    if reason == "anywhere":
        return (
            f"{start} is **withdrawn**: {missed}. {alike}, too little to be told from nothing: where it "
            "looks makes no difference."
        )
    both = f"{missed}. {alike}; when it looks where the label says and nowhere else, {_more(rises['forced'])}"
    if reason == "enough":
        return f"{start} **holds**: {both}."
    return f"{start} is **withdrawn**: {both}, so it is needed for more."


def _beside(others: Sequence[tuple[float, bool]]) -> str:
    """The difference of the other heads that were tried: of all, and of those without the label.

    Both, since the verdict is by the latter, and a block may hold several heads of one kind.
    """
    if not others:
        return ""
    extras, unlike = [extra for extra, _ in others], [extra for extra, same in others if not same]
    if len(others) == 1:
        bears = "does not bear" if unlike else "bears"
        return f"; for the one other head of its block, which {bears} the label, it is {_mean(extras)}"
    of_all = f"; for the {_COUNTS[len(others)]} other heads of its block that were tried"
    if len(unlike) in (0, len(others)):
        bear = "none of which bears" if unlike else "which all bear"
        return f"{of_all}, {bear} the label, it is {_mean(extras)}"
    bear = "one of them that does" if len(unlike) == 1 else f"{_COUNTS[len(unlike)]} of them that do"
    return f"{of_all} it is {_mean(extras)}, and for the {bear} not bear the label {_mean(unlike)}"


_COUNTS = ("no", "one", "two", "three", "four", "five")  # a trial has five others at most


def _mean(values: Sequence[float]) -> str:
    return significant(math.fsum(values) / len(values), 2) + (" in the mean" if len(values) > 1 else "")


def _more(rise: float, unit: str = "") -> str:
    return f"{significant(abs(rise), 2)}{unit} {'more' if rise >= 0 else 'less'}"


def _nats(rise: float) -> str:
    return _more(rise, " nats a token")


WAITS = "A head's label in general is what is put on trial, and that is not known yet."


def no_claim(role: str) -> str:
    """Of a head whose general role is not one that can be tried."""
    if role in QUIET:
        return "This head has no label in general, so there is none to put on trial. Choose one to try it."
    return f"There is no trial for *{TITLES[role]}*. Choose a label to try it all the same."


def intro(label: str, passages: int, tokens: int) -> str:
    """What the trial is."""
    test = "" if label == "first" else " It must be missed."
    if label in REPEATS:
        test = (
            " A head that makes use of repeats must be missed where there are some, and more than others are."
        )
    return (
        f"A label is a claim, here *{TITLES[label]}*, so it is put to a test. The model reads {passages} "
        f"passages of books ({tokens} predicted tokens each), once after themselves and once after another "
        "one, with the head's output set to zero, and then with that of other heads of its block, drawn at "
        f"random.{test} Then it is made to look at all tokens alike, and only where the label says, which "
        "must cost less than half as much. A label that fails is withdrawn, here and on Attention."
    )


def working(done: int, of: int) -> str:
    return f"On trial: {done} of {of} passes"


STOPPED = "The trial was stopped: there is no verdict."


def all_trials(count: int) -> str:
    return f"Put all {count} labels on trial"


def all_working(done: int, of: int) -> str:
    return f"{done} of {of} labels tried"


def tried(done: int, of: int, withdrawn: int) -> str:
    """How many of the labels in general were tried."""
    if not done:
        return f"Of the {of} labels in general that can be tried, none was tried yet."
    return (
        f"Labels in general that were tried: {done} of the {of} that can be. Withdrawn (struck out above): "
        f"{withdrawn}."
    )


NUMBERS = (
    "A row a head, the one on trial first: the losses in nats a token with it muted, by how much they are "
    "above the whole model's (_rise), the difference of these two (extra), and of the first head what it "
    "costs to look at all tokens alike (even_rise), and only where the label says (forced_rise); _se is a "
    "standard error over the passages."
)
