"""The sentences of "Circuit": numbers in, Markdown out. Tokens come as the screen shows them."""

import re
from dataclasses import dataclass

from gptviz.analysis.circuit_search import ROUNDING
from gptviz.digits import fixed, significant
from gptviz.ui.words import as_code

OTHERS = {"sample": "its mean over a sample of text", "mean": "its mean over this text", "zero": "0"}


@dataclass(frozen=True)
class Measured:
    """What is measured, F: the tokens as the screen shows them."""

    token: str
    against: str | None

    @property
    def name(self) -> str:
        """F in a sentence."""
        if self.against is None:
            return f"the probability of {as_code(self.token)}"
        return f"the logit of {as_code(self.token)} less that of {as_code(self.against)}"

    @property
    def axis(self) -> str:
        """F at an axis."""
        if self.against is None:
            return f"probability of {self.token}"
        return f"logit of {self.token} − {self.against}"

    def number(self, value: float) -> str:
        """F with its digits."""
        return fixed(value, 2) if self.against is not None else significant(value)


@dataclass(frozen=True)
class Held:
    """F of the whole model, of the circuit, and of no head at all; how far off the circuit may be."""

    whole: float
    value: float
    empty: float
    allowed: float

    @property
    def off(self) -> float:
        """Its faithfulness: 0 is faithful."""
        return abs(self.whole - self.value)

    @property
    def kept(self) -> bool:
        return self.off <= self.allowed


def sentence(measured: Measured, size: int, of: int, held: Held, others: str, forwards: bool) -> str:
    """What a circuit keeps."""
    whole, value, empty = (measured.number(number) for number in (held.whole, held.value, held.empty))
    gone = f"each giving {OTHERS[others]}"
    if size == of and forwards:
        return (
            f"All {of} heads are in: that is the model itself, and {measured.name} is **{whole}**. With no "
            f"head in, {gone}, it is {empty}. How few heads keep it as it is?"
        )
    who = {0: "No head is in", 1: f"**1 of {of} heads** is in"}.get(size, f"**{size} of {of} heads** are in")
    left = "Every other head gives" if forwards else "Every other head and every feed-forward gives"
    return (
        f"{who}, and {measured.name} is **{value}**; the whole model has {whole}, no head {empty}. {left} "
        f"{OTHERS[others]}. {verdict(measured, held)}"
    )


def verdict(measured: Measured, held: Held) -> str:
    """Whether the prediction is kept, and if not, on which side it is lost."""
    off, allowed = measured.number(held.off), measured.number(held.allowed)
    side = "higher" if held.value > held.whole else "lower"
    if held.allowed <= ROUNDING:
        return f"No head at all gives the same as all heads: there is nothing to keep. This is {off} off."
    text = (
        f"The prediction is **{'kept' if held.kept else 'not kept'}**: it is {off} {side} than in the whole "
        f"model, and {allowed} is allowed, a tenth of the way from no head to all."
    )
    if held.kept:
        return text
    if (held.value > held.whole) == (held.whole > held.empty):
        text += (
            " This circuit overshoots: what is left out, taken together, "
            f"{'lowers' if side == 'higher' else 'raises'} it in the whole model."
        )
    return text


def worth(
    measured: Measured, held: Held, completeness: float, worst: str, sets: int, everything: bool
) -> str:
    """Faithfulness and completeness, in the unit of F."""
    where = f"for K = {worst}" if worst else "with nothing taken out"
    least = "" if everything else "at least "
    tried = f"all {sets}" if everything else f"{sets} of the"
    return (
        f"Faithfulness, |F(M) − F(C)|: **{measured.number(held.off)}**. Completeness, the largest "
        f"|F(C without K) − F(M without K)|: {least}**{measured.number(completeness)}**, {where}, the worst "
        f"of {tried} sets K of its heads. 0 is best for both."
    )


def sheet(measured: Measured) -> str:
    """Over the sheet of heads."""
    return (
        f"F is {measured.name}. A frame: the head is in. The colour: what it brings, F with it less F "
        "without it, the others as they are. A click puts a head in or takes it out."
    )


BESIDE = "Colour it for the unchanged model, too"
IN_BRACKETS = " In brackets, and at a hover: what it brings in the unchanged model."


LOOK_FOR = (
    "**What to look for.** A framed head that is pale can go. One that is not framed and has a colour would "
    "change F: orange raises it, blue lowers it. Heads work together: one that copies is worth nothing "
    "without the one that finds what to copy, so that heads that are *added* one by one may seem to bring "
    "nothing for long. And heads stand in for one another: of two that do the same, either can go. So "
    "neither way need find the fewest. Try both, then click."
)

STAY = (
    "What always stays: the embeddings, the LayerNorms, the biases of the attentions. The feed-forwards stay "
    "as well, unless the switch takes them away: then each gives its mean."
)


def searching(done: int, most: int) -> str:
    return f"{done} passes, at most {most}"


SEARCHES = {"remove": "Take heads away one by one", "add": "Add heads one by one"}
SEARCH_HELP = (
    "A greedy search: each step tries every head, and takes the one that leaves F closest to the whole "
    "model's, below or above. About half of all heads squared are the passes that it takes."
)
CURVES = {"remove": "taken away one by one", "add": "added one by one", "random": "added in a random order"}

NOT_SEARCHED = "Nobody has searched yet: take heads away one by one, or click heads in and out yourself."


def found(way: str, size: int, measured: Measured, held: Held, others: str) -> str:
    """What a search ended with."""
    value, off, allowed = (measured.number(number) for number in (held.value, held.off, held.allowed))
    if not held.kept:
        return (
            f"The search ({CURVES[way]}; each other head gives {OTHERS[others]}) met no circuit that keeps "
            f"the prediction. The closest has **{size}** heads: F is {value}, {off} off, and {allowed} is "
            "allowed."
        )
    how = "Taken away one by one, as long as" if way == "remove" else "Added one by one, until"
    return (
        f"{how} F is at most {allowed} off, below or above, while each other head gives {OTHERS[others]}: "
        f"**{size}** heads, {off} off."
    )


def point(way: str, size: int, value: str, head: tuple[int, int] | None) -> str:
    """A hover over a point of a curve."""
    said = f"{size} {'head' if size == 1 else 'heads'}, {CURVES[way]}: F is {value}"
    if head is None:
        return said
    return f"{said}<br>{'without' if way == 'remove' else 'with'} block {head[0]}, head {head[1]} at last"


def ask(heads: int) -> str:
    """Before it is asked for, where it takes long."""
    return f"Colour the sheet: what does each of the {heads} heads bring?"


def ask_score(passes: int) -> str:
    return f"Work out faithfulness and completeness ({passes} passes)"


def unreadable(error: str) -> str:
    """Of a circuit in a link."""
    return f"The link's circuit cannot be read, and is left out: {error}."


CURVE = (
    "F for the circuits of the search, from many heads to few or from few to many, beside heads added in a "
    "random order. Between the dashed lines the prediction is kept: F is off by at most a tenth of what all "
    "heads change. A click on a point takes that circuit."
)

WORTH = "How faithful and complete are meant"

DEFINITIONS = """
After Wang et al., *Interpretability in the Wild*, 2022, section 4. M is the model with all its parts, C the
circuit, and F is {F}, with everything replaced that is not in.

- **faithfulness** |F(M) − F(C)|: what the circuit gets wrong, too little or too much. The prediction is kept
  where that is at most a tenth of |F(M) − F(no head)|.
- **completeness** the largest |F(C without K) − F(M without K)| over sets K of the circuit's heads: taken out
  of the circuit and out of the model, they should do the same harm. Where it is large, the model has other
  heads that stand in, and the circuit has not all of them.
- **size** |C|: the number of heads.

There, F is the difference of two logits, averaged over many prompts of one form, and the mean is that of
those prompts, position by position. Here there is one text, and a mean is the same at every position. The
tenth is ours.
"""


def definitions(measured: Measured) -> str:
    return DEFINITIONS.replace("{F}", measured.name)


# ---- golf ----


def golf(size: int, measured: Measured, held: Held) -> str:
    """What the link is for."""
    heads = "head" if size == 1 else "heads"
    off, allowed = measured.number(held.off), measured.number(held.allowed)
    if held.kept:
        return (
            f"**Circuit golf:** {size} {heads}, and the prediction is kept (F is {off} off; {allowed} is "
            "allowed). Who needs fewer? The link holds the circuit and its F:"
        )
    return (
        f"**Circuit golf:** with {size} {heads} F is {off} off, and {allowed} is allowed: the prediction is "
        "not kept. The link holds the circuit and its F:"
    )


def score_holds(size: int, value: str, kept: bool) -> str:
    heads = "head" if size == 1 else "heads"
    return (
        f"The score in this link was worked out anew, and holds: {size} {heads}, F is {value}; the "
        f"prediction is {'kept' if kept else 'not kept'}."
    )


def score_differs(said: str, value: str) -> str:
    return (
        f"The link says {as_code(said)}, but with these heads, this text and this model F is **{value}**, "
        "worked out just now: the link's number is not what comes out."
    )


def is_number(said: str) -> bool:
    """Whether a link's score can be read as a number with a point."""
    return re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,9})?(e-[0-9]{1,2})?", said) is not None


NUMBERS = "What each head brings: F with it, F without it, the others of the circuit as they are."
SEARCHED = "Each circuit of the search: the head that was taken away or added, and F."
SETS = (
    "The sets K: F of the circuit without them, F of the model without them, and how far apart the two are."
)

EVERYWHERE = "Make this circuit the model, on every page"


def changed(own: str, unchanged: str) -> str:
    """What F is of where something is changed in the model; F of the whole changed and unchanged model."""
    return (
        "The model is changed: the whole model, M, is the changed one, the circuit is one of it, and the "
        f"sheet says what each head brings to it. F of the changed model is {own}, of the unchanged one "
        f"{unchanged}."
    )
