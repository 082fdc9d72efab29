"""GPTConfig: the numbers that say how large a GPTModel is, and the table of known models."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gptviz.engine.index import whole

ACTIVATIONS = ("gelu_tanh", "gelu")
SIZES = ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers")
WIDEST = 2**20  # of a model's emb_dim; the widest known has some 10,000


def divisors(emb_dim: int) -> list[int]:
    """The numbers of heads that a width can be divided among."""
    small = [n for n in range(1, math.isqrt(emb_dim) + 1) if emb_dim % n == 0]
    return sorted({*small, *(emb_dim // n for n in small)})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class GPTConfig:
    """The book's seven keys, and what other GPT-2s need, with the book's values as defaults.

    Indexed by name like the book's dict (`cfg["emb_dim"]`), so that GPTModel takes either.
    Raises ValueError for sizes that no model can have.
    """

    vocab_size: int
    context_length: int
    emb_dim: int
    n_heads: int
    n_layers: int
    drop_rate: float = 0.0
    qkv_bias: bool = False
    tie_embeddings: bool = False
    activation: str = "gelu_tanh"
    norm_eps: float = 1e-5
    norm_bias: bool = True
    linear_bias: bool = True

    def __post_init__(self) -> None:
        for name in SIZES:
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        if self.emb_dim > WIDEST:
            raise ValueError(f"emb_dim is {self.emb_dim}; it must be at most {WIDEST}")
        if self.emb_dim % self.n_heads:
            raise ValueError(
                f"emb_dim {self.emb_dim} cannot be divided among {self.n_heads} heads; "
                f"n_heads must be one of {divisors(self.emb_dim)}"
            )
        if not _is_number(self.drop_rate) or not 0 <= self.drop_rate < 1:
            raise ValueError(f"drop_rate is {self.drop_rate!r}; it must be at least 0 and below 1")
        if not _is_number(self.norm_eps) or not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps is {self.norm_eps!r}; it must be a number between 0 and 1")
        for name in ("qkv_bias", "tie_embeddings", "norm_bias", "linear_bias"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f'activation is {self.activation!r}; it must be "gelu_tanh" or "gelu"')

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "GPTConfig":
        """From the book's dict or a config.json; an unknown key is refused by name."""
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(
                f"unknown keys in a config: {', '.join(unknown)}; known are {', '.join(known)}"
            )
        missing = [name for name in SIZES if name not in values]
        if missing:
            raise ValueError(f"the config lacks {', '.join(missing)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def head_dim(self) -> int:
        return self.emb_dim // self.n_heads

    @property
    def parameters(self) -> int:
        """The number of trained parameters; a tied output head is not counted again."""
        D = self.emb_dim
        embeddings = (self.vocab_size + self.context_length) * D
        norm = D * (1 + self.norm_bias)
        qkv = 3 * (D * D + D * self.qkv_bias)
        linears = 9 * D * D + (D + 4 * D + D) * self.linear_bias  # out_proj, up, down
        if self.tie_embeddings:
            head = 0
        else:
            head = self.vocab_size * D
        return embeddings + self.n_layers * (qkv + linears + 2 * norm) + norm + head

    # what makes it read like the book's dict

    def __getitem__(self, key: str) -> Any:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        if key in self.__dataclass_fields__:
            return getattr(self, key)
        return default

    def keys(self) -> list[str]:
        return [*self.__dataclass_fields__]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())
