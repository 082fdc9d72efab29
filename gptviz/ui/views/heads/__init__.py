"""All heads of a run: what is measured of each, and a small picture of it. Attention and Overview show them.

Both come out of the pass itself, block by block: for 1,024 tokens of GPT-2 all attention weights are
576 MiB, and what is said and drawn of 144 heads is 5.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from gptviz import LanguageModel, Run
from gptviz.analysis import head_roles
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.config import GPTConfig
from gptviz.figures import head_grid
from gptviz.figures.theme import Mode
from gptviz.reduction import Reduction
from gptviz.trace import Token
from gptviz.ui import runs
from gptviz.ui.runs import per_run

WHOLE_MEGABYTES = 64  # attention weights of all blocks that are kept as they are: to 250 tokens of GPT-2


def small(attn: torch.Tensor) -> np.ndarray:
    """(H, T, T) -> (H, t, t): each head as its thumbnail needs it."""
    return head_grid.pool(attn.numpy())


SMALL = Reduction("small heads", "attn", small)


def scores_of(tokens: Iterable[Token]) -> Reduction:
    """The numbers behind the heads' roles on this text."""
    return Reduction("head scores", "attn", HeadScores.of(tuple(tokens)))


def fit_whole(config: GPTConfig, n_tokens: int) -> bool:
    """Whether all blocks' weights are few enough to be kept: another block is then shown without a pass."""
    return 4 * config.n_layers * config.n_heads * n_tokens**2 <= WHOLE_MEGABYTES * 2**20


@dataclass(frozen=True)
class Measured:
    """What is said of the heads: a role each, their mean writes and first token's shares, (n_layers, H)."""

    roles: list[list[HeadRole]]
    writes: torch.Tensor
    first: torch.Tensor


@per_run
def measured(run: Run) -> Measured:
    lm = runs.model(run)
    scores = _scores(lm, run)
    trace = runs.get(run, ("z",), (scores,))
    blocks = trace.reduced(scores.name)
    first = torch.stack([block[:, SHARES.index("first")] for block in blocks])  # (n_layers, H)
    roles = head_roles.roles_of(blocks, HeadScores.of(trace.tokens).targets)
    return Measured(roles, mean_writes(trace, lm.model), first)


@per_run
def thumbnails(run: Run, mode: Mode) -> tuple[bytes, int]:
    """One PNG of all heads without gaps, and how many pixels a head has across."""
    return head_grid.thumbnails(runs.get(run, (), (SMALL,)).reduced(SMALL.name), mode)


@per_run
def mosaic(run: Run, mode: Mode) -> bytes:
    """One PNG of all heads: rows are blocks, columns heads."""
    return head_grid.mosaic(runs.get(run, (), (SMALL,)).reduced(SMALL.name), mode)


def _scores(lm: LanguageModel, run: Run) -> Reduction:
    return scores_of(lm.tokens(run.ids))
