"""The sentences of "Knock-out": numbers in, Markdown out. Tokens come as the screen shows them."""

from dataclasses import dataclass

from gptviz.digits import fixed, significant
from gptviz.ui.words import as_code, compared_with

BASELINES = {"zero": "0", "mean": "its mean over this text", "sample": "its mean over a sample of text"}
MEASURES = {"logit": "logit difference", "probability": "probability"}


@dataclass(frozen=True)
class Muted:
    """A part, by the name that the screen has for it, and the prediction without it.

    `unchanged` are the two numbers of the unchanged model without it, where they are known.
    """

    label: str
    logit: float
    probability: float
    unchanged: tuple[float, float] | None = None


@dataclass(frozen=True)
class Asked:
    """What is looked at: the tokens as the screen shows them, and the model's own two numbers.

    `logit` is the token's minus that of `against`; None for the mean of all.

    `unchanged` are those of the unchanged model, where it is another.
    """

    after: str
    position: int
    token: str
    against: str | None
    logit: float
    probability: float
    unchanged: tuple[float, float] | None = None

    @property
    def logit_name(self) -> str:
        """What the table's `logit` is, in a sentence."""
        return f"the logit of {as_code(self.token)} minus {compared_with(self.against)}"

    def number(self, measure: str, logit: float, probability: float) -> str:
        """One of the two, with its digits."""
        return chance(probability) if measure == "probability" else fixed(logit, 2)


def chance(p: float) -> str:
    """A probability in a sentence: three digits, and never 0 or 1 by rounding."""
    return significant(p) if p < 0.9995 else fixed(p, 5)


def sentence(asked: Asked, measure: str, most: Muted, head: Muted, harmless: int, heads: int) -> str:
    """What the model says, the part and the head whose muting changes most, how many heads are not missed."""
    own, left, without = (asked.number(measure, one.logit, one.probability) for one in (asked, most, head))
    what = f"the probability of {as_code(asked.token)}" if measure == "probability" else asked.logit_name
    said = f"After {as_code(asked.after)} (position {asked.position}) {what} is **{own}**"
    if asked.unchanged is not None:
        said += f" in the changed model, {asked.number(measure, *asked.unchanged)} in the unchanged one"
    said += ". "
    if most.label != head.label:
        said += f"Without the {most.label} it is {left}; of single heads {head.label} changes most"
    else:
        said += f"No part changes it as much as {head.label}"
    return (
        f"{said}: **{without}** without it. But {harmless} of the {heads} heads can be muted, one at a time, "
        "and at least nine tenths of the probability stay."
    )


GRID = (
    "A row is a block: its heads by number, its whole attention (att), its feed-forward (ff). Click a cell."
)


def listed(count: int, measure: str) -> str:
    """Over the list."""
    return f"The {count} largest, with the {MEASURES[measure]} that is left"


def look_for(baseline: str, measure: str, asked: Asked, opposite: int, of: int) -> str:
    """What muting is, and how the map is read.

    `opposite`: of so many of the parts the probability goes the other way than the logit difference.
    """
    null = {
        "zero": "gives 0: nothing is added to the stream. That is not what later parts have learnt to expect",
        "mean": "gives its mean over this text's positions: what it gives to any of these tokens alike",
        "sample": "gives its mean over a sample of other text: what it gives to any token of any text, "
        "which is what later parts expect",
    }[baseline]
    what = f"the probability of {as_code(asked.token)}" if measure == "probability" else asked.logit_name
    other = ""
    if measure == "logit" and opposite:
        other = (
            f" For {opposite} of the {of} parts the probability goes the other way: it depends on all large "
            "logits."
        )
    return (
        f"**What to look for.** A muted part {null}; all else runs again on what is left. Orange: without it "
        f"{what} falls. Blue: it rises.{other} A pale part "
        "need not be idle: others may do the same work, or stand in for the one that is gone. So what is "
        "lost one by one does not add up to what is lost together."
    )


def opened(asked: Asked, part: Muted, rank: int, of: int, baseline: str) -> str:
    """A part that was clicked."""
    moved = part.logit - asked.logit
    way = "falls" if moved < 0 else "rises"
    return (
        f"With {BASELINES[baseline]} in place of what {part.label} gives, the probability of "
        f"{as_code(asked.token)} goes from {chance(asked.probability)} to **{chance(part.probability)}**, "
        f"and {asked.logit_name} {way} by {significant(abs(moved))}: number {rank} of {of} by size."
        f"{_opened_unchanged(asked, part)}"
    )


def _opened_unchanged(asked: Asked, part: Muted) -> str:
    if asked.unchanged is None or part.unchanged is None:
        return ""
    whole, without = (chance(one[1]) for one in (asked.unchanged, part.unchanged))
    return f" In the unchanged model the probability goes from {whole} to {without}."


def unmoved(asked: Asked, part: Muted) -> str:
    """Of a part that makes no difference, to the last digit."""
    return (
        f"{part.label} makes no difference here: the prediction is the same without it, to the last digit."
        f"{_opened_unchanged(asked, part)}"
    )


def bar(label: str, asked: Asked, part: Muted) -> str:
    """A hover over one of the list."""
    said = (
        f"without {label}: probability {chance(part.probability)} instead of {chance(asked.probability)}, "
        f"logit difference {fixed(part.logit, 3)} instead of {fixed(asked.logit, 3)}"
    )
    if asked.unchanged is None or part.unchanged is None:
        return said
    (logit, probability), (logit_left, left) = asked.unchanged, part.unchanged
    return (
        f"{said}; in the unchanged model {chance(left)} instead of {chance(probability)}, "
        f"logit difference {fixed(logit_left, 3)} instead of {fixed(logit, 3)}"
    )


def ask(parts: int, tokens: int) -> str:
    """Before it is asked for, where it takes long."""
    return f"Mute each of the {parts} parts in turn ({tokens} tokens, {parts} passes)"


STOPPED = (
    "Stopped. What was worked out so far is not shown: a map with gaps would look as if those parts did not "
    "matter."
)

BESIDE = "Work out the unchanged model's map, too"


def changed(asked: Asked, measure: str, beside: bool) -> str:
    """What the map of a changed model is of; `beside`: the list has the unchanged model's as ghosts."""
    own = asked.number(measure, asked.logit, asked.probability)
    said = (
        "The map is of the changed model: each part is muted on top of what is changed, and its number is "
        f"what that takes away from {own}."
    )
    if not beside:
        return said
    return f"{said} The outlined bars are what muting it takes away from the unchanged model."


NUMBERS = (
    "Each part with the prediction without it: `logit` (minus the mean over the vocabulary, or minus the "
    "other token's), the probability, the effect on `logit` (below zero where the token loses), and what is "
    "lost of the probability."
)
TO_ATTENTION = "See where block {block}, head {head} looks"
TO_BLOCK = "See where the heads of block {block} look"
TO_FEED_FORWARD = "See the feed-forward of block {block}"
TO_WHY = "What each part wrote for the word itself: Why this token?"
TO_CIRCUIT = "Which heads are enough? The circuit"
