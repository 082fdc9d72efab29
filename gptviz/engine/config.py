"""GPTConfig: the numbers that say how large a GPTModel is; and what it shares with other models' configs."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Self

from gptviz.engine.index import whole

ACTIVATIONS = ("gelu_tanh", "gelu")
SIZES = ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers")
WIDEST = 2**20  # of a model's emb_dim; the widest known has some 10,000


def divisors(emb_dim: int) -> list[int]:
    """The numbers of heads that a width can be divided among."""
    small = [n for n in range(1, math.isqrt(emb_dim) + 1) if emb_dim % n == 0]
    return sorted({*small, *(emb_dim // n for n in small)})


def is_number(value: object) -> bool:
    """Whether this is a number of Python's, and not True or False."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_switches(config: "Settings", names: tuple[str, ...]) -> None:
    """Raise ValueError for one of these settings that is neither True nor False."""
    for name in names:
        if not isinstance(config[name], bool):
            raise ValueError(f"{name} is {config[name]!r}; it must be True or False")


class Settings:
    """The base of a config, which is a frozen dataclass: it reads like the book's dict."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the book's dict or a config.json; an unknown key is refused by name."""
        fields = dataclasses.fields(cls)
        known = [field.name for field in fields]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(
                f"unknown keys in a config: {', '.join(unknown)}; known are {', '.join(known)}"
            )
        needed = [field.name for field in fields if field.default is MISSING]
        missing = [name for name in needed if name not in values]
        if missing:
            raise ValueError(f"the config lacks {', '.join(missing)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

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


@dataclass(frozen=True)
class GPTConfig(Settings):
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
        if not is_number(self.drop_rate) or not 0 <= self.drop_rate < 1:
            raise ValueError(f"drop_rate is {self.drop_rate!r}; it must be at least 0 and below 1")
        if not is_number(self.norm_eps) or not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps is {self.norm_eps!r}; it must be a number between 0 and 1")
        check_switches(self, ("qkv_bias", "tie_embeddings", "norm_bias", "linear_bias"))
        if self.activation not in ACTIVATIONS:
            raise ValueError(f'activation is {self.activation!r}; it must be "gelu_tanh" or "gelu"')

    @property
    def head_dim(self) -> int:
        return self.emb_dim // self.n_heads

    @property
    def n_kv_groups(self) -> int:
        """The number of keys and values: each head has its own."""
        return self.n_heads

    @property
    def hidden_dim(self) -> int:
        """The width of the feed-forward layers."""
        return 4 * self.emb_dim

    def sizes(self, n_tokens: int) -> dict[str, int]:
        """The numbers behind the names in a site's shape, such as "D", for a text of `n_tokens`."""
        D = self.emb_dim
        return {"T": n_tokens, "D": D, "H": self.n_heads, "4D": 4 * D, "D/H": self.head_dim}

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
