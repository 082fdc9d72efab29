"""Sampling: choose the next token from its logits, with temperature, top-k and top-p.

`distribution` turns logits into probabilities as the settings in a `Sampling` say, and `draw` picks a token
by a random number. These are functions of tensors, without a model. V is the size of the vocabulary.

References:
  Fan et al., Hierarchical Neural Story Generation, 2018 (top-k)
  Holtzman et al., The Curious Case of Neural Text Degeneration, 2020 (top-p, the "nucleus")
  Raschka, Build a Large Language Model (From Scratch), Manning 2024, section 5.3
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

import pandas as pd
import tiktoken
import torch

from gptviz.engine.index import whole
from gptviz.tokenizer import named_bytes, token_text


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: float) -> bool:
    # 40.0 counts as whole, too
    return _is_number(value) and math.isfinite(value) and value == int(value)


_RULES = {
    "temperature": "a finite number of 0 or more (0 always takes the most probable token, 1 leaves the model "
    "as it is)",
    "top_k": "a whole number from 1 on, or None for no filter",
    "top_p": "above 0 and at most 1, or None for no filter",
    "seed": "a whole number from -2^63 to 2^64 - 1, or None",
}


@dataclass(frozen=True)
class Sampling:
    """The settings by which the next token is chosen. The defaults leave the model's probabilities unchanged.

    Args:
        temperature: what the logits are divided by; 0 always takes the most probable token.
        top_k: keep only this number of the largest logits; None keeps all.
        top_p: keep only the most probable tokens whose probabilities reach this sum together (above 0, at
            most 1); None keeps all.
        seed: for the random numbers; None is a new seed from the system each time.

    Raises ValueError, which says what was given and what is allowed.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        t = self.temperature
        k = self.top_k
        p = self.top_p
        seed = self.seed
        fits = {
            "temperature": _is_number(t) and math.isfinite(t) and t >= 0,
            "top_k": k is None or (_is_whole(k) and k >= 1),
            "top_p": p is None or (_is_number(p) and 0 < p <= 1),
            "seed": seed is None or (_is_whole(seed) and -(2**63) <= seed < 2**64),
        }
        for name, good in fits.items():
            if not good:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be {_RULES[name]}")
        for name in ("top_k", "seed"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def changes_nothing(self) -> bool:
        """Whether every probability stays what the model gives it."""
        return self.temperature == 1 and self.top_k is None and self.top_p in (None, 1)

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is always taken, so that nothing is drawn."""
        return self.temperature == 0

    def stream(self, skip: int = 0) -> Iterator[float]:
        """Yield the random numbers in [0, 1) that draw the tokens, without the first `skip` of them.

        They come from a generator of their own, so torch's global one is not changed. The i-th number of a
        seed is always the same, whatever was drawn before it.
        """
        generator = self._generator()
        if skip:
            torch.rand(skip, dtype=torch.float64, generator=generator)
        while True:
            yield torch.rand(1, dtype=torch.float64, generator=generator).item()

    def points(self, n: int) -> list[float]:
        """The first `n` numbers of `stream`; with a seed of None, different ones at each call."""
        return torch.rand(n, dtype=torch.float64, generator=self._generator()).tolist()

    def _generator(self) -> torch.Generator:
        generator = torch.Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator


AS_IT_IS = Sampling()


@dataclass(frozen=True)
class Distribution:
    """The probability of every token, and the steps that lead to it: tensors (V,), floats in float64."""

    # token ids from the largest logit down; of equal logits the lower id comes first
    order: torch.Tensor
    rank: torch.Tensor  # of each token id: its index in `order`, from 0
    scaled: torch.Tensor  # logits / temperature; the logits themselves at temperature 0
    in_top_k: torch.Tensor  # bool: kept by top-k
    kept: torch.Tensor  # bool: kept by top-k and then by top-p
    probabilities: torch.Tensor  # sum to 1; exactly 0 where not kept


def distribution(logits: torch.Tensor, sampling: Sampling = AS_IT_IS) -> Distribution:
    """Scale (V,) logits by the temperature, filter by top-k, then by top-p, and apply softmax.

    top_k keeps exactly the k largest logits; of equal ones, those with the lower ids. top_p then keeps the
    fewest of the most probable tokens whose probabilities, after temperature and top-k, sum to at least p.
    Temperature 0 gives probability 1 to the largest logit (the lowest id, if several are equal) and 0 to all
    other tokens, kept or not.

    Raises ValueError if `logits` is not one row, or its largest value is NaN or infinite.
    """
    if logits.dim() != 1 or logits.numel() == 0:
        raise ValueError(
            f"expected one row of logits (V,), got a tensor of shape {tuple(logits.shape)}"
        )
    # in float32 the tiny probability of a kept token could become 0
    logits = logits.detach().double()
    largest = logits.max()
    # NaN, +inf, or -inf everywhere: max() carries each of them here
    if not torch.isfinite(largest):
        raise ValueError(
            f"the largest logit is {largest.item()}: these logits make no distribution"
        )

    # (V,); of equals the lower id first
    ordered, order = torch.sort(logits, descending=True, stable=True)
    if sampling.temperature == 0:
        shares = torch.zeros_like(ordered)
        shares[0] = 1.0
    else:
        # at most 0, so that no division by a small temperature overflows in exp
        below = ordered - ordered[0]
        shares = torch.softmax(below / float(sampling.temperature), dim=0)

    if sampling.top_k is None:
        size = logits.numel()
    else:
        size = min(sampling.top_k, logits.numel())
    shares[size:] = 0
    shares = shares / shares.sum()
    nucleus = min(size, nucleus_size(shares, sampling.top_p))
    shares[nucleus:] = 0
    shares = shares / shares.sum()

    if sampling.temperature == 0:
        scaled = logits
    else:
        scaled = logits / float(sampling.temperature)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(logits.numel(), device=order.device)
    return Distribution(order, rank, scaled, rank < size, rank < nucleus, shares[rank])


def nucleus_size(shares: torch.Tensor, top_p: float | None) -> int:
    """The number of tokens that it takes to reach top_p; `shares` (V,): probabilities, the largest first."""
    # rounded sums could reach 1 before the last tokens, which must stay
    if top_p is None or top_p == 1:
        return shares.numel()
    # (V,) the sum of the probabilities before each token
    before = torch.cumsum(shares, dim=0) - shares
    return max(1, int((before < top_p).sum()))


def draw(chances: Distribution, point: float) -> int:
    """The token id that the random number `point`, in [0, 1), draws.

    Lay the probabilities side by side on a bar of length 1, the largest first: the token drawn is the one
    under the point, that is the first one at which the sum of probabilities so far is greater than the point.
    Raises ValueError for a point outside [0, 1).
    """
    if not 0 <= point < 1:
        raise ValueError(f"the point is {point}; it must be at least 0 and below 1")
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)  # (V,)
    # scale by the last sum, which rounding may leave 1e-16 below 1
    place = torch.searchsorted(bar, point * bar[-1], right=True)
    return int(chances.order[place])


def next_tokens_of(
    tokenizer: tiktoken.Encoding,
    logits: torch.Tensor,
    k: int,
    sampling: Sampling,
    cut: bool = False,
) -> pd.DataFrame:
    """A table of the `k` most probable tokens for (V,) logits: see `Trace.next_tokens`.

    With `cut`, leave out the tokens that top-k and top-p removed. Raises ValueError unless `k` is a whole
    number from 1 on.
    """
    k = whole("k", k, 1)
    chosen = distribution(logits, sampling)
    ids = chosen.order[: min(k, int(chosen.kept.sum())) if cut else k]
    return pd.DataFrame(
        {
            "rank": range(1, len(ids) + 1),
            "id": ids.numpy(),
            "token": [token_text(named_bytes(tokenizer, i)) for i in ids.tolist()],
            "logit": logits[ids].numpy(),
            "probability": chosen.probabilities[ids].numpy(),
        }
    )
