"""Why attention divides by the square root of d: the variance of q · k, and what softmax makes of it.

Vaswani et al., Attention Is All You Need, 2017, section 3.2.1. Shapes: n queries, T keys each, d numbers.
"""

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.attention import of_heads
from gptviz.analysis.reads import reads
from gptviz.engine.architecture import architecture_of
from gptviz.engine.copies import worked_out_once
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

Floats = NDArray[np.float64]

SIZES = tuple(2**power for power in range(11))  # of d, 1 to 1,024
QUERIES = 512
KEYS = 8
SEED = 123

# The slide's scores, whose softmax it prints as they are, and times 10.
SLIDE = (0.1, -0.2, -0.3, 0.2, 0.5)
# One try that a seed prints for d = 16: the variance of q · k, and of q · k / sqrt(16).
PRINTED = (16, 13.188318252563477, 0.8242698907852173)


@worked_out_once(maxsize=2)
@undisturbed
def scores(queries: int = QUERIES, keys: int = KEYS, seed: int = SEED) -> dict[int, Floats]:
    """q · k of normal random numbers for each d of `SIZES`: (n, T) each, nothing divided.

    Every q and every k is one row of 1,024 numbers, of which a smaller d takes the first: what differs from
    one d to the next is how many are added up, and not which were drawn.
    """
    draw = torch.Generator().manual_seed(seed)
    q = torch.randn(queries, SIZES[-1], generator=draw).double()
    k = torch.randn(queries, keys, SIZES[-1], generator=draw).double()
    sums = (q[:, None] * k).cumsum(-1)  # (n, T, 1,024): entry d - 1 adds up the first d
    return {d: sums[..., d - 1].numpy().copy() for d in SIZES}


def gradient_left(weights: Floats) -> Floats:
    """The sum of each weight's derivative by its own score, 1 for even weights: (..., T) -> (...).

    The Jacobian w_i (1[i = j] - w_j) has w (1 - w) as its diagonal: here as a share of the most there can be,
    which even weights have; towards 0 where one weight is 1. ValueError for a single key, always at 1.
    """
    count = weights.shape[-1]
    if count < 2:
        raise ValueError(
            "a softmax over one key always gives it 1: there is no gradient to measure"
        )
    return (weights * (1 - weights)).sum(-1) / (1 - 1 / count)


@worked_out_once(maxsize=2)
@undisturbed
def by_size(queries: int = QUERIES, keys: int = KEYS, seed: int = SEED) -> pd.DataFrame:
    """A row for each d of `SIZES`, over all queries: d, then of the scores as they are and divided by sqrt(d)

    variance, largest (the mean of each row's largest weight), keys (e to the entropy: among how many keys
    the attention is spread), gradient (see `gradient_left`); the divided ones end in "_scaled".
    """
    rows = []
    for d, raw in scores(queries, keys, seed).items():
        row: dict[str, float] = {"d": d}
        for ending, values in (("", raw), ("_scaled", raw / np.sqrt(d))):
            weights = torch.from_numpy(values).softmax(-1)
            row[f"variance{ending}"] = float(values.var())
            row[f"largest{ending}"] = float(weights.amax(-1).mean())
            row[f"keys{ending}"] = float(torch.special.entr(weights).sum(-1).exp().mean())
            row[f"gradient{ending}"] = float(gradient_left(weights.numpy()).mean())
        rows.append(row)
    return pd.DataFrame(rows)


@undisturbed
def sharpened(factor: float) -> torch.Tensor:
    """The slide's softmax with every score times `factor`, (5,): at 1 and at 10 the slide prints it."""
    return torch.softmax(torch.tensor(SLIDE) * factor, dim=-1)


@undisturbed
def undivided(q: torch.Tensor, k: torch.Tensor) -> pd.DataFrame:
    """A table of the attention that a model's own heads would have without the division by sqrt(d).

    q, k (H, T, d) of one block.

    A row a head, over all pairs that the causal mask allows: head, variance and variance_scaled of the
    scores, largest_scaled (the mean of each query's largest weight, as the model has it) and largest (without
    the division). Queries with one key only are left out of the last two; NaN where there are no others.
    """
    scores = q.double() @ k.double().transpose(-2, -1)  # (H, T, T)
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    columns: dict[str, Floats] = {}
    for ending, values in (("", scores), ("_scaled", scores / q.shape[-1] ** 0.5)):
        weights = values.masked_fill(~seen, -torch.inf).softmax(-1)
        columns[f"variance{ending}"] = values[:, seen].var(-1, correction=0).numpy()
        columns[f"largest{ending}"] = weights[:, 1:].amax(-1).mean(-1).numpy()  # NaN of no queries
    return pd.DataFrame(columns).rename_axis("head").reset_index()


@reads(lambda lm, block: tuple((site, block) for site in architecture_of(lm.config).scores))
def own_heads(lm: LanguageModel, t: Trace, block: int) -> pd.DataFrame:
    """One block's own heads with and without the division: see `undivided`."""
    return undivided(*(of_heads(t, site, block) for site in architecture_of(lm.config).scores))
