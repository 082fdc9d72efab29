"""The gradient of a difference of two logits with respect to the numbers inside the model.

A site is a place in the model, such as the output of each head (`gptviz.SITES`). For every number at a site,
the gradient says by how much the difference of logits would grow per unit if only that number grew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gptviz.engine.kinds import Config
from gptviz.engine.sites import Key, check_key, key_of, sites_of
from gptviz.engine.sizes import nbytes_of
from gptviz.tokenizer.one import OneToken

# the parameter `grad` of `lm.trace`: token, (token, against) or (token, against, position)
Towards = OneToken | tuple[OneToken, OneToken | None] | tuple[OneToken, OneToken | None, int]


@dataclass(frozen=True)
class Metric:
    """The logit of the id `token` minus that of `against` (None: the mean logit), after `position`."""

    token: int
    against: int | None
    position: int

    def of(self, logits: Tensor) -> Tensor:
        """The difference for one position's logits: (V,) -> a scalar tensor ()."""
        return logits[self.token] - (
            logits.mean() if self.against is None else logits[self.against]
        )


@dataclass(frozen=True)
class Gradient:
    """The derivatives of a metric with respect to every number of some sites.

    `gradient["z", 4]` is indexed like `trace["z", 4]` and has its shape. Each derivative includes everything
    that later layers make of the number, with all other numbers of the same site held fixed. Numbers that an
    edit put in have a derivative like any other.
    """

    metric: Metric
    value: float  # of the metric in this pass
    _values: Mapping[Key, Tensor]  # handed out as copies
    config: Config

    def __getitem__(self, key: str | Key) -> Tensor:
        sites = sites_of(self.config)
        if isinstance(key, str) and key in sites and sites[key].per_block:
            # L tensors of the site's shape -> (L, ...)
            return torch.stack([self._of((key, block)) for block in range(self.config.n_layers)])
        return self._of(check_key(*key_of(key), self.config)).clone()

    def _of(self, key: Key) -> Tensor:
        if key not in self._values:
            sites = ", ".join(dict.fromkeys(site for site, _ in self._values)) or "none"
            raise ValueError(
                f"there is no gradient of {key}; this trace has it of {sites}: keep the site"
            )
        return self._values[key]

    def sites(self) -> list[Key]:
        """The (site, block) pairs that there is a gradient of, in the order of the pass."""
        return list(self._values)

    @property
    def nbytes(self) -> int:
        """The bytes of all its tensors."""
        return nbytes_of(*self._values.values())


def gradient(
    metric: Metric, logits: Tensor, values: Mapping[Key, Tensor], config: Config
) -> Gradient:
    """Differentiate the metric with respect to each site's tensor.

    `logits` (V,) and the tensors in `values` must belong to one autograd graph. Where the metric does not
    depend on a tensor, as on later positions, the gradient is 0.
    """
    value = metric.of(logits.float())
    tensors = list(values.values())
    raw_grads = torch.autograd.grad(value, tensors, allow_unused=True)
    sites = sites_of(config)
    grads = {}
    for (key, tensor), grad in zip(values.items(), raw_grads, strict=True):
        if grad is None:
            shown = torch.zeros_like(tensor)
        else:
            shown = grad
        grads[key] = sites[key[0]].present(shown, config).float().cpu()
    return Gradient(metric, float(value.detach()), grads, config)
