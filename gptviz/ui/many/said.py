"""What is said of the means over many texts: how certain they are, and what they are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.activation_patching import DIRECTIONS
from gptviz.analysis.prompts import ABBA, BABA, Prompt, has_two, standard_error
from gptviz.both import Both
from gptviz.digits import plus_minus
from gptviz.ui.many.sets import NAMES, SET, TEMPLATE
from gptviz.ui.shell import target
from gptviz.ui.shell.bench import Question
from gptviz.ui.words import as_code, counted

NOISING = DIRECTIONS[1]
SURE = 3.0  # standard errors from zero
CLEAR = 2.0  # so many of them, and a difference of logits is a scale
ENOUGH = 10  # texts, from which on they tell something
NAMED = {ABBA: "the answer is named first", BABA: "the other name is"}

# of a prompt: its table, and the difference of logits, of a pair that of both texts
Measured = tuple[pd.DataFrame, tuple[float, ...]]


@dataclass(frozen=True)
class Found:
    """The texts that were read, what was measured of each in either model, and the group of each (`groups_of`)."""

    prompts: Sequence[Prompt]
    of_texts: Both[list[Measured]]
    groups: Sequence[int]

    @property
    def n(self) -> int:
        """How many texts there are."""
        return len(self.prompts)

    @cached_property
    def orders(self) -> list[str | None]:
        """The order of the two names of each text."""
        return [prompt.order for prompt in self.prompts]

    @cached_property
    def differences(self) -> NDArray[np.float64]:
        """The difference of logits of each text, and of pairs that of the corrupt one beside it: (n, 1 or 2)."""
        return np.array([own for _, own in self.of_texts.now])

    @property
    def logits(self) -> NDArray[np.float64]:
        """The difference of logits of each text, of pairs the clean one's: (n,)."""
        return self.differences[:, 0]

    @cached_property
    def independent(self) -> int:
        """How many numbers a standard error is of: two texts with their words exchanged are one."""
        return len(set(self.groups))

    @property
    def counted_as(self) -> str:
        """What a standard error counts."""
        if self.independent < self.n:
            return "exchanged pair"
        return "text"


def statistic(found: Found) -> str:
    """What the numbers of the sentence are, as it stands in their brackets."""
    over = ""
    if found.independent < found.n:
        over = f" over {counted(found.independent, found.counted_as)}"
        if 2 * found.independent > found.n:
            over += " and single texts"
    return f"mean ± standard error{over}, n = {found.n}"


def difference(found: Found) -> str:
    """A sentence about the logit difference that the means are of."""
    mean = plus_minus(found.logits.mean(), standard_error(found.logits, found.groups))
    return (
        f"The logit difference itself is {mean} on average, and above 0 in {(found.logits > 0).sum()} of "
        f"{counted(found.n, 'text')}."
    )


def certainty(found: Found, far: str) -> str:
    """A sentence with a blank before it, where texts are too few for a standard error; else `far`."""
    if found.independent >= ENOUGH:
        return far
    if found.independent > 1:
        few = f"fewer than {ENOUGH} {found.counted_as}s"
        return f" With {few}, the standard error is only a rough guess."
    return f" A single {found.counted_as} has no standard error."


def far_from_zero(mean: NDArray[np.float64], error: NDArray[np.float64]) -> str:
    """A sentence with a blank before it: how many of these means are not 0."""
    far = (np.abs(mean) > SURE * error).sum()
    return f" Means more than {SURE:.0f} standard errors away from 0: {far} of {len(mean)}."


def of_scale(found: Found) -> str:
    """A sentence or two with a blank before them: what shares are of, and where they say nothing."""
    clean, corrupt = found.differences.T  # (n,) each
    scale = clean - corrupt  # (n,)
    error = standard_error(scale, found.groups)
    told = f" Clean − corrupt is {plus_minus(scale.mean(), error)} logits."
    # a single text has no error
    of_all, of_clean = (np.nan_to_num(standard_error(one, found.groups)) for one in (scale, clean))
    if abs(scale.mean()) <= CLEAR * of_all:
        told += " **These shares say nothing:** that is not clearly different from 0."
    elif clean.mean() <= CLEAR * of_clean:
        told += " **These shares say nothing of a right answer:** the logit difference itself is not clearly above 0."
    return told


def by_order(found: Found, row: pd.Series, drawn: tuple[str, int]) -> str:
    """A sentence with a blank before it: a row's mean and the logit difference in either order of names.

    "" where the texts do not have both.
    """
    if not has_two(found.orders):
        return ""
    column, sign = drawn
    of_orders = []
    for order, first in NAMED.items():
        chosen = [one == order for one in found.orders]
        own = found.logits[chosen]
        mean = plus_minus(sign * row[f"{column}_{order}"], row[f"{column}_se_{order}"])
        error = standard_error(own, [*compress(found.groups, chosen)])
        itself = plus_minus(own.mean(), error)
        of_orders.append(
            f"**{mean}** where {first} ({order}, n = {len(own)}; logit difference {itself})"
        )
    return f" The two orders of names apart: {', '.join(of_orders)}."


def one_measure(explained: Question, direction: str, kind: str | None, of_sets: str) -> str:
    """What is measured of the page's two texts, in brackets, and whether they are as those of the set are."""
    words = [as_code(explained.shown), as_code(explained.against_shown or target.OF_ALL)]
    if direction != NOISING:  # the page's text is the corrupt one
        words.reverse()
    told = f"of {' − '.join(words)}, the clean text’s answer minus the corrupt one’s, as in the set"
    if SET.value in (NAMES, TEMPLATE) and kind != of_sets:
        told += "; but the other text above is of another kind"
    return f" ({told})"
