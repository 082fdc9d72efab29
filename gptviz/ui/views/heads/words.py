"""The sentences of "Heads on trial": numbers in, Markdown out. `shown` are the tokens for the screen."""

from collections.abc import Sequence

from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import significant
from gptviz.ui.words import as_code

# A role's label, where there is room for a word.
SHORT = {
    "induction": "induction",
    "copies": "duplicate",
    "previous": "previous",
    "itself": "itself",
    "marks": "marks",
    "nearby": "nearby",
    "favourite": "one token",
    "first": "resting",
    "even": "even",
    "mixed": "mixed",
    "alone": "alone",
}
QUIET = ("first", "even", "mixed", "alone")  # that claim nothing: a head at rest, or one without a habit

# The same in a legend, and where a sentence needs more.
TITLES = {
    "induction": "induction",
    "copies": "duplicate token",
    "previous": "previous token",
    "itself": "the token itself",
    "marks": "punctuation",
    "nearby": "nearby tokens",
    "favourite": "one token",
    "first": "resting here",
    "even": "all alike",
    "mixed": "no habit",
    "alone": "a text of one token",
}

# What the finder can measure.
MEASURED = {
    "induction": "what came next",
    "copies": "earlier copies",
    "first": "the first token",
    "previous": "the token before",
    "itself": "the token itself",
    "marks": "punctuation",
    "nearby": "tokens nearby",
    "spread": "tokens looked at",
    "write": "length written",
}

_DOES = {
    "induction": "looks at what came after an earlier copy of the token",
    "copies": "looks at earlier copies of the token",
    "previous": "looks at the token just before",
    "itself": "looks at the token itself",
    "marks": "looks back at punctuation",
    "nearby": "looks at the few tokens just before",
    "first": "is resting: it looks at the first token",
    "even": "looks at all tokens almost alike",
    "mixed": "has no single habit",
    "alone": "has only one token to look at",
}


def percent(share: float) -> str:
    return f"{significant(100 * share, 2)} %"


def name(block: int, head: int) -> str:
    return f"block {block}, head {head}"


# ---- above the pictures ----


def sentence(here: HeadRole, shown: Sequence[str]) -> str:
    """What a head does on this text."""
    share = f" ({percent(here.share)} of its attention)" if here.share is not None else ""
    return f"**Block {here.block}, head {here.head}** {_does(here, shown)} on this text{share}."


def _does(here: HeadRole, shown: Sequence[str]) -> str:
    if here.kind == "favourite":
        assert here.favourite is not None
        return f"keeps looking at {as_code(shown[here.favourite])} (position {here.favourite})"
    return _DOES[here.kind]


# ---- the finder ----

LOOK_FOR = (
    "**What to look for.** Every point is a head, and where it stands is measured. Heads that do one thing "
    "stand far from the crowd: a *previous-token head* far to the right, a head at rest far up. A click "
    "opens a head; so do the two numbers beside. The rows beside say how much of its attention the opened "
    "head gives to each kind of token, on average over the tokens that have such a one before them."
)


# ---- the labels ----


LABELS = (
    "A head is named for what it does clearly on this text; one that looks at the first token is *resting "
    "here*, for attention cannot go nowhere. A text without repeats cannot show induction: there such a head "
    "mostly rests."
)


def cannot_show(roles: Sequence[str]) -> str:
    """Which roles this text cannot show, and why."""
    why = {
        "induction": "no token comes a second time after which something else could be looked up",
        "copies": "no token comes twice",
        "marks": "there is no punctuation before its last token",
    }
    parts = [f"*{SHORT[role]}* ({why[role]})" if role in why else f"*{SHORT[role]}*" for role in roles]
    return f"This text cannot show {_listed(parts)}."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def cell(block: int, head: int, role: str, share: float | None, more: str = "") -> str:
    """What a hover over a label says."""
    part = "" if share is None else f", {percent(share)}"
    return f"{name(block, head)}: {TITLES[role]}{part}{more}"


def offer(label: str, roles: Sequence[str]) -> str:
    """A button's: a text that shows what this one cannot."""
    return f"{label}: shows {' and '.join(SHORT[role] for role in roles)}"


# ---- the tables ----

HERE_NUMBERS = (
    "A row a head, on this text: its label and the share that gave it, then the share of every kind (empty "
    "where the text cannot show it), over how many tokens it looks, and how much it writes."
)
