"""From one row of logits to probabilities and a drawn token: temperature, top-k, top-p.

Pure functions on torch tensors; nothing here knows a model. V is the size of the vocabulary.

References:
  Fan et al., Hierarchical Neural Story Generation, 2018 (top-k)
  Holtzman et al., The Curious Case of Neural Text Degeneration, 2020 (top-p, the "nucleus")
  Raschka, Build a Large Language Model (From Scratch), Manning 2024, section 5.3
"""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Options:
    """The three settings together; as they stand here they change nothing."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None


@dataclass(frozen=True)
class Distribution:
    """What became of one row of logits, over the whole vocabulary; every field is (V,), numbers are float64.

    `kept` is what both filters left; a token of `in_top_k` that is not `kept` was cut by top-p.
    """

    scaled: torch.Tensor  # logits / temperature; the logits themselves at temperature 0
    in_top_k: torch.Tensor  # bool
    kept: torch.Tensor  # bool
    probabilities: torch.Tensor  # sum 1; exactly 0 where not kept


def check_options(temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> None:
    """Raise a ValueError that says what was given and what is allowed, or do nothing."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(
            f"temperature is {temperature}; it must be a finite number of 0 or more "
            "(0 always takes the most probable token, 1 leaves the model as it is)"
        )
    if top_k is not None and (top_k != int(top_k) or top_k < 1):
        raise ValueError(f"top_k is {top_k}; it must be a whole number from 1 on, or None for no filter")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it must be above 0 and at most 1, or None for no filter")


def distribution(
    logits: torch.Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Distribution:
    """Scale (V,) logits by the temperature, filter by top-k, then by top-p, and apply softmax.

    top_k keeps exactly the k largest; of equal logits those with the lower id. top_p then keeps the
    smallest set of the most probable tokens whose mass, after temperature and top-k, reaches p: at
    least one. Temperature 0 is the limit: everything on the largest logit, the lowest id of equals,
    and 0 for the others, kept or not.

    Raises ValueError for options outside their range and for logits that are no distribution.
    """
    check_options(temperature, top_k, top_p)
    if logits.dim() != 1 or logits.numel() == 0:
        raise ValueError(f"expected one row of logits (V,), got a tensor of shape {tuple(logits.shape)}")
    logits = logits.detach().double()  # a kept token's tiny probability must not become 0
    largest = logits.max()
    if not torch.isfinite(largest):  # NaN, +inf, or -inf everywhere: max() carries each of them here
        raise ValueError(f"the largest logit is {largest.item()}: these logits make no distribution")

    ordered, order = torch.sort(logits, descending=True, stable=True)  # (V,); of equals the lower id first
    if temperature == 0:
        shares = torch.zeros_like(ordered)
        shares[0] = 1.0
    else:
        shares = torch.softmax((ordered - ordered[0]) / temperature, dim=0)  # no temperature overflows

    size = logits.numel() if top_k is None else min(int(top_k), logits.numel())
    shares[size:] = 0
    shares = shares / shares.sum()
    nucleus = min(size, nucleus_size(shares, top_p))
    shares[nucleus:] = 0
    shares = shares / shares.sum()

    scaled = logits if temperature == 0 else logits / temperature
    rank = torch.empty_like(order)
    rank[order] = torch.arange(logits.numel(), device=order.device)
    return Distribution(scaled, rank < size, rank < nucleus, shares[rank])


def nucleus_size(shares: torch.Tensor, top_p: float | None) -> int:
    """How many of these (V,) shares, given in falling order with sum 1, it takes to reach top_p."""
    if top_p is None or top_p == 1:  # rounding must not cut a tail whose mass is below the last digit
        return shares.numel()
    before = torch.cumsum(shares, dim=0) - shares  # the mass ahead of each token
    return max(1, int((before < top_p).sum()))


def draw(probabilities: torch.Tensor, generator: torch.Generator) -> int:
    """One token id, drawn from (V,) probabilities with this generator and no other source of chance."""
    return int(torch.multinomial(probabilities, 1, generator=generator))


def seeded(seed: int | None = None) -> torch.Generator:
    """A generator of its own: the global one is not touched. None takes a fresh seed from the system."""
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator
