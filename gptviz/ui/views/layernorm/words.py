"""The LayerNorm page's sentences, with the numbers of the prompt in them."""

import math
from collections.abc import Sequence

from gptviz.analysis.norms import Place, Steps, VarianceParts
from gptviz.digits import significant
from gptviz.ui.words import as_code, term

Ends = tuple[Place, Place]  # where a grid of all norms and tokens is smallest, and where it is largest


def what_to_see(
    quantity: str,
    before: Ends,
    after: Ends,
    names: Sequence[str],
    labels: Sequence[str],
    size: int,
    drawn: bool = True,
) -> str:
    """What stands above the two grids. `names` are the norms', `labels` the tokens', `size` is emb_dim.

    `drawn`: these numbers are what the grids show.
    """
    text = (
        f"In this prompt the {quantity} of a token's {size} values runs {_range(before, names, labels)} "
        f"before the norms, and {_range(after, names, labels)} after them. "
    )
    if quantity == "mean":
        return (
            text + "Each norm subtracts the mean; what there is of one after it comes from scale and shift."
        )
    if _decades(after) < _decades(before):
        text += (
            "However large the residual stream has grown, what reads it is given numbers of about one size. "
        )
    return text + LEGEND if drawn else text.rstrip()


LEGEND = "The colours are logarithmic and the same on both sides; paper is a variance of 1."


def here(quantity: str, label: str, name: str, before: float, after: float) -> str:
    """What the selected norm does to the selected token."""
    return (
        f"A row is a norm, a column a token. For {as_code(label)} at {name} the {quantity} is "
        f"{significant(before)} before and **{significant(after)}** after."
    )


ALL_NORMS = "what the LayerNorms are given"


def one_norm(name: str, label: str) -> str:
    """The norm and token, in a sentence about a change that is not seen there."""
    return f"{'the final norm' if name == 'final' else name} at {as_code(label)}"


def what_changed(
    quantity: str,
    moved: int,
    of: int,
    first: str,
    farthest: tuple[str, str],
    values: tuple[float, float],
    drawn: bool,
) -> str:
    """What changes in the model did to what the norms are given.

    `moved` of `of` cells are others, `first` the first norm where; `farthest` the token and norm of the
    largest change, and its `values` unchanged and changed. `drawn`: the grids show the difference.
    """
    label, name = farthest
    text = (
        f"**What was changed is seen from {first} on:** {moved:,} of {of:,} {quantity}s before the norms are "
        f"others than in the unchanged model. Farthest apart is {as_code(label)} at {name}: "
        f"{significant(values[0])} unchanged, **{significant(values[1])}** changed."
    )
    if not drawn:
        return text
    what = "how many times as large it has become" if quantity == "variance" else "by how much it has changed"
    return f"{text} The colours say {what}: paper is what the change did not touch."


def unchanged_here(before: float, after: float) -> str:
    return f"Unchanged, it is {significant(before)} before and {significant(after)} after."


def _range(ends: Ends, names: Sequence[str], labels: Sequence[str]) -> str:
    """ "from 0.0055 (`,` at block 0 · norm1) to 825 (`The` at final)"."""
    low, high = (
        f"{significant(end.value)} ({as_code(labels[end.position])} at {names[end.norm]})" for end in ends
    )
    return f"from {low} to {high}"


def _decades(ends: Ends) -> float:
    """How many powers of ten lie between the two; infinitely many down to a variance of 0."""
    low, high = ends
    return math.log10(high.value / low.value) if low.value > 0 else math.inf if high.value > 0 else 0.0


def histograms(dimension: int, ghosts: bool = False) -> str:
    """What the marks in the three histograms are; `ghosts`: the unchanged model's are there, too."""
    old = " The grey outline and the open mark are the unchanged model's." if ghosts else ""
    return (
        "How many dimensions have a value of about this size. The line is the mean, the band one standard "
        f"deviation to each side of it, the orange mark dimension {dimension}.{old}"
    )


def weights(has_shift: bool) -> str:
    """What a norm has learned, and where it would change nothing."""
    if not has_shift:
        return "One learned number a dimension, the same for every token: a scale of 1 would change nothing."
    return (
        "Two learned numbers a dimension, the same for every token. The lines are where they would change "
        "nothing: a scale of 1, a shift of 0."
    )


def why_not_one(steps: Steps, parts: VarianceParts) -> str:
    """Why the variance after the norm is what it is, with its numbers."""
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


def step_by_step(dimension: int) -> str:
    return f"**Dimension {dimension}, step by step** (worked out with all digits, written with four)"
