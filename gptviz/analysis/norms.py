"""LayerNorm, taken apart: what goes in, what is normalised, what scale and shift make of it.

Shapes: T tokens, D emb_dim, N = 2 * n_layers + 1 norms (two a block, and the final one). Every function
works in float64 on the captured float32 values, so that "mean 0" shows as 0; a test holds the last stage
equal to the module's own float32 output.

Ba et al., Layer Normalization, 2016; the book's section 4.2.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.reads import reads
from gptviz.digits import significant, term
from gptviz.engine.index import below, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.layer_norms import Norm, norms_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import GPTModel, LayerNorm

Vector = NDArray[np.float64]  # (D,)
Grid = NDArray[np.float32]  # (N, T)

QUANTITIES = ("variance", "mean")
STAGES = ("before", "normalised", "scaled", "after")
"""x; (x - mean) / sqrt(variance + eps); times scale; plus shift."""


SITES = ("resid_pre", "resid_mid", "resid_post")


@reads(*SITES)
def norm_grids(lm: LanguageModel, t: Trace, quantity: str) -> tuple[Grid, Grid]:
    """The variance (biased) or the mean of every token's values before and after every norm: (N, T) each."""
    statistics = t.norm_statistics()
    return statistics.grid(one_of("quantity", quantity, QUANTITIES)), statistics.grid(f"{quantity}_after")


@reads(*SITES)
def norm_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """`Trace.norms()`: a row for each norm and token."""
    return t.norms()


@reads(*SITES)
def inside(lm: LanguageModel, t: Trace, name: str, position: int) -> "Steps":
    """What the norm `name` ("block 3 · norm1", "final") does to one token, step by step.

    ValueError if there is no such norm.
    """
    norm = find_norm(lm.model, name)
    return norm_steps(norm, norm_input(t, norm)[position])


def find_norm(model: GPTModel, name: str) -> Norm:
    """The model's LayerNorm of that name, with its weights. ValueError for a name that there is not."""
    norms = {norm.name: norm for norm in norms_of(model)}
    if name not in norms:
        raise ValueError(f"no norm is called {name!r}; this model has {', '.join(norms)}")
    return norms[name]


@undisturbed
def run_norm(model: GPTModel, name: str, trace: Trace) -> None:
    """Let that LayerNorm do its work on the whole text once more, in both of its ways of writing it."""
    norm = find_norm(trace.of(model), name)
    if norm.block is None:
        path = "final_norm"
    else:
        path = f"trf_blocks.{norm.block}.{name[-5:]}"
    module = model.get_submodule(path)
    assert isinstance(module, LayerNorm)
    x = torch.from_numpy(norm_input(trace, norm)).to(module.scale)[None]  # (1, T, D)
    with torch.no_grad():
        module.forward(x)
        module.formula(x)


@undisturbed
def norm_input(trace: Trace, norm: Norm) -> NDArray[np.float32]:
    """The input of that norm, for every token: (T, D).

    norm1 reads what comes into the block, norm2 the stream after attention, the final norm what
    comes out of the last block: the sites resid_pre, resid_mid and resid_post.
    """
    return trace[norm.source].numpy()


@dataclass(frozen=True)
class Steps:
    """One norm and one token, from what goes in to what comes out. All arrays are (D,)."""

    before: Vector
    centred: Vector  # x - mean
    normalised: Vector  # centred / sqrt(variance + eps)
    scaled: Vector  # normalised * scale
    after: Vector  # scaled + shift
    scale: Vector
    shift: Vector
    mean: float
    variance: float  # biased: divided by D, as the module does
    eps: float
    has_shift: bool

    @property
    def deviation(self) -> float:
        """The number that the centred values are divided by: sqrt(variance + eps)."""
        return float(np.sqrt(self.variance + self.eps))

    @property
    def eps_written(self) -> str:
        """All digits of eps, and none behind: "0.00001"."""
        return np.format_float_positional(self.eps)

    def stage(self, name: str) -> Vector:
        return getattr(self, one_of("stage", name, STAGES))


def norm_steps(norm: Norm, x: NDArray[np.floating]) -> Steps:
    """Everything LayerNorm does to one token's (D,) values."""
    scale = norm.scale.cpu().double().numpy()
    if x.shape != scale.shape:
        raise ValueError(f"values of shape {x.shape} given; this norm takes one token's {scale.shape}")
    if norm.shift is None:
        shift = np.zeros_like(scale)
    else:
        shift = norm.shift.cpu().double().numpy()
    before = x.astype(np.float64)
    mean = float(before.mean())
    centred = before - mean
    variance = float((centred**2).mean())
    normalised = centred / np.sqrt(variance + norm.eps)
    scaled = normalised * scale
    return Steps(
        before, centred, normalised, scaled, scaled + shift, scale, shift, mean, variance, norm.eps,
        has_shift=norm.shift is not None,
    )  # fmt: skip


def two_variances(values: Vector) -> tuple[float, float]:
    """The variance divided by N, as LayerNorm has it (`unbiased=False`), and divided by N - 1. `values` (N,).

    Raises ValueError for a single value, where N - 1 is 0.
    """
    if len(values) < 2:
        raise ValueError(f"there is {len(values)} value; dividing by N - 1 takes at least 2")
    squares = float(((values - values.mean()) ** 2).sum())
    return squares / len(values), squares / (len(values) - 1)


def stage_table(steps: Steps) -> pd.DataFrame:
    """Return one row a stage: stage, mean, variance (biased), smallest, largest."""
    rows = [(v.mean(), v.var(), v.min(), v.max()) for v in map(steps.stage, STAGES)]
    table = pd.DataFrame(rows, columns=["mean", "variance", "smallest", "largest"])
    table.insert(0, "stage", STAGES)
    return table


@dataclass(frozen=True)
class VarianceParts:
    """Why the variance after is what it is; the last is exactly the sum of the three before it."""

    normalised: float  # variance / (variance + eps): 1 but for eps
    scaled: float  # after the scale: about the mean square of scale
    shift: float  # the spread of the shift itself
    together: float  # twice the covariance of the two: whether they move together
    after: float


def variance_parts(steps: Steps) -> VarianceParts:
    """Var(scaled + shift) = Var(scaled) + Var(shift) + 2 Cov(scaled, shift), with this token's numbers."""
    covariance = float(np.mean((steps.scaled - steps.scaled.mean()) * (steps.shift - steps.shift.mean())))
    stages = (steps.normalised, steps.scaled, steps.shift, steps.after)
    normalised, scaled, shift, after = (float(values.var()) for values in stages)
    return VarianceParts(normalised, scaled, shift, 2 * covariance, after)


def arithmetic(steps: Steps, dimension: int) -> pd.DataFrame:
    """LayerNorm of one dimension, a row a line: step, formula, with these numbers, gives.

    Each value is worked out from unrounded numbers; only the writing is rounded. ValueError for a dimension
    that does not exist.
    """
    size = len(steps.before)
    i = below("dimension", dimension, size)

    def of(value: float) -> str:
        return significant(float(value), 4)

    x = steps.before[i]
    centred = steps.centred[i]
    normalised = steps.normalised[i]
    squares = (steps.centred**2).sum()
    divisor = of(steps.deviation)
    times = f"{of(normalised)} × {term(of(steps.scale[i]))}"
    lines = [
        ("mean", f"sum of the {size} values / {size}", f"{of(steps.before.sum())} / {size}", steps.mean),
        ("variance", f"sum of (x − mean)² / {size}", f"{of(squares)} / {size}", steps.variance),
        ("deviation", "√(variance + eps)", f"√({of(steps.variance)} + {steps.eps_written})", steps.deviation),
        (f"x[{i}] − mean", "how far this is from the mean", f"{of(x)} − {term(of(steps.mean))}", centred),
        ("normalised", "(x − mean) / √(variance + eps)", f"{of(centred)} / {divisor}", normalised),
        ("times scale", f"normalised × scale[{i}]", times, steps.scaled[i]),
    ]
    if steps.has_shift:
        numbers = f"{of(steps.scaled[i])} + {term(of(steps.shift[i]))}"
        lines.append(("plus shift", f"scaled + shift[{i}]", numbers, steps.after[i]))
    return pd.DataFrame(lines, columns=["step", "formula", "with these numbers", "gives"])


@reads(*SITES)
def worked_out(
    lm: LanguageModel, t: Trace, name: str, position: int, dimension: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One norm and one token: the `stage_table`, and the `arithmetic` of one dimension."""
    found = inside(lm, t, name, position)
    return stage_table(found), arithmetic(found, dimension)


def largest_dimension(steps: Steps) -> int:
    """The dimension that stands out most before the norm: the one worth looking at first."""
    return int(np.abs(steps.centred).argmax())


def histogram(values: Vector, bins: int = 48, also: Vector | None = None) -> tuple[NDArray[np.int64], Vector]:
    """Count the values in each of `bins` equal bins: counts (bins,), edges (bins + 1,).

    The counts add up to the number of values. Values that are all the same share one bin. The bins hold the
    values of `also`, too, so that both can be counted in the same ones.
    """
    if values.size == 0:
        raise ValueError("there are no values to count")
    if also is None:
        both = values
    else:
        both = np.concatenate([values, also])
    counts, edges = np.histogram(values, bins=bins, range=(float(both.min()), float(both.max())))
    return counts.astype(np.int64), edges.astype(np.float64)
