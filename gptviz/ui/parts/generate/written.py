"""What is written on one branch of a text, each token worked out once: all parts of the page share it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from gptviz import LanguageModel, Run
from gptviz.analysis.next_token import candidates
from gptviz.analysis.writing import WrittenStep, next_step
from gptviz.engine.generate import end_of_text
from gptviz.engine.sampling import Sampling
from gptviz.figures.candidates import Draw, draw_rows
from gptviz.tokenizer import named_bytes
from gptviz.ui import runs
from gptviz.ui.parts.generate.tree import LONGEST, Tree
from gptviz.ui.runs import per_run
from gptviz.ui.words import show_id

ROWS = 10  # candidates on the screen
PART = 16  # steps that are kept together

Put = tuple[tuple[int, int], ...]  # what a person put where: (step, id)


@dataclass(frozen=True)
class Written:
    """A text, the tokens that a branch wrote after it, and the one that is looked at.

    Holds names and numbers, never a trace or a model, and may be kept by sessions and fragments. Steps count
    from 0; `chosen` is one of them, or `len(steps)`: the token that is not written yet.
    """

    base: Run  # what was there before, at least one token, by the model that wrote
    steps: tuple[WrittenStep, ...]
    chosen: int
    sampling: Sampling  # with its seed
    context: int  # how many tokens the model reads at most
    branch: int = 0
    ended: bool = False  # nothing can follow: end of text, or a stop string

    def __post_init__(self) -> None:
        if not 0 <= self.chosen <= len(self.steps):
            raise ValueError(f"step {self.chosen} is not among 0 to {len(self.steps)}")

    @property
    def new(self) -> tuple[int, ...]:
        """The ids that were written, in order."""
        return tuple(step.id for step in self.steps)

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole text's ids; they may be more than the model reads at once."""
        return self.base.ids + self.new

    @property
    def step(self) -> WrittenStep | None:
        """The chosen step; None where it is not written yet."""
        if self.chosen < len(self.steps):
            return self.steps[self.chosen]
        return None

    @property
    def goes_on(self) -> bool:
        """True if another token can follow the chosen one: one that is written, or a new one."""
        return self.chosen + 1 < len(self.steps) or not (self.ended or len(self.steps) >= LONGEST)

    def slid(self, step: int) -> int:
        """The number of tokens at the start that no longer fitted into the context at this step."""
        return max(0, len(self.base) + step - self.context)

    def read(self, step: int) -> Run:
        """The run that the model read when it wrote this step, predicting at its last position.

        As the book does it: of a text longer than the context only the end, whose positions begin at 0 again.
        """
        return replace(self.base, ids=self.ids[self.slid(step) : len(self.base) + step])

    @property
    def run(self) -> Run:
        """The run that the model reads for the chosen step."""
        return self.read(self.chosen)


def log_probability(steps: Sequence[WrittenStep]) -> float:
    """The sum of the steps' ln p, by the model itself: 0 for no steps.

    Minus infinity if a token was put there that had probability 0.
    """
    return sum(step.ln for step in steps)


def perplexity(log_probability: float, tokens: int) -> float | None:
    """Return exp of the mean of minus ln p per token; None for no tokens, infinite if one had p = 0."""
    if not tokens:
        return None
    mean = -log_probability / tokens
    if mean < 700:
        return math.exp(mean)
    return math.inf


def text_of(lm: LanguageModel, ids: Sequence[int]) -> str:
    """Return the text of these tokens; a character that lacks some of its bytes is left out."""
    return b"".join(named_bytes(lm.tokenizer, i) for i in ids).decode("utf-8", "ignore")


def as_text(lm: LanguageModel, ids: Sequence[int], special: bool = False) -> str | list[int]:
    """Return the text that a model reads as these ids, for a program or a link; the ids if there is none."""
    text = lm.decode(ids, begin=False)
    if lm.encode(text, special_tokens=special) == list(ids):
        return text
    return list(ids)


# ---- token after token ----


@lru_cache(maxsize=64)
def points(seed: int) -> tuple[float, ...]:
    """Return the random numbers of a seed: the i-th draws the i-th token, on every branch."""
    return tuple(Sampling(seed=seed).points(LONGEST + 1))


def next_logits(run: Run) -> torch.Tensor:
    """Return the logits (V,) after the last token. Not cached: only results made of them are."""
    return runs.get(run, ("final",)).logits(-1)


@per_run
def step_after(run: Run, sampling: Sampling, number: int, put: int | None = None) -> WrittenStep:
    """Return the token that follows: drawn by the seed's number of this step, or the `put` one."""
    return next_step(next_logits(run), sampling, points(sampling.seed or 0)[number], put)


@dataclass(frozen=True)
class Steps:
    """A branch as far as it came: `ended` says that nothing can follow (end of text, a stop string)."""

    steps: tuple[WrittenStep, ...]
    ended: bool = False


@per_run
def steps_of(run: Run, sampling: Sampling, puts: Put, length: int, until: str) -> Steps:
    """Return the first `length` tokens after the text of `run`.

    They stop early after the model's own end of text, and when the text that was written has `until` in it.
    """
    lm = runs.model(run)
    forced_ids = dict(puts)
    # up to here it is kept for longer branches
    full = length - 1 - (length - 1) % PART if length else 0
    start = Steps(())
    if full:
        start = steps_of(run, sampling, tuple((n, i) for n, i in puts if n < full), full, until)
    if start.ended or not length:
        return start
    written_steps = list(start.steps)
    ids = [*run.ids, *(step.id for step in start.steps)]
    end = end_of_text(lm)
    text = b"".join(named_bytes(lm.tokenizer, step.id) for step in written_steps)
    for number in range(len(written_steps), length):
        reading = replace(run, ids=tuple(ids[-lm.config.context_length :]))
        step = step_after(reading, sampling, number, forced_ids.get(number))
        written_steps.append(step)
        ids.append(step.id)
        text += named_bytes(lm.tokenizer, step.id)
        if step.id == end or (until and until in text.decode("utf-8", "replace")):
            return Steps(tuple(written_steps), ended=True)
    return Steps(tuple(written_steps))


def growing(run: Run, sampling: Sampling, puts: Put, length: int, until: str) -> Iterator[Steps]:
    """Yield what is written after a text as it grows, part by part; each part is cached."""
    for so_far in (*range(PART, length, PART), length):
        grown = steps_of(run, sampling, tuple((n, i) for n, i in puts if n < so_far), so_far, until)
        yield grown
        if grown.ended:
            return


def written_on(run: Run, sampling: Sampling, tree: Tree, until: str) -> Written:
    """Return the branch on the screen."""
    branch = steps_of(
        run, sampling, tuple(sorted(tree.put(tree.branch).items())), tree.length, until
    )
    count = len(branch.steps)
    if branch.ended:
        chosen = min(tree.chosen(count), count - 1)
    else:
        chosen = tree.chosen(count)
    context = runs.model(run).config.context_length
    return Written(run, branch.steps, chosen, sampling, context, tree.branch, branch.ended)


@per_run
def drawing(run: Run, sampling: Sampling, standing: int | None, how: str) -> Draw:
    """The candidates that a token is drawn from; `standing` is the one in the text, or about to be.

    For a changed model also the unchanged one's probabilities after the same text, and its first choice.
    """
    lm = runs.model(run)
    always_shown = [] if standing is None else [standing]
    unchanged = None
    if run.edits:
        unchanged = candidates(next_logits(run.plain), 1, sampling)
        always_shown.append(int(unchanged.table["id"].iloc[0]))
    likeliest = candidates(next_logits(run), ROWS, sampling, always_shown)
    return draw_rows(likeliest, sampling, standing, how, lambda i: show_id(lm, i), unchanged)
