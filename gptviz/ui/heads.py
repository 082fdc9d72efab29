"""All heads of a run: what is measured of each, and a small picture of it. Several pages show them.

Both are made during the pass, block by block: for 1,024 tokens of GPT-2 all attention weights are 576 MiB,
and the numbers and pictures of 144 heads are 5 MiB.

What heads do in general, and whether a label holds, is worked out in the background. For the
bundled model the results ship with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch

from gptviz import Edit, Run
from gptviz.analysis import head_roles
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_formulas import ON_REPEATS, ROLES, SHARES
from gptviz.analysis.head_general import General, general, known_general
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.analysis.head_trial import BASELINES, TESTABLE, Claim, Trial, known_trials, trial
from gptviz.analysis.moved import Rows, compared_rows, total_variation
from gptviz.digits import plus_minus, weight
from gptviz.engine.kinds import Config, Model
from gptviz.engine.reduction import Reduction
from gptviz.engine.tokens import Token
from gptviz.figures import head_grid
from gptviz.figures.theme import Mode
from gptviz.jobs import Job
from gptviz.models.loading import BUNDLED
from gptviz.ui import jobs, runs
from gptviz.ui.runs import per_run
from gptviz.ui.words import counted

# what tables call a role where the screen has a plainer word
CALLED = ", ".join(
    f"`{role.name}` is *{role.label}*" for role in ROLES.values() if role.name != role.label
)
# of columns that count duplicates, beside `copies_top5`, which is what a head writes
HEADINGS = {
    "copies": "duplicate (copies)",
    "to_copies": "to duplicate (to_copies)",
    "copies_sample": "duplicate, sample (copies_sample)",
}


def small(attn: torch.Tensor) -> np.ndarray:
    """(H, T, T) -> (H, t, t): each head as its thumbnail needs it."""
    return head_grid.pool(attn.numpy())


SMALL = Reduction("small heads", "attn", small)


def scores_of(tokens: Iterable[Token]) -> Reduction:
    """The numbers behind the heads' roles on this text."""
    return Reduction("head scores", "attn", HeadScores.of(tuple(tokens)))


@dataclass(frozen=True)
class Measured:
    """Each head's role, and the mean writes and first token's shares of all heads, (n_layers, H)."""

    roles: list[list[HeadRole]]
    writes: torch.Tensor
    first: torch.Tensor


@per_run
def measured(run: Run) -> Measured:
    lm = runs.model(run)
    scores = scores_of(lm.tokens(run.ids))
    trace = runs.get(run, ("z",), (scores,))
    blocks = trace.reduced(scores)
    # (n_layers, H)
    first_shares = torch.stack([block[:, SHARES.index("first")] for block in blocks])
    roles = head_roles.roles_of(blocks, HeadScores.of(trace.tokens).targets)
    return Measured(roles, mean_writes(trace, lm.model), first_shares)


def looks(run: Run) -> list[list[str]]:
    """Name where each head looks on this text: its role's label, a row a block."""
    return [[ROLES[role.kind].label for role in row] for row in measured(run).roles]


@per_run
def previous_shares(run: Run) -> np.ndarray:
    """(n_layers, H): what each head gives the token just before, on average; 0 where there is none."""
    scores = scores_of(runs.model(run).tokens(run.ids))
    blocks = runs.get(run, (), (scores,)).reduced(scores)
    return np.nan_to_num(np.stack([block[:, SHARES.index("previous")].numpy() for block in blocks]))


@per_run
def role_table(run: Run) -> pd.DataFrame:
    """A row a head: its label on this text, and all numbers behind it."""
    heads = measured(run)
    return head_roles.role_table(heads.roles, heads.writes)


@per_run
def thumbnails(run: Run, mode: Mode) -> tuple[bytes, int]:
    """One PNG of all heads without gaps, and how many pixels a head has across."""
    return head_grid.thumbnails(runs.get(run, (), (SMALL,)).reduced(SMALL), mode)


def rows_to_compare(config: Config, n_tokens: int) -> Reduction:
    """The rows of all heads that are compared where something is changed in the model."""
    queries = compared_rows(n_tokens, config.n_layers * config.n_heads)
    return Reduction("compared rows", "attn", Rows(queries))


@per_run
def moved(run: Run) -> torch.Tensor:
    """The distance of each head's pattern from the unchanged model's, (n_layers, H).

    It is the mean total variation of the rows that are compared.
    """
    reduction = rows_to_compare(runs.model(run).config, len(run))
    before, after = (
        torch.stack(runs.get(side, (), (reduction,)).reduced(reduction))
        for side in (run.plain, run)
    )  # (n_layers, H, R, T)
    rows = total_variation(before, after)  # (n_layers, H, R)
    if rows.shape[-1]:
        return rows.mean(dim=-1)
    return torch.zeros(rows.shape[:-1])


class Mark(TypedDict):
    """The mark of a head in a changed model: how far its pattern moved, from 0 to 1 (tinted), and whether
    the head itself is changed (hatched)."""

    moved: float
    changed: bool


@per_run
def marks(run: Run) -> list[list[Mark]]:
    """Return the marks of every head of a run with edits, a row a block."""
    return [
        [
            {"moved": distance, "changed": bool(changed_in(run, b, h))}
            for h, distance in enumerate(row)
        ]
        for b, row in enumerate(moved(run).tolist())
    ]


def marks_table(run: Run) -> pd.DataFrame:
    """The marks, a row a head: block, head, moved, changed."""
    rows = [
        {"block": b, "head": h, **mark}
        for b, row in enumerate(marks(run))
        for h, mark in enumerate(row)
    ]
    return pd.DataFrame(rows)


@per_run
def marks_say(run: Run) -> str:
    """The caption below the heads: what the marks mean, and which head's pattern moved the most."""
    distances = moved(run)
    block, head = divmod(int(distances.argmax()), distances.shape[1])
    changed = sum(mark["changed"] for row in marks(run) for mark in row)
    hatched = ""
    if changed:
        hatched = f"Hatched: {counted(changed, 'changed head')}. "
    largest = distances.max().item()
    if largest <= 0:
        return f"{hatched}No head's pattern moved."
    rows = len(compared_rows(len(run), distances.numel()))
    all_rows = len(run) - 1
    if rows == all_rows:
        rows_note = ""
    else:
        rows_note = f" (measured on {rows:,} of {all_rows:,} rows)"
    return (
        f"{hatched}Tinted: the pattern moved; the stronger the tint, the more{rows_note}. Block {block}, "
        f"head {head} moved most ({weight(largest)})."
    )


SCALED = "A change scales its weights, so its rows may no longer sum to 1, and shares not to 100 %."


def scaled(run: Run, block: int, head: int) -> bool:
    """True if a change scales a head's attention weights, or sets them to 0.

    Its rows need not sum to 1 then.
    """
    names = (
        edit.named and edit.named.name
        for edit in changed_in(run, block, head)
        if edit.site == "attn"
    )
    return any(name in ("zero", "x") for name in names)


def changed_in(run: Run, block: int, head: int) -> tuple[Edit, ...]:
    """The run's edits of this head's own numbers: its queries, keys, values, pattern or output."""
    config = runs.model(run).config
    return tuple(edit for edit in run.edits if edit.is_of_head(block, head, config))


# ---- worked out in the background: once for all sessions, and kept on disk ----


def general_job(run: Run) -> Job[General]:
    """The job that finds what all heads of a run's model do in general, started if there is none.

    The run's text does not matter, its edits do.
    """
    return jobs.ask(run, general, known=_at_once(run)[0])


def trial_job(run: Run, block: int, head: int, label: str) -> Job[Trial]:
    """The job that tries whether a label of a head holds, started if there is none.

    What all heads do in general is worked out first, if not known.
    """
    return jobs.ask(
        run, trial, block, head, label, known=_at_once(run)[1].get((block, head, label))
    )


def known_trials_of(run: Run, claims: Iterable[Claim]) -> dict[tuple[int, int], Trial]:
    """The trials of these labels that were held and are remembered, or ship: by block and head."""
    shipped = _at_once(run)[1]
    trials = {}
    for claim in claims:
        job = jobs.find(run, trial, *claim)
        if job is None:
            result = shipped.get(claim)
        else:
            result = job.result
        if result is not None:
            trials[claim[:2]] = result
    return trials


Known = tuple[General | None, Mapping[Claim, Trial]]
_known: WeakKeyDictionary[Model, Known] = WeakKeyDictionary()


def _at_once(run: Run) -> Known:
    """What ships with the unchanged bundled model: its heads in general, and their trials.

    Looked up once, by its weights' hash; of any other model there are none.
    """
    lm = runs.model(run)
    if lm.name not in BUNDLED or lm.edits:
        return None, {}
    if lm.model not in _known:
        _known[lm.model] = known_general(lm), known_trials(lm)
    return _known[lm.model]


def cost_without(trial: Trial) -> str:
    """How much more a token costs the model without the head on trial, as a sentence goes on."""
    zero, mean = (trial.own.loc[baseline] for baseline in BASELINES)
    name = trial.missed_by
    with_zero = plus_minus(zero[name], zero[f"{name}_se"])
    with_mean = plus_minus(mean[name], mean[f"{name}_se"])
    where = ""
    if trial.label in ON_REPEATS:
        where = " more on repeats than elsewhere"
    return (
        f"setting its output to 0 costs {with_zero} nats per token{where}; "
        f"setting it to its mean costs {with_mean}"
    )


def withdrawn(run: Run) -> dict[tuple[int, int], Trial]:
    """The trials of the labels on this text that are known to have been withdrawn, by block and head."""
    roles = [role for row in measured(run).roles for role in row if role.kind in TESTABLE]
    tried = known_trials_of(run.plain, [(role.block, role.head, role.kind) for role in roles])
    return {head: trial for head, trial in tried.items() if trial.verdict == "withdrawn"}
