"""The sentences of "Heads on trial": numbers in, Markdown out. `shown` are the tokens for the screen."""

import math
from collections.abc import Collection, Sequence

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import percent
from gptviz.ui.words import does

WORTH_SAYING = 0.1  # of a head's attention, at rest on the first token


def name(block: int, head: int) -> str:
    return f"block {block}, head {head}"


# ---- above the pictures ----


def sentence(
    here: HeadRole,
    shown: Sequence[str],
    general: tuple[str, float | None] | None,
    hidden: Collection[str],
    unchanged: float | None = None,
) -> str:
    """What a head does on this text and in general (a role and its share; None: not known yet).

    `hidden` are the roles that this text cannot show. `unchanged` is that share as the model has it, where
    the pass is changed.
    """
    start = f"**Block {here.block}, head {here.head}** "
    share = f" ({percent(here.share)} of its attention" if here.share is not None else ""
    if share:
        share += "" if unchanged is None else f", unchanged {percent(unchanged)}"
        share += f"{_of_the_rest(here)})"
    says = does(here, shown)
    if general is None:
        return f"{start}{says} on this text{share}. What it does in general is being measured."
    role, in_general = general
    usual = f" ({percent(in_general)})" if in_general is not None else ""
    if role == here.kind:
        return f"{start}{says}: on this text{share} and in general{usual}."
    cannot = ", which this text cannot show" if role in hidden else ""
    return f"{start}{says} on this text{share}; in general it {ROLES[role].does}{usual}{cannot}."


def _of_the_rest(here: HeadRole) -> str:
    """What a head was named by, where it leaves a good deal of its attention on the first token."""
    if here.share_of_rest is None or here.rest < WORTH_SAYING:
        return ""
    return f"; {percent(here.share_of_rest)} of what it does not leave on the first token"


# ---- all heads of a block that do the same ----


def switch_off(block: int, count: int, role: str, where: str) -> str:
    """A button's; `where` is "here" or "general": by which label the heads are the same."""
    return f"Switch off {_these(block, count, role, where)}"


def switch_on(block: int, count: int, role: str, where: str) -> str:
    return f"Switch on again {_these(block, count, role, where)}"


def _these(block: int, count: int, role: str, where: str) -> str:
    usually = "" if where == "here" else " (in general)"
    return f"block {block}'s {count} heads *{ROLES[role].label}*{usually}"


def who(block: int, heads: Sequence[int], role: str, where: str) -> str:
    """Which heads these are, over the button's help."""
    label = f"{ROLES[role].label} {'on this text' if where == 'here' else 'in general'}"
    return f"Heads {_listed([str(head) for head in heads])} of block {block} ({label}), on every page"


TOGETHER = "their outputs z are zero, so they add nothing"


# ---- the finder ----

LOOK_FOR = (
    "**What to look for.** Every point is a head, and where it stands is measured. Heads that do one thing "
    "stand far from the crowd: a *previous-token head* far to the right, an *induction head* far up. A click "
    "opens a head; so do the two numbers beside. The rows beside say how much of its attention the opened "
    "head gives to each kind of token, on average over the tokens that have such a one before them."
)


def working(done: int, of: int) -> str:
    return f"In general: every head is read on other texts, {done} of {of}. Until then you see this text's."


WAITING = "Waits its turn: other work goes on in the background."


def left(seconds: float | None) -> str:
    """Behind how far it is: about how long it still takes, where that is worth saying."""
    if seconds is None or seconds < 5:
        return ""
    if seconds < 90:
        return f" (about {5 * math.ceil(seconds / 5)} s more)"
    return f" (about {math.ceil(seconds / 60)} min more)"


STOPPED = "The general scores were stopped: what you see is of this text alone."


def measured(sequences: int, random_tokens: int, windows: int, sample_tokens: int) -> str:
    """Where the general scores come from."""
    return (
        f"*In general*: what looks for repeats is measured on {sequences} texts of random tokens in which a "
        f"passage comes back after a random distance ({random_tokens:,} tokens), all else on {windows} "
        f"windows of books that the bundled model was never trained on ({sample_tokens:,} tokens)."
    )


CHANGED = (
    "The model is changed: *on this text* is of the changed pass (a hollow diamond is the unchanged one), "
    "and all that is said *in general* is of the unchanged model."
)


# ---- the labels ----


LABELS = (
    "Left what each head does on this text, right what it does in general. What a head leaves on the first "
    "token is set apart first, for attention cannot go nowhere: a head that leaves more than half there is "
    "*resting here*. Any other is named for what it clearly does with the rest. Grey on the left is a head "
    "whose general label this text cannot show. After its trial a label has ✓ where it holds, ○ where the "
    "head is not shown to be needed, ? where the two baselines disagree, and is struck out where it was "
    "withdrawn; any other was not tried yet (*mixed* and *even* claim nothing)."
)


def differ(same: int, of: int, hidden: int) -> str:
    """Of how many heads the label here is the one in general."""
    said = f"{same} of {of} heads have the same label on this text as in general."
    if hidden:
        said += f" {hidden} {'has' if hidden == 1 else 'have'} one that this text cannot show."
    return said


def cannot_show(roles: Sequence[str]) -> str:
    """Which roles this text cannot show, and why."""
    why = {
        "induction": "no token comes a second time after which something else could be looked up",
        "copies": "no token comes twice",
        "marks": "there is no punctuation before its last token",
    }
    parts = [
        f"*{ROLES[role].label}* ({why[role]})" if role in why else f"*{ROLES[role].label}*" for role in roles
    ]
    return f"This text cannot show {_listed(parts)}."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def cell(block: int, head: int, role: str, share: float | None) -> str:
    """What a hover over a label says."""
    part = "" if share is None else f", {percent(share)}"
    return f"{name(block, head)}: {ROLES[role].label}{part}"


TRIED = {
    "": "",
    "holds": "; held in its trial",
    "withdrawn": "; withdrawn in its trial",
    "not shown": "; its trial did not show that it is needed",
    "not decided": "; its trial was not decided",
}


def hidden_cell(block: int, head: int, general: str, here: str, share: float | None) -> str:
    """The same where the head's general label is one that this text cannot show."""
    part = "" if share is None else f", {percent(share)}"
    return (
        f"{name(block, head)}: in general {ROLES[general].label}, which this text cannot show; "
        f"here {ROLES[here].label}{part}"
    )


def offer(label: str, roles: Sequence[str]) -> str:
    """A button's: a text that shows what this one cannot."""
    return f"{label}: shows {' and '.join(ROLES[role].label for role in roles)}"


# ---- the tables ----

GENERAL_NUMBERS = (
    "A row a head, in general: its role, the share of it, what the same queries leave on the first token "
    "(rest), the share of what is not left there, which gave the role; then every measure of the finder. "
    "induction and copies are on random tokens; what ends in _random or _sample says where; ov_copying, "
    "qk_matching and copies_top5 come from the weights."
)

HERE_NUMBERS = (
    "A row a head, on this text: its label and its share, what the same queries leave on the first token "
    "(rest), the share of what is not left there, which gave the label, over how many tokens it looks, how "
    "much it writes, and the share of every kind (empty where the text cannot show it)."
)
