"""The Attention page's sentences about a changed model: numbers in, Markdown out."""

from collections.abc import Collection

from gptviz.digits import fixed, significant

HIDDEN = "Attention to the first token is hidden, so there is nothing to show here."

LOOK_FOR = (
    "In the *difference* a cell is orange where the changed model looks more than the unchanged one, and "
    "blue where it looks less; each row of it sums to 0."
)

LINES = "The lines are the changed model's: a difference has none."

OF = "In the changed model, "

MOVED = (
    "`moved` is how far the head's pattern moved by what is changed: the mean total variation of its rows, "
    "half the sum of |changed − unchanged| over the keys, 0 for none and 1 for all."
)

UNMOVED = "**What is changed changed nothing here:** this pattern is the unchanged model's, to the digit."


def moved(by: float, average: bool) -> str:
    """By how much the rows of the pattern moved, from 0 to 1."""
    what = "This average pattern" if average else "Its pattern"
    return (
        f"**{what} moved by {significant(by, 2)}**: so much of each row's attention goes elsewhere than in "
        "the unchanged model, on average."
    )


def output(edit: str) -> str:
    """The head's own output is replaced: what it looks at is another matter."""
    return f"**{edit[:1].upper()}{edit[1:]}:** what it hands on is changed, not where it looks."


def out_of_reach(reasons: Collection[str]) -> str:
    """Why nothing that is changed can be seen in this pattern."""
    why = {
        "later": "it comes later in the model",
        "beside": "it is worked out beside it, in parts that this head does not read",
    }
    said = " or ".join(why[reason] for reason in why if reason in reasons)
    return f"What is changed cannot matter for this pattern: {said}."


def thumbnail(by: float, changed: bool) -> str:
    """What is said of a head while it is pointed at."""
    return f"{' It is changed.' if changed else ''} Its pattern moved by {significant(by, 2) if by else '0'}."


def steps(sites: Collection[str]) -> str:
    """Where the head's own steps do not lead to what the changed model uses."""
    what = {"attn": "the weights (6)", "z": "the output (8)"}
    named = " and ".join(what[site] for site in what if site in sites)
    return (
        f"This head is changed: {named} {'is' if set(sites) == {'z'} else 'are'} what the changed model uses "
        "instead, and the steps before do not lead there."
    )


def steps_are(pattern: str) -> str:
    """Of which of the two models the steps are."""
    other = {"unchanged": "changed", "changed": "unchanged"}[pattern]
    return f"These are the **{pattern}** model's; the choice above the matrix has the {other} one's, too."


def unchanged(score: float, weight: float | None) -> str:
    """The same query and key in the model as it is."""
    if weight is None:
        return f"**unchanged**: there query · key is {fixed(score, 2)}, and hidden as well."
    return f"**unchanged**: there query · key is {fixed(score, 2)}, and the weight {significant(weight, 4)}."


def weight(own: float, used: float) -> str:
    """A weight that the changed model does not take from its own arithmetic."""
    return f"**changed**: what is changed puts {significant(used, 4)} in the place of {significant(own, 4)}."


def which(pattern: str) -> str:
    """Of which of the two a table is."""
    if pattern == "difference":
        return "Each number is the changed weight minus the unchanged one."
    return f"These are the {pattern} model's."
