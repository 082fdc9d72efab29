"""LayerNorm, taken apart: what goes in, what is normalised, what scale and shift make of it.

Shapes: T tokens, D emb_dim, N = 2 * n_layers + 1 norms (two a block, and the final one). Every function
works in float64 on the captured float32 values, so that "mean 0" shows as 0; a test holds the last stage
equal to the module's own float32 output.

Ba et al., Layer Normalization, 2016; the book's section 4.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.engine.layer_norms import Norm, NormStatistics, norms_of
from gptviz.engine.trace import Trace
from gptviz.model import GPTModel, LayerNorm

Vector = NDArray[np.float64]  # (D,)

STAGES = ("before", "normalised", "scaled", "after")
"""x; (x - mean) / sqrt(variance + eps); times scale; plus shift."""


def find_norm(model: GPTModel, name: str) -> Norm:
    """The model's LayerNorm of that name, with its weights. ValueError for a name that there is not."""
    norms = {norm.name: norm for norm in norms_of(model)}
    if name not in norms:
        raise ValueError(f"no norm is called {name!r}; this model has {', '.join(norms)}")
    return norms[name]


def run_norm(model: GPTModel, name: str, trace: Trace) -> None:
    """Let that LayerNorm do its work on the whole text once more, in both of its ways of writing it."""
    norm = find_norm(trace.of(model), name)
    module = model.get_submodule(
        "final_norm" if norm.block is None else f"trf_blocks.{norm.block}.{name[-5:]}"
    )
    assert isinstance(module, LayerNorm)
    x = torch.from_numpy(norm_input(trace, norm)).to(module.scale)[None]  # (1, T, D)
    with torch.no_grad():
        module.forward(x)
        module.formula(x)


def norm_input(trace: Trace, norm: Norm) -> NDArray[np.float32]:
    """What that norm was given, for every token: (T, D).

    norm1 reads what comes into the block, norm2 the stream after attention, the final norm what
    comes out of the last block: the sites resid_pre, resid_mid and resid_post.
    """
    site, block = norm.source
    return trace[site if block is None else (site, block)].numpy()


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
        """What the centred values are divided by: sqrt(variance + eps)."""
        return float(np.sqrt(self.variance + self.eps))

    def stage(self, name: str) -> Vector:
        if name not in STAGES:
            raise ValueError(f"no stage is called {name!r}; the stages are {', '.join(STAGES)}")
        values: Vector = getattr(self, name)
        return values


def norm_steps(norm: Norm, x: NDArray[np.floating]) -> Steps:
    """Everything LayerNorm does to one token's (D,) values."""
    scale = norm.scale.cpu().double().numpy()
    if x.shape != scale.shape:
        raise ValueError(f"values of shape {x.shape} given; this norm takes one token's {scale.shape}")
    shift = np.zeros_like(scale) if norm.shift is None else norm.shift.cpu().double().numpy()
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


def stage_table(steps: Steps) -> pd.DataFrame:
    """One row a stage: stage, mean, variance (biased), smallest, largest."""
    rows = [
        {
            "stage": name,
            "mean": values.mean(),
            "variance": values.var(),
            "smallest": values.min(),
            "largest": values.max(),
        }
        for name in STAGES
        for values in [steps.stage(name)]
    ]
    return pd.DataFrame(rows)


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
    return VarianceParts(
        normalised=float(steps.normalised.var()),
        scaled=float(steps.scaled.var()),
        shift=float(steps.shift.var()),
        together=2 * covariance,
        after=float(steps.after.var()),
    )


def grid_limit(before: NDArray[np.floating], after: NDArray[np.floating], quantity: str) -> float:
    """One symmetric colour range for both pictures.

    For "variance" in powers of ten about 1, wide enough for every one of them and at least 0.1 to 10. For
    "mean" the largest magnitude.
    """
    both = np.stack([before, after])
    if quantity == "variance":
        positive = both[both > 0]
        return max(1.0, float(np.abs(np.log10(positive)).max(initial=0.0)))
    return float(np.abs(both).max()) or 1.0


def changes(
    changed: NDArray[np.floating], unchanged: NDArray[np.floating], quantity: str
) -> NDArray[np.float64]:
    """What became of a grid of `NormStatistics`: of means the difference, of variances a power of ten.

    1 is ten times as large; a variance of 0 counts as 10^-12.
    """
    new, old = (values.astype(np.float64) for values in (changed, unchanged))
    if quantity == "variance":
        new, old = (np.log10(np.maximum(values, 1e-12)) for values in (new, old))
    return new - old


def change_limit(found: Sequence[NDArray[np.floating]], quantity: str) -> float:
    """One symmetric colour range for `changes`, at least a tenth up or down of a variance."""
    largest = max(float(np.abs(grid).max()) for grid in found)
    return max(largest, math.log10(1.1)) if quantity == "variance" else largest or 1.0


@dataclass(frozen=True)
class Place:
    """A value of a grid, and where it stands: at the `norm`-th norm (row), for the token at `position`."""

    value: float
    norm: int
    position: int


def extremes(grid: NDArray[np.floating]) -> tuple[Place, Place]:
    """Where an (N, T) grid of `NormStatistics` is smallest and where it is largest."""
    places = []
    for at in (int(grid.argmin()), int(grid.argmax())):
        norm, position = divmod(at, grid.shape[1])
        places.append(Place(float(grid[norm, position]), norm, position))
    return places[0], places[1]


def through_depth(found: NormStatistics, position: int) -> pd.DataFrame:
    """One token's way: a row a norm, with its name and the four columns of `NormStatistics`."""
    tokens = found.mean.shape[1]
    if not 0 <= position < tokens:
        raise ValueError(f"position {position} does not exist; there are 0 to {tokens - 1}")
    columns = {column: found.grid(column)[:, position] for column in found.COLUMNS}
    return pd.DataFrame({"norm": found.names, **columns})


@dataclass(frozen=True)
class Equation:
    """One line of the arithmetic: the formula, the same with this token's numbers, and what they give."""

    name: str
    formula: str
    numbers: str
    value: float


def arithmetic(steps: Steps, dimension: int) -> list[Equation]:
    """LayerNorm of one dimension, line by line. ValueError for a dimension that does not exist.

    Each value is worked out from unrounded numbers; only the writing is rounded.
    """
    size = len(steps.before)
    if not 0 <= dimension < size:
        raise ValueError(f"dimension {dimension} does not exist; this norm has dimensions 0 to {size - 1}")
    i = dimension
    x, centred, normalised = (
        significant(float(v[i]), 4) for v in (steps.before, steps.centred, steps.normalised)
    )
    mean, variance, deviation = (significant(v, 4) for v in (steps.mean, steps.variance, steps.deviation))
    total, squares = (
        significant(float(steps.before.sum()), 4),
        significant(float((steps.centred**2).sum()), 4),
    )
    scale, shift, scaled = (significant(float(v[i]), 4) for v in (steps.scale, steps.shift, steps.scaled))
    lines = [
        Equation("mean", f"sum of the {size} values / {size}", f"{total} / {size}", steps.mean),
        Equation("variance", f"sum of (x − mean)² / {size}", f"{squares} / {size}", steps.variance),
        Equation("deviation", "√(variance + eps)", f"√({variance} + {steps.eps:.5f})", steps.deviation),
        Equation(
            f"x[{i}] − mean",
            "how far this value is from the mean",
            f"{x} − ({mean})",
            float(steps.centred[i]),
        ),
        Equation(
            "normalised",
            "(x − mean) / √(variance + eps)",
            f"{centred} / {deviation}",
            float(steps.normalised[i]),
        ),
        Equation(
            "times scale", f"normalised × scale[{i}]", f"{normalised} × {scale}", float(steps.scaled[i])
        ),
    ]
    if steps.has_shift:
        lines.append(
            Equation("plus shift", f"scaled + shift[{i}]", f"{scaled} + ({shift})", float(steps.after[i]))
        )
    return lines


def largest_dimension(steps: Steps) -> int:
    """The dimension that stands out most before the norm: the one worth looking at first."""
    return int(np.abs(steps.centred).argmax())


def histogram(values: Vector, bins: int = 48, also: Vector | None = None) -> tuple[NDArray[np.int64], Vector]:
    """How many values fall in each of `bins` equal bins: counts (bins,), edges (bins + 1,).

    The counts add up to the number of values. Values that are all the same share one bin. The bins hold the
    values of `also`, too, so that both can be counted in the same ones.
    """
    if values.size == 0:
        raise ValueError("there are no values to count")
    both = values if also is None else np.concatenate([values, also])
    counts, edges = np.histogram(values, bins=bins, range=(float(both.min()), float(both.max())))
    return counts.astype(np.int64), edges.astype(np.float64)
