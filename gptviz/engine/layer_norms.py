"""A model's LayerNorms as a Trace needs them: their own weights, and what they did to every token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from gptviz.engine.copies import copied
from gptviz.engine.sites import Key
from gptviz.engine.weights import PerWeights
from gptviz.model import GPTModel, LayerNorm


@dataclass(frozen=True)
class Norm:
    """A LayerNorm's weights as a Trace needs them: `scale` and `shift` (D,), and where its input is kept."""

    name: str
    block: int | None
    source: Key
    eps: float
    scale: torch.Tensor
    shift: torch.Tensor | None


@dataclass(frozen=True)
class NormStatistics:
    """The statistics of every LayerNorm at every token, (N, T) float32 each, in the order of the pass."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("mean", "variance", "mean_after", "variance_after")

    names: list[str]
    mean: NDArray[np.float32]
    variance: NDArray[np.float32]  # biased, as the module uses it
    mean_after: NDArray[np.float32]  # after scale and shift
    variance_after: NDArray[np.float32]

    def grid(self, column: str) -> NDArray[np.float32]:
        """One of the four by its name. ValueError for any other."""
        if column not in self.COLUMNS:
            raise ValueError(f"norms have no column {column!r}; they have {', '.join(self.COLUMNS)}")
        return getattr(self, column)


def norms_of(model: GPTModel) -> list[Norm]:
    """Every LayerNorm of the model, in the order of the forward pass, with copies of its weights."""
    return copied(kept_norms(model))


def kept_norms(model: GPTModel) -> list[Norm]:
    """`norms_of` as they are kept: for a Trace, which writes into nothing."""
    return _norms.get(model, lambda: _norms_of(model))


_norms: PerWeights[list[Norm]] = PerWeights()


def _norms_of(model: GPTModel) -> list[Norm]:
    def norm(name: str, block: int | None, source: Key, module: LayerNorm) -> Norm:
        if module.shift is None:
            shift = None
        else:
            shift = module.shift.detach().clone()
        return Norm(name, block, source, module.eps, module.scale.detach().clone(), shift)

    found = []
    for b, trf_block in enumerate(model.trf_blocks):
        found.append(norm(f"block {b} · norm1", b, ("resid_pre", b), cast(LayerNorm, trf_block.norm1)))
        found.append(norm(f"block {b} · norm2", b, ("resid_mid", b), cast(LayerNorm, trf_block.norm2)))
    return [*found, norm("final", None, ("resid_post", len(model.trf_blocks) - 1), model.final_norm)]


def norm_statistics(norms: Sequence[Norm], value: Callable[[Key], torch.Tensor]) -> NormStatistics:
    """The statistics of each of these norms, where `value` gives the site that it reads."""
    rows = []
    for norm in norms:
        before = value(norm.source)
        if norm.shift is None:
            shift = None
        else:
            shift = norm.shift.float().cpu()
        after = F.layer_norm(before, before.shape[-1:], norm.scale.float().cpu(), shift, norm.eps)  # (T, D)
        rows.append([*_mean_and_variance(before.numpy()), *_mean_and_variance(after.numpy())])  # 4 of (T,)
    grids = np.array(rows, dtype=np.float32).swapaxes(0, 1)  # (4, N, T)
    return NormStatistics([norm.name for norm in norms], *grids)


def _mean_and_variance(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the statistics of each row of (T, D), summed in float64; the variance is biased. (T,) each.

    NumPy and one thread: for a few rows, torch's threads cost more than the sums.
    """
    mean = x.mean(axis=-1, dtype=np.float64)
    return mean, np.square(x - mean[:, None]).mean(axis=-1)
