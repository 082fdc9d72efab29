"""From one row of logits to probabilities and a drawn token: temperature, top-k, top-p.

Pure functions on torch tensors, and a table of the tokens that could come; nothing here knows a model. V is
the size of the vocabulary.

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
    """How the next token is chosen; as the fields stand here, the model's own distribution is left alone.

    temperature: finite, 0 or more; 0 always takes the most probable token. top_k: how many of the largest
    logits are kept. top_p: above 0 and at most 1, the mass that the most probable of those must reach.
    seed: where the draws begin; None is a fresh one from the system. Raises ValueError, which says what was
    given and what is allowed.
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
        """The numbers in [0, 1) that draw the tokens, one after the other, without the first `skip`.

        A source of chance of its own, at the seed: the global one is not touched. The i-th draw of a seed
        is always the i-th of these, whatever was drawn before, so that (seed, i) tells it.
        """
        generator = self._generator()
        if skip:
            torch.rand(skip, dtype=torch.float64, generator=generator)
        while True:
            yield torch.rand(1, dtype=torch.float64, generator=generator).item()

    def points(self, n: int) -> list[float]:
        """The first `n` numbers of `stream`. A seed of None gives others every time."""
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
    """What became of one row of logits, over the whole vocabulary; every field is (V,), numbers are float64.

    `kept` is what both filters left; a token of `in_top_k` that is not `kept` was cut by top-p.
    """

    order: torch.Tensor  # ids from the largest logit down; of equal logits the lower id comes first
    rank: torch.Tensor  # each id's place in that order, from 0
    scaled: torch.Tensor  # logits / temperature; the logits themselves at temperature 0
    in_top_k: torch.Tensor  # bool
    kept: torch.Tensor  # bool
    probabilities: torch.Tensor  # sum 1; exactly 0 where not kept


def distribution(logits: torch.Tensor, sampling: Sampling = AS_IT_IS) -> Distribution:
    """Scale (V,) logits by the temperature, filter by top-k, then by top-p, and apply softmax.

    top_k keeps exactly the k largest; of equal logits those with the lower id. top_p then keeps the
    smallest set of the most probable tokens whose mass, after temperature and top-k, reaches p: at
    least one. Temperature 0 is the limit: everything on the largest logit, the lowest id of equals,
    and 0 for the others, kept or not.

    Raises ValueError for logits that are no distribution.
    """
    if logits.dim() != 1 or logits.numel() == 0:
        raise ValueError(f"expected one row of logits (V,), got a tensor of shape {tuple(logits.shape)}")
    logits = logits.detach().double()  # a kept token's tiny probability must not become 0
    largest = logits.max()
    if not torch.isfinite(largest):  # NaN, +inf, or -inf everywhere: max() carries each of them here
        raise ValueError(f"the largest logit is {largest.item()}: these logits make no distribution")

    ordered, order = torch.sort(logits, descending=True, stable=True)  # (V,); of equals the lower id first
    if sampling.temperature == 0:
        shares = torch.zeros_like(ordered)
        shares[0] = 1.0
    else:
        below = ordered - ordered[0]  # so that no temperature overflows
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
    """The number of (V,) shares, in falling order with sum 1, that it takes to reach top_p."""
    if top_p is None or top_p == 1:  # rounding must not cut a tail whose mass is below the last digit
        return shares.numel()
    before = torch.cumsum(shares, dim=0) - shares  # the mass ahead of each token
    return max(1, int((before < top_p).sum()))


def draw(chances: Distribution, point: float) -> int:
    """The token id on which a number in [0, 1) falls, where the probabilities stand side by side on a bar.

    The most probable stands first, so the point p draws the first token at which the sum so far is more
    than p (the inverse of the cumulative distribution). Raises ValueError for a point outside [0, 1).
    """
    if not 0 <= point < 1:
        raise ValueError(f"the point is {point}; it must be at least 0 and below 1")
    bar = torch.cumsum(chances.probabilities[chances.order], dim=0)  # (V,)
    place = torch.searchsorted(bar, point * bar[-1], right=True)  # the last sum may lack 1 by some 1e-16
    return int(chances.order[place])


def next_tokens_of(
    tokenizer: tiktoken.Encoding, logits: torch.Tensor, k: int, sampling: Sampling, cut: bool = False
) -> pd.DataFrame:
    """The `k` most probable tokens of one row of logits (V,): see `Trace.next_tokens`.

    With `cut` only those that the filters left. ValueError for a `k` that is no whole number from 1 on.
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
