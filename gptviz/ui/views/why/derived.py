"""What the page "Why this token?" works out once for a run, a position and its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz import LanguageModel, Run, Trace
from gptviz.analysis import attribution, source_tokens
from gptviz.analysis import shares as numbers
from gptviz.analysis.logit_attribution import read_at, reader, sites, value_bias
from gptviz.analysis.shares import Group
from gptviz.engine.config import GPTConfig
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token
from gptviz.ui import runs
from gptviz.ui.heads import fit_whole
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell.state import TOKEN
from gptviz.ui.shell.target import whole


def needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """What the page reads of a pass: all attention where that is little, else one row of it a head."""
    position = len(tokens) - 1 if TOKEN.value is None else TOKEN.value
    return kept(lm.config, len(tokens), position)


def kept(config: GPTConfig, n_tokens: int, position: int) -> tuple[Keep, tuple[Reduction, ...]]:
    whole = fit_whole(config, n_tokens)
    return (
        (*sites(config), "v", *(["attn"] if whole else [])),
        () if whole else (read_at(position),),
    )


def trace_of(run: Run, position: int) -> Trace:
    return runs.get(run, *kept(runs.model(run).config, len(run.ids), position))


@dataclass(frozen=True)
class Shares:
    """A difference of logits as a sum: `table` is `attribution`'s, `logit` the model's own."""

    table: pd.DataFrame
    total: float
    logit: float
    groups: list[Group]
    steps: pd.DataFrame  # of the waterfall
    grid: NDArray[np.float64]  # (L, C), and what its columns are
    columns: list[str]
    strongest: tuple[int, int]
    spread: float  # what the final LayerNorm divides by at this position


@per_run
def shares(run: Run, position: int, token: int, against: int | None) -> Shares:
    model, trace = runs.model(run).model, trace_of(run, position)
    table = attribution(trace, model, token, against, position)
    grid, columns = numbers.grid(table, trace.config.n_layers, trace.config.n_heads)
    return Shares(
        table,
        total=float(table["contribution"].sum()),
        logit=whole(run, position, token, against)[0],
        groups=numbers.groups(table),
        steps=numbers.waterfall(table),
        grid=grid,
        columns=columns,
        strongest=numbers.strongest_head(table),
        spread=reader(trace, model, token, against, position).spread,
    )


@dataclass(frozen=True)
class Sources:
    """What each token gave through each head, (L, H, T), and what a head writes wherever it looks, (L, H)."""

    given: NDArray[np.float64]
    bias: NDArray[np.float64]


@per_run
def sources(run: Run, position: int, token: int, against: int | None) -> Sources:
    model, trace = runs.model(run).model, trace_of(run, position)
    given = source_tokens(trace, model, token, against, position)
    return Sources(given.numpy(), value_bias(trace, model, token, against, position).numpy())


@per_run
def attention_row(run: Run, position: int, block: int) -> NDArray[np.float32]:
    """(H, T): where the heads of a block look from a position."""
    trace = trace_of(run, position)
    if trace.holds([("attn", block)]):
        return trace["attn", block][:, position].numpy().copy()  # a view would hold on to the whole trace
    row: NDArray[np.float32] = trace.reduced(read_at(position).name)[block].numpy()
    return row
