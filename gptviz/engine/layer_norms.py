"""The LayerNorms of a model: copies of their weights, and the mean and variance before and after each.

Shapes: N LayerNorms, T tokens, D emb_dim.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gptviz.engine.architecture import architecture_of
from gptviz.engine.copies import copied
from gptviz.engine.sites import Key
from gptviz.engine.weights import PerWeights
from gptviz.model import GPTModel, LayerNorm


@dataclass(frozen=True)
class Norm:
    """The weights of one LayerNorm, and the site of a Trace that is its input."""

    name: str
    block: int | None  # None for the final one
    source: Key  # the site and block of its input, such as ("resid_pre", 3)
    eps: float
    scale: torch.Tensor  # (D,)
    shift: torch.Tensor | None  # (D,); None for a model whose norms have none


@dataclass(frozen=True)
class NormStatistics:
    """Mean and variance over the D numbers of each token, before and after each LayerNorm: (N, T) arrays.

    The LayerNorms are in the order of the pass.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("mean", "variance", "mean_after", "variance_after")

    names: list[str]
    mean: NDArray[np.float32]
    variance: NDArray[np.float32]  # biased (divided by D, not D - 1), as LayerNorm computes it
    mean_after: NDArray[np.float32]  # after scale and shift
    variance_after: NDArray[np.float32]

    def grid(self, column: str) -> NDArray[np.float32]:
        """The array (N, T) of this name, one of `COLUMNS`. Raises ValueError for any other name."""
        if column not in self.COLUMNS:
            raise ValueError(
                f"norms have no column {column!r}; they have {', '.join(self.COLUMNS)}"
            )
        return getattr(self, column)


def norms_of(model: GPTModel) -> list[Norm]:
    """Every LayerNorm of the model, in the order of the forward pass, with copies of its weights."""
    return copied(kept_norms(model))


def kept_norms(model: GPTModel) -> list[Norm]:
    """`norms_of` without a copy: for a Trace, which does not write into them."""
    return _norms.get(model, lambda: _norms_of(model))


_norms: PerWeights[list[Norm]] = PerWeights()


def _norms_of(model: GPTModel) -> list[Norm]:
    def norm(name: str, block: int | None, source: Key, module: LayerNorm) -> Norm:
        if module.shift is None:
            shift = None
        else:
            shift = module.shift.detach().clone()
        return Norm(name, block, source, module.eps, module.scale.detach().clone(), shift)

    architecture = architecture_of(model)
    norms = []
    for b, trf_block in enumerate(model.trf_blocks):
        for place in architecture.norms:
            module = cast(LayerNorm, trf_block.get_submodule(place.module))
            norms.append(norm(f"block {b} · {place.module}", b, (place.source, b), module))
    last = architecture.final_norm
    module = cast(LayerNorm, model.get_submodule(last.module))
    return [*norms, norm("final", None, (last.source, len(model.trf_blocks) - 1), module)]


def norm_statistics(norms: Sequence[Norm], value: Callable[[Key], torch.Tensor]) -> NormStatistics:
    """The statistics of these LayerNorms; `value` returns the tensor of a site, (T, D), given its key."""
    rows = []
    for norm in norms:
        before = value(norm.source)  # (T, D)
        if norm.shift is None:
            shift = None
        else:
            shift = norm.shift.float().cpu()
        # (T, D)
        after = F.layer_norm(before, before.shape[-1:], norm.scale.float().cpu(), shift, norm.eps)
        # 4 of (T,)
        rows.append([*_mean_and_variance(before.numpy()), *_mean_and_variance(after.numpy())])
    grids = np.array(rows, dtype=np.float32).swapaxes(0, 1)  # (4, N, T)
    return NormStatistics([norm.name for norm in norms], *grids)


def _mean_and_variance(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and the biased variance of each row of (T, D), in float64: (T,) each.

    This uses NumPy, which has one thread here: for few rows, starting torch's threads takes longer than the
    sums.
    """
    mean = x.mean(axis=-1, dtype=np.float64)
    return mean, np.square(x - mean[:, None]).mean(axis=-1)
