"""The page's words for a LayerNorm and for an RMSNorm, by what the model's record calls its norm."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gptviz.analysis.norms import QUANTITIES, Steps, VarianceParts, two_variances
from gptviz.figures.norms import NEARLY_ONE
from gptviz.llama import RMSNorm
from gptviz.model import LayerNorm
from gptviz.ui import words


@dataclass(frozen=True)
class Told:
    """What differs in words and numbers between the pages of the two norms.

    `stages` are what the picture calls each of `Steps.stages`. `quantities` are those of
    `analysis.norms.QUANTITIES` that a person chooses from, and `square` is what the first of them is called.
    `marked` says what the picture's lines are, `term` is the first word to be explained, and `middle` is where
    a dimension's number is far from. `sources` are the model's own lines.
    """

    name: str
    stages: tuple[str, ...]
    quantities: tuple[str, ...]
    square: str
    heading: str
    marked: str
    term: str
    middle: str
    sources: tuple[Callable[..., Any], ...]


TOLD = {
    "LayerNorm": Told(
        name="LayerNorm",
        stages=("In", "Minus the mean", "Divided by √variance", "Times scale", "Plus shift"),
        quantities=QUANTITIES,
        square="variance",
        heading="What does each step do to mean and variance?",
        marked="Line: the mean. Band: one standard deviation to each side (its square is the variance).",
        term="mean",
        middle="the mean",
        sources=(LayerNorm.forward, LayerNorm.formula),
    ),
    "RMSNorm": Told(
        name="RMSNorm",
        stages=("In", "Divided by √mean square", "Times scale"),
        quantities=QUANTITIES[:1],
        square="mean square",
        heading="What does each step do to the mean square?",
        marked="Line: zero, which does not move. Dashed: the mean. Band: the root of the mean square to each side.",
        term="mean square",
        middle="zero",
        sources=(RMSNorm.forward,),
    ),
}


def first_sentences(now: Steps, parts: VarianceParts, label: str) -> str:
    """What the norm does to the numbers of a token, and what it has learned then does."""
    size = len(now.before)
    how = "squeezes"
    if now.deviation < 1:
        how = "stretches"
    same = parts.normalised < NEARLY_ONE  # the token's numbers are all (nearly) the same, or 0
    if not now.has_mean:
        sentence = f"RMSNorm {how} the {size} numbers of {label} to root mean square one, without sliding them."
        if same:
            sentence = f"RMSNorm {how} the {size} numbers of {label}; they are too small for root mean square one."
        return f"{sentence} Then its scale changes it again."
    sentence = f"LayerNorm slides the {size} numbers of {label} to mean zero and {how} them to standard deviation one."
    if same:
        sentence = (
            f"LayerNorm slides the {size} numbers of {label} to mean zero; they differ too little for "
            "standard deviation one."
        )
    learned_by, _, changes = learned(now)
    return f"{sentence} Then {learned_by} {changes} both again."


def learned(now: Steps) -> tuple[str, str, str]:
    """What the norm has learned, as "its scale" and as "the scale", and the verb that follows."""
    if now.has_shift:
        return "its scale and shift", "scale and shift", "change"
    return "its scale", "the scale", "changes"


def why_not_one(now: Steps, parts: VarianceParts, square: str) -> str:
    """Why the variance, or the mean square, is not 1 after the norm, with this token's numbers."""
    given = words.significant(now.variance, 4)
    normalised = words.significant(parts.normalised, 6)
    smallest_scale = words.significant(float(now.scale.min()))
    largest_scale = words.significant(float(now.scale.max()))
    scaled = words.significant(parts.scaled, 4)
    sentences = [
        f"After dividing by √({square} + eps), the {square} is {square} / ({square} + eps) = "
        f"{given} / ({given} + {now.eps_written}) = {normalised}.",
        "Next, each dimension is multiplied by its own scale, here between "
        f"{smallest_scale} and {largest_scale}: the {square} becomes {scaled}.",
    ]
    if now.has_shift:
        shift = words.significant(parts.shift)
        together = words.significant(parts.together)
        after_shift = words.significant(parts.after, 4)
        sentences.append(
            "Last, each dimension gets its own shift. The shifts add their variance, "
            f"{shift}, and twice their covariance with the scaled values, {together}: "
            f"{scaled} + {shift} + {words.term(together)} = **{after_shift}**."
        )
    _, trained, _ = learned(now)
    sentences.append(f"Training chooses {trained} to suit the layer that reads the result.")
    return " ".join(sentences)


def how_divided(now: Steps) -> str:
    """Which mean it is: of a LayerNorm by N and not by N - 1, of an RMSNorm of the squares alone."""
    size = len(now.before)
    if not now.has_mean:
        mean = float(now.before.mean())
        return (
            f"**No mean, no shift.** The mean of these numbers is {words.significant(mean)}. A LayerNorm would "
            f"subtract it; an RMSNorm leaves it in. It has learned {size} numbers, the scale; a LayerNorm has "
            f"learned {2 * size}, as it adds a shift too."
        )
    by_all, by_less = two_variances(now.before)
    apart = "0 %"
    if by_all:
        apart = words.percent(by_less / by_all - 1)
    return (
        f"**Divided by N, not by N − 1.** LayerNorm adds up {size} squares and divides by {size}: "
        f"{words.significant(by_all, 6)}. By default `torch.var` divides by {size - 1} and gives "
        f"{words.significant(by_less, 6)}, {apart} more. `unbiased=False` asks for N, because "
        "these numbers are all there are, not a sample."
    )
