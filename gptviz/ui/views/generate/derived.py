"""What the Generate page works out once for a run: each token that is written, and what it was drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from gptviz import Run
from gptviz.analysis.next_token import candidates
from gptviz.engine.beams import Round, search
from gptviz.engine.generate import end_of_text
from gptviz.engine.sampling import Sampling, distribution, draw
from gptviz.figures.draws import Draw, draw_rows
from gptviz.tokenizer import named_bytes
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.views.generate.tree import LONGEST, Tree
from gptviz.ui.views.generate.written import Written, WrittenStep
from gptviz.ui.views.surprises import prompt_surprises
from gptviz.ui.words import show_id

ROWS = 10  # candidates on the screen
PART = 16  # steps that are kept together

Put = tuple[tuple[int, int], ...]  # what a person put where: (step, id)


@lru_cache(maxsize=64)
def points(seed: int) -> tuple[float, ...]:
    """The numbers that draw: the i-th one draws the i-th token, on every branch."""
    return tuple(Sampling(seed=seed).points(LONGEST + 1))


def next_logits(run: Run) -> torch.Tensor:
    """(V,): after the last token. Not kept: what is made of it is."""
    return runs.get(run, ("final",)).logits(-1)


@per_run
def step_after(run: Run, sampling: Sampling, number: int, put: int | None = None) -> WrittenStep:
    """The token that follows: drawn by the seed's number of this step, or `put` there by a person."""
    logits = next_logits(run)
    chances = distribution(logits, sampling)
    point = None if put is not None or sampling.greedy else points(sampling.seed or 0)[number]
    chosen = draw(chances, 0.0 if point is None else point) if put is None else put
    probability = float(chances.probabilities[chosen])
    own = probability if sampling.changes_nothing else float(logits.double().softmax(0)[chosen])
    return WrittenStep(chosen, probability, own, int(chances.rank[chosen]) + 1, point, put is not None)


@dataclass(frozen=True)
class Steps:
    """A branch as far as it came: `ended` says that nothing can follow (end of text, a stop string)."""

    steps: tuple[WrittenStep, ...]
    ended: bool = False


@per_run
def steps_of(run: Run, sampling: Sampling, puts: Put, length: int, until: str) -> Steps:
    """The first `length` tokens after the text of `run`.

    They stop early after the model's own end of text, and when the text that was written has `until` in it.
    """
    lm, there = runs.model(run), dict(puts)
    whole = length - 1 - (length - 1) % PART if length else 0  # up to here it is kept for longer branches
    start = Steps(())
    if whole:
        start = steps_of(run, sampling, tuple((at, i) for at, i in puts if at < whole), whole, until)
    if start.ended or not length:
        return start
    found, ids = list(start.steps), [*run.ids, *(step.id for step in start.steps)]
    end = end_of_text(lm)
    text = b"".join(named_bytes(lm.tokenizer, step.id) for step in found)
    for number in range(len(found), length):
        reads = replace(run, ids=tuple(ids[-lm.config.context_length :]))
        step = step_after(reads, sampling, number, there.get(number))
        found.append(step)
        ids.append(step.id)
        text += named_bytes(lm.tokenizer, step.id)
        if step.id == end or (until and until in text.decode("utf-8", "replace")):
            return Steps(tuple(found), ended=True)
    return Steps(tuple(found))


def branch_steps(run: Run, sampling: Sampling, tree: Tree, branch: int, until: str) -> Steps:
    """The steps of one branch of a tree."""
    put = tuple(sorted(tree.put(branch).items()))
    return steps_of(run, sampling, put, tree.branches[branch].length, until)


def written_on(run: Run, sampling: Sampling, tree: Tree, until: str) -> tuple[Written, bool]:
    """The branch on the screen, and whether it has ended."""
    found = branch_steps(run, sampling, tree, tree.branch, until)
    context = runs.model(run).config.context_length
    chosen = tree.chosen(len(found.steps))
    if found.ended:
        chosen = min(chosen, len(found.steps) - 1)
    written = Written(run.model, run.ids, found.steps, chosen, sampling, context, tree.branch, run.edits)
    return written, found.ended


@per_run
def drawing(run: Run, sampling: Sampling, standing: int | None, how: str) -> Draw:
    """What a token is drawn from; `standing` is the one that stands in the text, or would.

    Of a changed model with what the unchanged one has there, after the same text, and its first choice.
    """
    lm = runs.model(run)
    also, unchanged = [] if standing is None else [standing], None
    if run.edits:
        unchanged = candidates(next_logits(run.plain), 1, sampling)
        also.append(int(unchanged.table["id"].iloc[0]))
    found = candidates(next_logits(run), ROWS, sampling, also)
    return draw_rows(found, sampling, standing, how, lambda i: show_id(lm, i), unchanged)


def given_to(run: Run, sampling: Sampling, token: int) -> tuple[float, int]:
    """A token's probability as it is drawn from, and its rank from 1."""
    chances = distribution(next_logits(run), sampling)
    return float(chances.probabilities[token]), int(chances.rank[token]) + 1


@per_run
def given_in_all(run: Run, count: int) -> float:
    """ln of what the run gives the last `count` tokens of its text, each after those before it."""
    return -float(prompt_surprises(run)["nats"].iloc[len(run) - count :].sum())


def stretch(run: Run, sampling: Sampling, token: int) -> tuple[float, float]:
    """Where a token lies on the bar of all probabilities, from the most probable down: its start and end."""
    chances = distribution(next_logits(run), sampling)
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)  # (V,)
    place = int(chances.rank[token])
    return float(bar[place - 1]) if place else 0.0, float(bar[place])


@per_run
def beam_rounds(run: Run, beams: int, tokens: int) -> list[Round]:
    """Beam search after the text of `run`."""
    lm = runs.model(run)
    context = lm.config.context_length

    def read(texts: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.stack([next_logits(replace(run, ids=tuple(ids[-context:]))) for ids in texts])

    return search(read, run.ids, beams, tokens, end_of_text(lm))


@per_run
def beams_unchanged(run: Run, beams: int, tokens: int) -> dict[tuple[int, ...], float]:
    """ln of what the unchanged model gives each beam of `beam_rounds`, kept or dropped, by its ids."""
    context = runs.model(run).config.context_length
    found: dict[tuple[int, ...], float] = {(): 0.0}
    rows: dict[tuple[int, ...], torch.Tensor] = {}  # (V,) each: ln p of all tokens after so much of a beam
    for one in beam_rounds(run, beams, tokens):
        for beam in (*one.kept, *one.dropped):
            *start, last = beam.ids
            before = tuple(start)
            if before not in rows:
                after = replace(run.plain, ids=(*run.ids, *before)[-context:])
                rows[before] = next_logits(after).double().log_softmax(0)
            found[beam.ids] = found[before] + float(rows[before][last])
    return found
