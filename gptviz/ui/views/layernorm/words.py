"""The LayerNorm page's sentences, with the numbers of the prompt in them."""

from collections.abc import Sequence

import pandas as pd

from gptviz.analysis import norms as numbers
from gptviz.digits import significant
from gptviz.ui.words import as_code, term


def what_to_see(
    table: pd.DataFrame, labels: Sequence[str], quantity: str, name: str, position: int, size: int
) -> str:
    """The paragraph under the two grids. `table` is `Trace.norms()`, `quantity` one of its columns."""
    here = table[(table["norm"] == name) & (table["position"] == position)].iloc[0]
    return (
        f"**A row is a norm, a column a token.** In this prompt the {quantity} of a token's {size} values "
        f"runs {_range(table, labels, quantity)} before the norms, and "
        f"{_range(table, labels, quantity + '_after')} after them. "
        + (
            "The colours are logarithmic and the same on both sides; paper is a variance of 1. However far "
            "the residual stream has grown, what reads it is given numbers of about one size. "
            if quantity == "variance"
            else "Each norm subtracts the mean; what there is of one after it comes from scale and shift. "
        )
        + f"For {as_code(labels[position])} at {name} it is {significant(here[quantity])} before and "
        f"**{significant(here[quantity + '_after'])}** after."
    )


def _range(table: pd.DataFrame, labels: Sequence[str], column: str) -> str:
    """ "from 0.0055 (`,` at block 0 · norm1) to 825 (`The` at final)"."""
    ends = [
        f"{significant(row[column])} ({as_code(labels[row['position']])} at {row['norm']})"
        for row in numbers.extremes(table, column)
    ]
    return f"from {ends[0]} to {ends[1]}"


def histograms(dimension: int) -> str:
    """What the marks in the three histograms are."""
    return (
        "How many dimensions have a value of about this size. The line is the mean, the band one standard "
        f"deviation to each side of it, the orange mark dimension {dimension}."
    )


def weights(steps: numbers.Steps) -> str:
    """What a norm has learned, and where it would change nothing."""
    if not steps.has_shift:
        return "One learned number a dimension, the same for every token: a scale of 1 would change nothing."
    return (
        "Two learned numbers a dimension, the same for every token. The lines are where they would change "
        "nothing: a scale of 1, a shift of 0."
    )


def why_not_one(steps: numbers.Steps) -> str:
    """Why the variance after the norm is what it is, with its numbers."""
    parts = numbers.variance_parts(steps)
    variance, scaled, shift = (
        significant(steps.variance, 4),
        significant(parts.scaled, 4),
        significant(parts.shift),
    )
    low, high = significant(float(steps.scale.min())), significant(float(steps.scale.max()))
    text = (
        f"**Why is the variance afterwards {significant(parts.after)} and not 1?** Dividing by "
        "√(variance + eps) leaves variance / (variance + eps) = "
        f"{variance} / ({variance} + {steps.eps:.5f}) = {significant(parts.normalised, 6)}: only "
        "eps keeps it from 1, and eps is there so that nothing is divided by 0. "
        "Then each dimension is multiplied by a scale of its own, "
        f"from {low} to {high} in this norm, and the variance is {scaled}. "
    )
    if steps.has_shift:
        together = significant(parts.together)
        text += (
            f"Then each gets a shift of its own, whose variance is {shift}; twice its covariance with the "
            f"scaled values is {together}: {scaled} + {shift} + {term(together)} = "
            f"**{significant(parts.after, 4)}**. "
        )
    return (
        text + "Scale and shift are learned: they say how large a dimension is to be for what reads it next."
    )
