"""The sentences of "Why this token?": numbers in, Markdown out. Tokens come as the screen shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from gptviz.analysis.shares import Group
from gptviz.digits import fixed, significant
from gptviz.digits import weight as attention_weight
from gptviz.ui.words import as_code, compared_with, towards


@dataclass(frozen=True)
class Source:
    """A token that was read: what it gave, and how much attention it got where that is one head's."""

    token: str
    position: int
    share: float
    attention: float | None = None


def sentence(
    after: str,
    position: int,
    token: str,
    against: str | None,
    logit: float,
    largest: Sequence[Group],
    source: Source | None,
) -> str:
    """What stands above the pictures: the difference, its two largest shares, and where the heads' came from.

    `against` is None for the mean of all logits, here and below.
    """
    first = (
        f"After {as_code(after)} (position {position}) the logit of {as_code(token)} is "
        f"**{significant(abs(logit))}** {'above' if logit >= 0 else 'below'} {compared_with(against)}"
    )
    said = []
    for group in largest:
        name = f"{significant(group.contribution)} from {group.label}"
        if source is not None and group is _first_heads(largest):
            name += f", {significant(source.share)} of it read from {_at(source)},"
        said.append(name)
    return f"{first}. The largest shares are {' and '.join(said).rstrip(',')}."


def _first_heads(groups: Sequence[Group]) -> Group | None:
    return next((group for group in groups if group.heads), None)


def _at(source: Source) -> str:
    return f"{as_code(source.token)} (position {source.position})"


def summed(parts: int, total: float, logit: float, against: str | None, changed: bool = False) -> str:
    """Plain text under the waterfall: the sum of all parts, and the model's own number."""
    what = "logit minus the mean of all" if against is None else "difference of the two logits"
    whose = "changed model's" if changed else "model's own"
    return f"{parts} parts add up to {fixed(total, 4)}. The {whose} {what}: {fixed(logit, 4)}."


# ---- unchanged and changed ----


@dataclass(frozen=True)
class Moved:
    """A share in the unchanged model and in the changed one."""

    label: str
    before: float
    after: float


def word(token: str, against: str | None, after: str) -> str:
    """What is explained, in a sentence about a change that is not seen in it."""
    return f"the logit of {towards(token, against)} after {as_code(after)}"


def what_changed(
    token: str, against: str | None, before: float, after: float, moved: Sequence[Moved], first: str | None
) -> str:
    """What changes in the model did to the difference, and whose shares they changed most.

    `first` is the unchanged model's first choice, where the changed one has another.
    """
    what = f"the logit minus {compared_with(against)}"
    text = (
        f"**Unchanged,** {what} is {significant(before)}; **changed,** {significant(after)}, which is "
        f"{significant(abs(after - before))} {'more' if after >= before else 'less'}. "
    )
    if moved:
        said = [f"{one.label} ({significant(one.before)} to {significant(one.after)})" for one in moved]
        text += f"The shares that changed most: {' and '.join(said)}."
    if first is not None:
        text += f" The unchanged model's first choice is {as_code(first)}."
    return text


def head_unchanged(before: float) -> str:
    return f"Unchanged, its share is {significant(before)}."


GRID_CHANGES = (
    "A cell is by how much the share of a head (by its number), a bias or a feed-forward (ff) has changed. "
    "What comes before the change wrote what it always does: its share moves only because the last LayerNorm "
    "divides by another number. A click opens a head."
)

SOURCES_CHANGES = (
    "Each cell is by how much one token's part of what a head wrote has changed; beside each head, and as "
    "bars, stand the sums."
)


def look_for(spread: float, has_shift: bool, against: str | None) -> str:
    """How the difference comes to be a sum, and what was held fixed for it."""
    end = " and its shift taken as a part of its own" if has_shift else ""
    return (
        "**Why this is a sum.** Every part of the model only adds to the residual stream: the embedding, the "
        "position, each head, each feed-forward. At the end the final LayerNorm takes the mean off and "
        "divides by one number, and the output head multiplies. With that number held at what it is here "
        f"({significant(spread, 4)}){end}, each part's write can be sent through by itself, and the shares "
        f"add up to the logit minus {compared_with(against)}. What raises all logits alike makes no token "
        "more probable, and counts as 0. A share is what a part wrote for the word *itself*, without what "
        "later parts made of it."
    )


GRID = "A cell is what a head (by its number), a bias or a feed-forward (ff) wrote. A click opens a head."

EDITED = (
    "This pass is changed: `edit` is what the change put into the stream in place of what the parts wrote."
)

ROUNDED = (
    "This model computes in bfloat16, which rounds the stream at every step: what that comes "
    "to in sum is `rounding`."
)


def head(
    block: int, head: int, share: float, token: str, against: str | None, found: Sequence[Source]
) -> str:
    """What an opened head wrote, and the tokens that it came from."""
    said = f"Block {block}, head {head} wrote {significant(share)} for {towards(token, against)}."
    if not found:
        return said
    first = found[0]
    attention = (
        "" if first.attention is None else f", which got {attention_weight(first.attention)} of its attention"
    )
    return f"{said} {significant(first.share)} of it came from {_at(first)}{attention}."


def rests(most: Source) -> str:
    """Of the token that got most attention, where it is not the one that gave most."""
    assert most.attention is not None
    return (
        f"Most of its attention, {attention_weight(most.attention)}, was on {_at(most)}, which gave "
        f"{significant(most.share)}: attention says where a head looks, not what it takes from there."
    )


SOURCES = (
    "Each cell is one token's part of what a head wrote: attention weight × value, through the head's output "
    "matrix, the final LayerNorm and the output head. A row adds up to the head's share (its number stands "
    "at the row), the bars are the columns' sums. The chips above are coloured by the opened head's row."
)


def value_bias(share: float) -> str:
    """What the split by tokens does with a bias in the values."""
    return (
        "The values of this model have a bias, the same for every token. A row of attention adds up to 1, so "
        f"a head writes it wherever it looks: for this head that is {significant(share)}, given here to the "
        "tokens by their attention."
    )


def no_sources(muted: bool) -> str:
    what = "switched off, and wrote nothing" if muted else "replaced by numbers that come from no token"
    return f"In this changed pass the head's output was {what}."


def total_effect(block: int, head: int, direct: float, total: float, token: str, against: str | None) -> str:
    """The opened head's two numbers side by side."""
    fall = "falls" if total >= 0 else "rises"
    return (
        f"Block {block}, head {head} wrote {significant(direct)} for {towards(token, against)}. Without it "
        f"the difference {fall} by {significant(abs(total))}."
    )


def farthest(label: str, direct: float, total: float) -> str:
    """Of all heads the one whose two numbers differ most."""
    return (
        f"Farthest apart is {label}: it wrote {significant(direct)}, and muting it takes "
        f"{significant(total)} away."
    )


WHY_DIFFERENT = (
    "**Why they differ.** A direct share is what the head wrote for the word itself. Muting it changes more: "
    "*later parts* read a stream without it, and write something else (a head that another head relies on "
    "has a small share and a large effect); the *LayerNorms* divide by another number; and *other heads "
    "stand in* for the one that is gone, so that less is lost than it wrote. On the dotted line both are the "
    "same."
)


def offer(parts: int) -> str:
    return (
        f"What if a part were not there? Each of the {parts} heads, attentions and feed-forwards is muted in "
        "turn, its output set to 0, and the rest of the model runs again."
    )


TO_KNOCK_OUT = "Knock-out: the same by probability, with a mean in the part's place, and every part to open"

NUMBERS = (
    "Every part's direct share, in the order of the pass; the last rows are their sum and the model's own "
    "number."
)
SOURCE_NUMBERS = (
    "What each token gave through each head of the opened block; the last row is each head's share."
)
MUTED_NUMBERS = (
    "Each part's direct share and what muting it takes away; without the part, the difference of logits "
    "(`logit`) and the target's probability."
)
