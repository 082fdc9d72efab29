"""Edit: replace what a site passes on, everywhere or for some heads and positions only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from gptviz.config import GPTConfig
from gptviz.sites import SITES, check_key

Replacement = Callable[[torch.Tensor], torch.Tensor] | Literal["zero", "mean"]


@dataclass(frozen=True)
class Edit:
    """One intervention on a forward pass.

    `value` is "zero", "mean" or a function from the site's tensor (in the shape that a Trace hands
    out) to one of the same shape. "mean" is the mean over the positions of this text; for `attn`,
    whose rows must not look ahead, it is each row's mean over the keys it may see (uniform
    attention). `heads` (sites split by heads only) and `positions` (negative ones count from the
    end; for `attn`, the rows of these queries) limit what is replaced; the rest passes on untouched.
    """

    site: str
    block: int | None = None
    value: Replacement = "zero"
    heads: Sequence[int] | None = None
    positions: Sequence[int] | None = None

    def check(self, config: GPTConfig, n_tokens: int) -> None:
        """Raise a ValueError for a site, block, head, position or value that does not exist."""
        check_key(self.site, self.block, config.n_layers)
        if not callable(self.value) and self.value not in ("zero", "mean"):
            raise ValueError(f'an edit\'s value is {self.value!r}; it must be "zero", "mean" or a function')
        if self.heads is not None:
            if SITES[self.site].form == "rows":
                split = ", ".join(name for name, site in SITES.items() if site.form != "rows")
                raise ValueError(f"site {self.site!r} is not split by heads; those that are: {split}")
            _check_indices("head", self.heads, 0, config.n_heads)
        if self.positions is not None:
            _check_indices("position", self.positions, -n_tokens, n_tokens)

    def apply(self, value: torch.Tensor) -> torch.Tensor:
        """A new tensor, never the one that was given: (T, D), (H, T, D/H) or (H, T, T) as the site has it."""
        replacement = self._replacement(value)
        if self.heads is None and self.positions is None:
            return replacement
        chosen = torch.zeros(value.shape[:-1], dtype=torch.bool)  # (T,) or (H, T)
        heads = slice(None) if self.heads is None else torch.tensor(list(self.heads), dtype=torch.long)
        positions = (
            slice(None) if self.positions is None else torch.tensor(list(self.positions), dtype=torch.long)
        )
        if value.dim() == 2:
            chosen[positions] = True
        else:
            rows = torch.zeros(value.shape[1], dtype=torch.bool)
            rows[positions] = True
            chosen[heads] = rows
        return torch.where(chosen.unsqueeze(-1).to(value.device), replacement, value)

    def _replacement(self, value: torch.Tensor) -> torch.Tensor:
        if self.value == "zero":
            return torch.zeros_like(value)
        if self.value == "mean":
            return (
                _uniform(value)
                if self.site == "attn"
                else value.mean(dim=-2, keepdim=True).expand_as(value).clone()
            )
        assert callable(self.value)
        result = self.value(value.clone())
        if not isinstance(result, torch.Tensor) or result.shape != value.shape:
            got = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
            raise ValueError(
                f"the edit of {self.site!r} must return a tensor {tuple(value.shape)}, it returned {got}"
            )
        return result.to(value)


def _uniform(attn: torch.Tensor) -> torch.Tensor:
    """(H, T, T) of 1 / (number of keys that the query may see)."""
    seen = torch.ones_like(attn).tril()
    return seen / seen.sum(dim=-1, keepdim=True)


def _check_indices(what: str, given: Sequence[int], low: int, high: int) -> None:
    wrong = [i for i in given if not isinstance(i, int) or isinstance(i, bool) or not low <= i < high]
    if wrong:
        raise ValueError(f"there is no {what} {wrong[0]!r}; they go from {low} to {high - 1}")
