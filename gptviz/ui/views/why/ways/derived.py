"""What the panels on paths, flow and agreement work out once for a run, a position and a word."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch

from gptviz import Run, Trace
from gptviz.analysis import agreement, flow
from gptviz.analysis import paths as path_numbers
from gptviz.analysis.flow import ContributionGraph, contribution_graph, token_flow
from gptviz.analysis.logit_attribution import read_at
from gptviz.analysis.muting import muted
from gptviz.analysis.paths import Paths
from gptviz.analysis.rollout import MEANS, rollout
from gptviz.engine.reduction import Reduction
from gptviz.ui import runs
from gptviz.ui.heads import fit_whole
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell.slow import is_asked_for

AT_A_TIME = 4  # tokens that are muted between two looks at whether somebody clicked


def kept(run: Run, sites: tuple[str, ...]) -> tuple[str, ...]:
    """These sites, and all attention where that is little or an edit may have changed it."""
    whole = run.edits or fit_whole(runs.model(run).config, len(run.ids))
    return (*sites, "attn") if whole else sites


@per_run
def paths(run: Run, position: int, token: int, against: int | None) -> Paths:
    trace = runs.get(run, kept(run, path_numbers.SITES))
    return path_numbers.paths(trace, runs.model(run).model, token, against, position)


@per_run
def graph(run: Run, position: int, threshold: float, renormalize: bool) -> ContributionGraph:
    return contribution_graph(_flow_trace(run), runs.model(run).model, position, threshold, renormalize)


@dataclass(frozen=True)
class FlowShares:
    """What a token's stream draws from where, (L + 1, n), and how much of it was followed exactly."""

    rows: torch.Tensor
    followed: float


@per_run
def contributions(run: Run, position: int) -> FlowShares:
    return FlowShares(*token_flow(_flow_trace(run), runs.model(run).model, position))


@per_run
def rolled(run: Run, position: int) -> FlowShares:
    return FlowShares(rollout(_means_trace(run), position), 1.0)


@per_run
def measures(run: Run, position: int, token: int, against: int | None) -> pd.DataFrame:
    """All earlier tokens by the four ways that need no further pass."""
    trace = runs.get(run, *_all_needs(run, position))
    return agreement.measures(trace, runs.model(run).model, token, against, position)


@per_run
def losses(
    run: Run, position: int, token: int, against: int | None, places: tuple[int, ...]
) -> tuple[tuple[int, float], ...]:
    """What the word loses with each of these tokens muted: a real pass each."""
    return tuple(muted(runs.model(run), run.ids, places, token, against, position))


def muting(
    run: Run, position: int, token: int, against: int | None, places: list[int]
) -> Iterator[list[tuple[int, float]]]:
    """The losses of all these, a few at a time where that takes long: each few are kept as they are done."""
    slow = is_asked_for(runs.model(run), position + 1, len(places))
    few = AT_A_TIME if slow else max(1, len(places))
    for start in range(0, len(places), few):
        yield list(losses(run, position, token, against, tuple(places[start : start + few])))


def _flow_trace(run: Run) -> Trace:
    return runs.get(run, kept(run, flow.SITES))


def _means_trace(run: Run) -> Trace:
    if run.edits or fit_whole(runs.model(run).config, len(run.ids)):
        return runs.get(run, ("attn",))
    return runs.get(run, (), (MEANS,))


def _all_needs(run: Run, position: int) -> tuple[Keep, tuple[Reduction, ...]]:
    sites = kept(run, (*flow.SITES, "z"))
    return sites, () if "attn" in sites else (MEANS, read_at(position))
