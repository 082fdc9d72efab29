"""What the Next token page works out once for a run: settings change none of it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from gptviz import Run
from gptviz.analysis.next_token import Candidates, Entropy, candidates, curve
from gptviz.engine.sampling import AS_IT_IS, Sampling
from gptviz.figures.candidates import candidate_rows
from gptviz.figures.surprise import surprise_rows
from gptviz.figures.theme import Mode
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.views.surprises import logits_at, prompt_surprises
from gptviz.ui.words import is_whole, show_id

ROWS = (10, 20, 50, 100)  # how many bars


@dataclass(frozen=True)
class Expected:
    """What the model, by itself, expects after a token, and what it gave the one that came.

    `came`, its probability and its rank from 1, is None after the last token.
    """

    id: int
    probability: float
    entropy: Entropy
    came: tuple[float, int] | None


@per_run
def expected(run: Run, position: int, other: Run | None = None) -> Expected:
    came = came_at(run, position)
    found = chosen(run, position, AS_IT_IS, ROWS[0], other)  # what the bars show, until a setting changes
    best, row = found.table.iloc[0], found.table[found.table["id"] == came]
    return Expected(
        id=int(best["id"]),
        probability=float(best["model_probability"]),
        entropy=found.model_entropy,
        came=None if came is None else (float(row["model_probability"].iloc[0]), int(row["rank"].iloc[0])),
    )


def own_probability(run: Run, position: int, token: int) -> float:
    """What the model, by itself, gives a token."""
    return float(torch.softmax(logits_at(run, position).double(), dim=0)[token])


@per_run
def surprise_drawn(
    run: Run, mode: Mode, other: Run | None = None
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The surprises as chips, and their legend."""
    lm = runs.model(run)
    shown = [show_token(token.raw) for token in lm.tokens(run.ids)]
    unchanged = None if other is None else prompt_surprises(other)
    return surprise_rows(prompt_surprises(run), shown, lm.config.vocab_size, mode, unchanged=unchanged)


def came_at(run: Run, position: int) -> int | None:
    """The token that follows in the prompt."""
    return run.ids[position + 1] if position + 1 < len(run.ids) else None


@per_run
def chosen(run: Run, position: int, sampling: Sampling, count: int, other: Run | None = None) -> Candidates:
    """The bars' numbers: the first `count`, the token that came, and the one that `other` has on top."""
    came = came_at(run, position)
    also = [] if came is None else [came]
    if other is not None:
        also.append(expected(other, position).id)
    return candidates(logits_at(run, position), count, sampling, also)


@per_run
def bar_rows(
    run: Run, position: int, sampling: Sampling, count: int, other: Run | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The bars as they are drawn, and what stands for all other tokens; `other` has the ghosts."""
    lm, found = runs.model(run), chosen(run, position, sampling, count, other)
    return candidate_rows(
        found,
        sampling,
        lambda i: show_id(lm, i),
        lambda i: is_whole(lm, i),
        came_at(run, position),
        None if other is None else chosen(other, position, sampling, count),
    )


@per_run
def vocabulary(
    run: Run, position: int, sampling: Sampling, count: int, other: Run | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The whole vocabulary in falling order, and the names of the tokens that stand for it."""
    lm, found = runs.model(run), chosen(run, position, sampling, count, other)
    line = curve(logits_at(run, position), found)
    return line, [show_id(lm, i) for i in line["id"]]
