"""A norm step by step: the numbers of a token before it, normalised, scaled, and shifted.

An RMSNorm subtracts no mean and adds no shift. Its steps have the mean 0 and, as the variance, the mean square.

Shapes: T tokens, D emb_dim, N = 2 * n_layers + 1 LayerNorms (two in each block, and the final one). The steps
are computed in float64 from the pass's float32 numbers, so that a mean of 0 is shown as 0. A test checks that
the last step equals the module's own float32 output.

Ba et al., Layer Normalization, 2016; the book's section 4.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.reads import reads
from gptviz.digits import significant, term
from gptviz.engine.architecture import architecture_of
from gptviz.engine.index import check_below, one_of
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.layer_norms import Norm, norms_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.model import LayerNorm

Vector = NDArray[np.float64]  # (D,)
Grid = NDArray[np.float32]  # (N, T)

QUANTITIES = ("variance", "mean")
STAGES = ("before", "centred", "normalised", "scaled", "after")
"""x; x - mean; (x - mean) / sqrt(variance + eps); that times scale; that plus shift."""


# the inputs of norm1, of norm2 and of the final LayerNorm
SITES = ("resid_pre", "resid_mid", "resid_post")


@reads(*SITES)
def norm_grids(lm: LanguageModel, t: Trace, quantity: str) -> tuple[Grid, Grid]:
    """The biased variance, or the mean, of each token's D numbers before and after each norm: (N, T) each."""
    statistics = t.norm_statistics()
    return statistics.grid(one_of("quantity", quantity, QUANTITIES)), statistics.grid(
        f"{quantity}_after"
    )


@reads(*SITES)
def norm_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """`Trace.norms()`: a table with a row for each norm and token.

    Of RMSNorms it has no means, which are not subtracted, and mean_square and mean_square_after in the place
    of the variances.
    """
    architecture = architecture_of(lm.config)
    if architecture.centred:
        return t.norms()
    table = t.norms().drop(columns=["mean", "mean_after"])
    return table.rename(columns=lambda name: name.replace("variance", architecture.spread))


@reads(*SITES)
def inside(lm: LanguageModel, t: Trace, name: str, position: int) -> "Steps":
    """The steps of the LayerNorm `name` ("block 3 · norm1", "final") for the token at a position.

    Raises ValueError if there is no such LayerNorm.
    """
    norm = find_norm(lm.model, name)
    return norm_steps(norm, norm_input(t, norm)[position])


def find_norm(model: Model, name: str) -> Norm:
    """The model's LayerNorm of that name, with its weights. Raises ValueError for an unknown name."""
    norms = {norm.name: norm for norm in norms_of(model)}
    if name not in norms:
        raise ValueError(f"no norm is called {name!r}; this model has {', '.join(norms)}")
    return norms[name]


@undisturbed
def run_norm(model: Model, name: str, trace: Trace) -> None:
    """Run a LayerNorm on the whole text with its `forward`, then with its `formula`; nothing is returned.

    It is for a caller that watches the lines of both methods being executed.
    """
    norm = find_norm(trace.of(model), name)
    if norm.block is None:
        path = "final_norm"
    else:
        path = f"trf_blocks.{norm.block}.{name[-5:]}"
    module: Any = model.get_submodule(path)
    x = torch.from_numpy(norm_input(trace, norm)).to(module.scale)[None]  # (1, T, D)
    with torch.no_grad():
        module.forward(x)
        if isinstance(module, LayerNorm):
            module.formula(x)


@undisturbed
def norm_input(trace: Trace, norm: Norm) -> NDArray[np.float32]:
    """The input of a LayerNorm for every token: (T, D).

    norm1 gets the block's input, norm2 the residual stream after attention, and the final norm the output of
    the last block: the sites resid_pre, resid_mid and resid_post.
    """
    return trace[norm.source].numpy()


@dataclass(frozen=True)
class Steps:
    """All steps of one LayerNorm for one token, from its input to its output. All arrays are (D,)."""

    before: Vector
    centred: Vector  # x - mean
    normalised: Vector  # centred / sqrt(variance + eps)
    scaled: Vector  # normalised * scale
    after: Vector  # scaled + shift
    scale: Vector
    shift: Vector  # 0 if the norm has none
    mean: float
    variance: float  # biased: divided by D, not D - 1, as in the module
    eps: float
    has_shift: bool
    # whether it subtracts the mean; else `mean` is 0, and `variance` the mean square
    has_mean: bool = True

    @property
    def deviation(self) -> float:
        """The number that the centred values are divided by: sqrt(variance + eps)."""
        return float(np.sqrt(self.variance + self.eps))

    @property
    def eps_written(self) -> str:
        """eps in plain decimals: "0.00001"."""
        return np.format_float_positional(self.eps)

    @property
    def stages(self) -> tuple[str, ...]:
        """Those of the `STAGES` that this norm has; a LayerNorm without a shift ends with two alike."""
        if self.has_mean:
            return STAGES
        return "before", "normalised", "scaled"

    def spread(self, values: Vector) -> float:
        """The variance of numbers, or their mean square if the norm subtracts no mean."""
        if self.has_mean:
            return float(values.var())
        return float(np.square(values).mean())

    def stage(self, name: str) -> Vector:
        """The array (D,) of one of the `STAGES`. Raises ValueError for another name."""
        return getattr(self, one_of("stage", name, STAGES))


def norm_steps(norm: Norm, x: NDArray[np.floating]) -> Steps:
    """Compute all steps of a LayerNorm for one token's numbers `x`, (D,)."""
    scale = norm.scale.cpu().double().numpy()
    if x.shape != scale.shape:
        raise ValueError(
            f"values of shape {x.shape} given; this norm takes one token's {scale.shape}"
        )
    if norm.shift is None:
        shift = np.zeros_like(scale)
    else:
        shift = norm.shift.cpu().double().numpy()
    before = x.astype(np.float64)
    mean = 0.0
    if norm.centred:
        mean = float(before.mean())
    centred = before - mean
    variance = float((centred**2).mean())
    normalised = centred / np.sqrt(variance + norm.eps)
    scaled = normalised * scale
    return Steps(
        before, centred, normalised, scaled, scaled + shift, scale, shift, mean, variance, norm.eps,
        has_shift=norm.shift is not None, has_mean=norm.centred,
    )  # fmt: skip


def two_variances(values: Vector) -> tuple[float, float]:
    """The variance of n values divided by n, as LayerNorm does (`unbiased=False`), and divided by n - 1.

    Raises ValueError for fewer than 2 values, as n - 1 is 0 then.
    """
    if len(values) < 2:
        raise ValueError(f"there is {len(values)} value; dividing by N - 1 takes at least 2")
    squares = float(((values - values.mean()) ** 2).sum())
    return squares / len(values), squares / (len(values) - 1)


def stage_table(steps: Steps) -> pd.DataFrame:
    """A table with a row for each stage: stage, mean, variance (biased), smallest, largest.

    Of an RMSNorm it has the mean square in the place of the variance.
    """
    rows = [(v.mean(), steps.spread(v), v.min(), v.max()) for v in map(steps.stage, steps.stages)]
    square = "mean square"
    if steps.has_mean:
        square = "variance"
    table = pd.DataFrame(rows, columns=["mean", square, "smallest", "largest"])
    table.insert(0, "stage", steps.stages)
    return table


@dataclass(frozen=True)
class VarianceParts:
    """The terms of the variance after a norm: `after` = `scaled` + `shift` + `together`.

    Of an RMSNorm they are mean squares, and the last two are 0.
    """

    normalised: float  # variance / (variance + eps), a little less than 1
    scaled: float  # after the scale: about the mean square of scale
    shift: float  # the spread of the shift itself
    together: float  # twice the covariance of the scaled numbers and the shift
    after: float


def variance_parts(steps: Steps) -> VarianceParts:
    """Var(scaled + shift) = Var(scaled) + Var(shift) + 2 Cov(scaled, shift), with this token's numbers.

    An RMSNorm has no shift: the mean square after it is that of the scaled numbers.
    """
    covariance = float(
        np.mean((steps.scaled - steps.scaled.mean()) * (steps.shift - steps.shift.mean()))
    )
    stages = (steps.normalised, steps.scaled, steps.shift, steps.after)
    normalised, scaled, shift, after = map(steps.spread, stages)
    return VarianceParts(normalised, scaled, shift, 2 * covariance, after)


def arithmetic(steps: Steps, dimension: int) -> pd.DataFrame:
    """The arithmetic of the norm for one dimension, with a row for each step.

    Columns: step, formula, with these numbers, gives. Values are computed from unrounded numbers; only the
    text is rounded. Raises ValueError for a dimension that does not exist.
    """
    size = len(steps.before)
    i = check_below("dimension", dimension, size)

    def fmt(value: float) -> str:
        return significant(float(value), 4)

    x = steps.before[i]
    normalised = steps.normalised[i]
    squares = (steps.centred**2).sum()
    divisor = fmt(steps.deviation)
    times = f"{fmt(normalised)} × {term(fmt(steps.scale[i]))}"
    root = f"√({fmt(steps.variance)} + {steps.eps_written})"
    if steps.has_mean:
        lines = _less_the_mean(steps, i, fmt, root)
    else:
        lines = [
            ("mean square", f"sum of x² / {size}", f"{fmt(squares)} / {size}", steps.variance),
            ("root", "√(mean square + eps)", root, steps.deviation),
            ("normalised", "x / √(mean square + eps)", f"{fmt(x)} / {divisor}", normalised),
        ]
    lines.append(("times scale", f"normalised × scale[{i}]", times, steps.scaled[i]))
    if steps.has_shift:
        numbers = f"{fmt(steps.scaled[i])} + {term(fmt(steps.shift[i]))}"
        lines.append(("plus shift", f"scaled + shift[{i}]", numbers, steps.after[i]))
    return pd.DataFrame(lines, columns=["step", "formula", "with these numbers", "gives"])


def _less_the_mean(
    steps: Steps, i: int, fmt: Callable[[float], str], root: str
) -> list[tuple[str, str, str, float]]:
    """The lines of `arithmetic` up to the normalised number, where the mean is subtracted first."""
    size = len(steps.before)
    centred = steps.centred[i]
    squares = (steps.centred**2).sum()
    return [
        (
            "mean",
            f"sum of the {size} values / {size}",
            f"{fmt(steps.before.sum())} / {size}",
            steps.mean,
        ),
        ("variance", f"sum of (x − mean)² / {size}", f"{fmt(squares)} / {size}", steps.variance),
        ("deviation", "√(variance + eps)", root, steps.deviation),
        (
            f"x[{i}] − mean",
            "how far this is from the mean",
            f"{fmt(steps.before[i])} − {term(fmt(steps.mean))}",
            centred,
        ),
        (
            "normalised",
            "(x − mean) / √(variance + eps)",
            f"{fmt(centred)} / {fmt(steps.deviation)}",
            steps.normalised[i],
        ),
    ]


@reads(*SITES)
def worked_out(
    lm: LanguageModel, t: Trace, name: str, position: int, dimension: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """For one LayerNorm and one token, the `stage_table`, and the `arithmetic` of one dimension."""
    steps = inside(lm, t, name, position)
    return stage_table(steps), arithmetic(steps, dimension)


@reads(
    lambda lm, block, position: tuple(
        (site, block) for site in ("q", "k", *architecture_of(lm.config).scores)
    )
)
def head_norms(lm: LanguageModel, t: Trace, block: int, position: int) -> pd.DataFrame:
    """The root of the mean square of each head's query and key at a position, before and after their own norm.

    Columns: of ("query", or "key"), head (of a key, its group), before, after. Qwen3 has such norms, before
    queries and keys are turned by their positions; to be turned changes no mean square. Elsewhere before and
    after are alike.
    """
    rows = []
    pairs = zip(("q", "k"), architecture_of(lm.config).scores, strict=True)
    for of, sites in zip(("query", "key"), pairs, strict=True):
        roots = [t[site, block][:, position].double().square().mean(-1).sqrt() for site in sites]
        for head, (before, after) in enumerate(zip(*(r.tolist() for r in roots), strict=True)):
            rows.append((of, head, before, after))
    return pd.DataFrame(rows, columns=["of", "head", "before", "after"])


def largest_dimension(steps: Steps) -> int:
    """The dimension whose number before the norm is farthest from the mean: a good one to show first."""
    return int(np.abs(steps.centred).argmax())


def histogram(
    values: Vector, bins: int = 48, also: Vector | None = None
) -> tuple[NDArray[np.int64], Vector]:
    """Count the values in each of `bins` bins of equal width: counts (bins,) and edges (bins + 1,).

    Every value is counted; values that are all equal are in one bin. The bins also span the values of `also`,
    though these are not counted: so two histograms can have the same bins.
    """
    if values.size == 0:
        raise ValueError("there are no values to count")
    if also is None:
        both = values
    else:
        both = np.concatenate([values, also])  # (n,) and (m,) -> (n + m,)
    counts, edges = np.histogram(values, bins=bins, range=(float(both.min()), float(both.max())))
    return counts.astype(np.int64), edges.astype(np.float64)
