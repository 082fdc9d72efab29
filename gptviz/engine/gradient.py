"""By how much a difference of two logits would move, if a site's number did: the gradient of one pass."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.engine.config import GPTConfig
from gptviz.engine.sites import SITES, Key, check_key, key_of
from gptviz.engine.sizes import nbytes_of
from gptviz.tokenizer.one import OneToken

Towards = OneToken | tuple[OneToken, OneToken | None] | tuple[OneToken, OneToken | None, int]


@dataclass(frozen=True)
class Metric:
    """The logit of `token` minus that of `against`, None for the mean of all, after `position`."""

    token: int
    against: int | None
    position: int

    def of(self, logits: Tensor) -> Tensor:
        """(V,) -> ()."""
        return logits[self.token] - (logits.mean() if self.against is None else logits[self.against])


@dataclass(frozen=True)
class Gradient:
    """`gradient["z", 4]` has the shape of `trace["z", 4]`, and is asked likewise: d value / d each number.

    `value` is the metric in this pass. Each number is moved by itself, all that follows from it included, and
    nothing that stands beside it. A number that an edit put in is moved as one that the model made is.
    """

    metric: Metric
    value: float
    _values: Mapping[Key, Tensor]  # handed out as copies
    n_layers: int

    def __getitem__(self, key: str | Key) -> Tensor:
        if isinstance(key, str) and key in SITES and SITES[key].per_block:
            return torch.stack([self._of((key, block)) for block in range(self.n_layers)])
        return self._of(check_key(*key_of(key), self.n_layers)).clone()

    def _of(self, key: Key) -> Tensor:
        if key not in self._values:
            kept = ", ".join(dict.fromkeys(site for site, _ in self._values)) or "none"
            raise ValueError(f"there is no gradient of {key}; this trace has it of {kept}: keep the site")
        return self._values[key]

    def sites(self) -> list[Key]:
        """The (site, block) pairs that it has, in the order of the pass."""
        return list(self._values)

    @property
    def nbytes(self) -> int:
        """The bytes of all its tensors."""
        return nbytes_of(*self._values.values())


def gradient(metric: Metric, logits: Tensor, values: Mapping[Key, Tensor], config: GPTConfig) -> Gradient:
    """Go back from (V,) logits to the tensors that the pass had at its sites; 0 where no way leads back."""
    value = metric.of(logits.float())
    tensors = list(values.values())
    found = torch.autograd.grad(value, tensors, allow_unused=True)
    grads = {}
    for (key, one), grad in zip(values.items(), found, strict=True):
        if grad is None:
            shown = torch.zeros_like(one)
        else:
            shown = grad
        grads[key] = SITES[key[0]].present(shown, config.n_heads).float().cpu()
    return Gradient(metric, float(value.detach()), grads, config.n_layers)
