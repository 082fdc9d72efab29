"""The norms of a model: copies of their weights, and the mean and variance before and after each.

A LayerNorm subtracts the mean of each token's D numbers and divides by their deviation. An RMSNorm subtracts
nothing, and divides by the root of the mean square. It is told here as a LayerNorm whose mean and shift are
0: its "variance" is the mean square, and one formula holds for both.

Shapes: N norms, T tokens, D emb_dim.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from gptviz.engine.architecture import architecture_of
from gptviz.engine.copies import copied
from gptviz.engine.kinds import Model
from gptviz.engine.sites import Key
from gptviz.engine.weights import PerWeights


@dataclass(frozen=True)
class Norm:
    """The weights of one norm, and the site of a Trace that is its input.

    One that is `centred` is a LayerNorm, any other an RMSNorm, whose shift is None.
    """

    name: str
    block: int | None  # None for the final one
    source: Key  # the site and block of its input, such as ("resid_pre", 3)
    eps: float
    scale: Tensor  # (D,)
    shift: Tensor | None  # (D,); None for a model whose norms have none
    centred: bool = True

    def centre(self, x: Tensor) -> Tensor:
        """Each row without its mean, or as it is where nothing is subtracted: (..., D) -> (..., D).

        It is linear, and its own transpose: a direction goes through it as a row does.
        """
        if self.centred:
            return x - x.mean(dim=-1, keepdim=True)
        return x

    def deviation(self, x: Tensor) -> Tensor:
        """The number that each row is divided by: (..., D) -> (...)."""
        if self.centred:
            square = x.var(dim=-1, unbiased=False)
        else:
            square = x.square().mean(dim=-1)
        return (square + self.eps).sqrt()

    def of(self, x: Tensor) -> Tensor:
        """Its output for rows of float32 on the CPU: (..., D) -> (..., D)."""
        scale = self.scale.float().cpu()
        shift = None if self.shift is None else self.shift.float().cpu()
        if self.centred:
            return F.layer_norm(x, x.shape[-1:], scale, shift, self.eps)
        return F.rms_norm(x, x.shape[-1:], scale, self.eps)


@dataclass(frozen=True)
class NormStatistics:
    """Mean and variance over the D numbers of each token, before and after each norm: (N, T) arrays.

    The norms are in the order of the pass. Those of an RMSNorm have the means 0, and the mean square as
    variance.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("mean", "variance", "mean_after", "variance_after")

    names: list[str]
    mean: NDArray[np.float32]
    variance: NDArray[np.float32]  # biased (divided by D, not D - 1), as the norm computes it
    mean_after: NDArray[np.float32]  # after scale and shift
    variance_after: NDArray[np.float32]

    def grid(self, column: str) -> NDArray[np.float32]:
        """The array (N, T) of this name, one of `COLUMNS`. Raises ValueError for any other name."""
        if column not in self.COLUMNS:
            raise ValueError(
                f"norms have no column {column!r}; they have {', '.join(self.COLUMNS)}"
            )
        return getattr(self, column)


def norms_of(model: Model) -> list[Norm]:
    """Every norm of the model, in the order of the forward pass, with copies of its weights."""
    return copied(kept_norms(model))


def kept_norms(model: Model) -> list[Norm]:
    """`norms_of` without a copy: for a Trace, which does not write into them."""
    return _norms.get(model, lambda: _norms_of(model))


_norms: PerWeights[list[Norm]] = PerWeights()


def _norms_of(model: Model) -> list[Norm]:
    architecture = architecture_of(model)

    def norm(name: str, block: int | None, source: Key, module: Any) -> Norm:
        shift = getattr(module, "shift", None)
        if shift is not None:
            shift = shift.detach().clone()
        scale = module.scale.detach().clone()
        return Norm(name, block, source, module.eps, scale, shift, architecture.centred)

    norms = []
    for b, trf_block in enumerate(model.trf_blocks):
        for place in architecture.norms:
            module = trf_block.get_submodule(place.module)
            norms.append(norm(f"block {b} · {place.module}", b, (place.source, b), module))
    last = architecture.final_norm
    module = model.get_submodule(last.module)
    return [*norms, norm("final", None, (last.source, len(model.trf_blocks) - 1), module)]


def norm_statistics(norms: Sequence[Norm], value: Callable[[Key], Tensor]) -> NormStatistics:
    """The statistics of these norms; `value` returns the tensor of a site, (T, D), given its key."""
    rows = []
    for norm in norms:
        before = value(norm.source)  # (T, D)
        after = norm.of(before)  # (T, D)
        # 4 of (T,)
        both = [_mean_and_variance(x.numpy(), norm.centred) for x in (before, after)]
        rows.append([*both[0], *both[1]])
    grids = np.array(rows, dtype=np.float32).swapaxes(0, 1)  # (4, N, T)
    return NormStatistics([norm.name for norm in norms], *grids)


def _mean_and_variance(
    x: NDArray[np.float32], centred: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and the biased variance of each row of (T, D), in float64: (T,) each.

    Unless `centred`, 0 and the mean square. This uses NumPy, which has one thread here: for few rows, starting
    torch's threads takes longer than the sums.
    """
    mean = x.mean(axis=-1, dtype=np.float64)
    if not centred:
        mean = np.zeros_like(mean)
    return mean, np.square(x - mean[:, None]).mean(axis=-1)
