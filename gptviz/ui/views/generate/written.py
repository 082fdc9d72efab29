"""What has been written so far on one branch: the value that the Generate page and its panels share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gptviz import Edit, Run
from gptviz.engine.sampling import Sampling


@dataclass(frozen=True)
class WrittenStep:
    """One token that was written, or was put there by a person (`forced`).

    A `point` is the number in [0, 1) that drew it, None where nothing was drawn: at temperature 0, and
    where a person chose. `probability` is the one it was drawn with, 0 for a forced one that the filters cut.
    """

    id: int
    probability: float  # after temperature and filters
    model_probability: float  # the model's own: temperature 1, nothing filtered
    rank: int  # of its logit, from 1
    point: float | None
    forced: bool = False


@dataclass(frozen=True)
class Written:
    """A text, the tokens that a branch wrote after it, and the one that is looked at.

    Holds names and numbers, never a trace or a model, and may be kept by sessions and fragments. Steps count
    from 0; `chosen` is one of them, or `len(steps)`: the token that is not written yet.
    """

    model: str  # the key of the model, as in a Run
    prompt: tuple[int, ...]  # ids of what was there before, at least one
    steps: tuple[WrittenStep, ...]
    chosen: int
    sampling: Sampling  # with its seed
    context: int  # how many tokens the model reads at most
    branch: int = 0
    edits: tuple[Edit, ...] = ()  # made in every pass that wrote: the changed model's

    def __post_init__(self) -> None:
        if not self.prompt:
            raise ValueError("nothing can be written after no token: prompt is empty")
        if not 0 <= self.chosen <= len(self.steps):
            raise ValueError(f"step {self.chosen} is not among 0 to {len(self.steps)}")

    @property
    def new(self) -> tuple[int, ...]:
        """The ids that were written, in order."""
        return tuple(step.id for step in self.steps)

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole text's ids; they may be more than the model reads at once."""
        return self.prompt + self.new

    @property
    def step(self) -> WrittenStep | None:
        """The chosen step; None where it is not written yet."""
        return self.steps[self.chosen] if self.chosen < len(self.steps) else None

    def slid(self, step: int) -> int:
        """How many of the first tokens the model no longer saw when it wrote this: the context was full."""
        return max(0, len(self.prompt) + step - self.context)

    def read(self, step: int) -> Run:
        """What the model read when it wrote this step: its last position is where the token was expected.

        As the book does it: of a text longer than the context only the end, whose positions begin at 0 again.
        """
        return Run(self.model, (self.prompt + self.new[:step])[self.slid(step) :], self.edits)

    @property
    def run(self) -> Run:
        """What the model reads for the chosen step."""
        return self.read(self.chosen)

    @property
    def log_probability(self) -> float:
        """ln of what the model itself gave all that was written: the sum over the steps; 0 for nothing.

        Minus infinity once a token was put there to which the model gave nothing at all.
        """
        return log_probability(self.steps)

    @property
    def perplexity(self) -> float | None:
        """Among how many equally likely tokens the model chose at each step, on average; None for no step."""
        return perplexity(self.log_probability, len(self.steps))


def log_probability(steps: Sequence[WrittenStep]) -> float:
    """ln of what the model itself gave all of these together."""
    return sum(_ln(step.model_probability) for step in steps)


def perplexity(log_probability: float, tokens: int) -> float | None:
    """e to minus the mean of the tokens' ln; None for no tokens, infinite where one had no probability."""
    if not tokens:
        return None
    mean = -log_probability / tokens
    return math.exp(mean) if mean < 700 else math.inf


def _ln(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
