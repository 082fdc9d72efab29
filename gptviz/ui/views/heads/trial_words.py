"""The sentences of a trial and of a portrait: numbers in, Markdown out."""

from collections.abc import Mapping

from gptviz.digits import significant
from gptviz.ui.views.heads.words import QUIET, TITLES

REPEATS = ("induction", "copies")  # labels that make use of repeats


# ---- the trial ----


def verdict(label: str, reason: str, rises: Mapping[str, float], others: float | None) -> str:
    """The trial's outcome, by its reason.

    `rises`: how much the loss rises, in nats a token: "repeated" and "unrepeated" without the head, "extra"
    the first less the second, "rise" their mean, "forced" that mean where the head looks only where its label
    says. `others`: the mean "extra" of the others of its block that do not bear the label.
    """
    start = f"On trial as *{TITLES[label]}*, the label"
    missed = (
        f"without the head a repeated passage costs {_nats(rises['repeated'])}, an unrepeated one "
        f"{_more(rises['unrepeated'])}"
    )
    muted, forced, extra = _nats(rises["rise"]), _more(rises["forced"]), significant(rises["extra"], 2)
    match reason:
        case "missed":
            beside = "" if others is None else f"; of other heads of its block it is {significant(others, 2)}"
            return f"{start} **holds**: {missed}. The difference is {extra}{beside}."
        case "as others":
            assert others is not None
            return (
                f"{start} is **withdrawn**: {missed}. The difference is {extra}, and of other heads of its "
                f"block, which do not bear the label, {significant(others, 2)}: they are missed as much."
            )
        case "enough":
            return (
                f"{start} **holds**: without the head the loss is {muted}, and {forced} when it "
                "looks where the label says and nowhere else."
            )
        case "not enough":
            return (
                f"{start} is **withdrawn**: without the head the loss is {muted}, and still "
                f"{forced} when it looks where the label says and nowhere else, so it is needed for more."
            )
    if label == "first":
        return f"{start} **holds**: {missed}, too little to be told from nothing: it is at rest."
    if label in REPEATS:
        return f"{start} is **withdrawn**: {missed}. Repeats do not need it more than other texts do."
    return f"{start} is **withdrawn**: {missed}, too little to be told from nothing."


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
    test = (
        "A head that makes use of repeats must be missed where there are some, and more than others are."
        if label in REPEATS
        else "Then it is made to look where the label says and nowhere else, which must do nearly as well."
    )
    return (
        f"A label is a claim, here *{TITLES[label]}*, so it is put to a test. The model reads {passages} "
        f"passages of books ({tokens} predicted tokens each), once after themselves and once after another "
        "one, with the head's output set to zero, and then with that of other heads of its block, drawn at "
        f"random. {test} A label that fails is withdrawn, here and on Attention."
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
    "above the whole model's (_rise), the difference of these two (extra), and with the head made to look "
    "where the label says (forced_rise); _se is a standard error over the passages."
)
