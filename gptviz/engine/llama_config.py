"""LlamaConfig: the numbers that say how large a LlamaModel is, and how it turns queries and keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from gptviz.engine.config import WIDEST, Settings, check_switches, divisors, is_number
from gptviz.engine.index import whole

SIZES = ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers", "hidden_dim")


def _positive(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a number above 0, and finite."""
    if not is_number(value) or not 0 < value < float("inf"):  # type: ignore[operator]
        raise ValueError(f"{name} is {value!r}; it must be a number above 0")


@dataclass(frozen=True)
class RopeFreq(Settings):
    """Llama 3.1's scaling of RoPE's frequencies, in the words of the book's `rope_freq`.

    See `gptviz.llama.scaled_frequencies`. Raises ValueError for numbers that mean nothing there.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_length: int

    def __post_init__(self) -> None:
        length = whole("original_context_length", self.original_context_length, 1)
        object.__setattr__(self, "original_context_length", length)
        for name in ("factor", "low_freq_factor", "high_freq_factor"):
            _positive(name, self[name])
        if self.high_freq_factor <= self.low_freq_factor:
            raise ValueError(
                f"high_freq_factor is {self.high_freq_factor}; it must be above low_freq_factor, "
                f"{self.low_freq_factor}"
            )


@dataclass(frozen=True)
class LlamaConfig(Settings):
    """The keys of the book's Llama and Qwen3, and what their relatives need.

    Indexed by name like the book's dict (`cfg["emb_dim"]`), so that LlamaModel takes either. A head is as
    wide as `head_dim` says, else emb_dim / n_heads. Raises ValueError for sizes that no model can have.
    """

    vocab_size: int
    context_length: int
    emb_dim: int
    n_heads: int
    n_layers: int
    hidden_dim: int
    n_kv_groups: int
    head_dim: int = None  # type: ignore[assignment]  # as in the book's dict; a number once it is made
    rope_base: float = 10_000.0
    rope_freq: RopeFreq | None = None
    qk_norm: bool = False
    qkv_bias: bool = False
    tie_embeddings: bool = False
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        for name in (*SIZES, "n_kv_groups"):
            object.__setattr__(self, name, whole(name, self[name], 1))
        for name in ("emb_dim", "hidden_dim"):
            if self[name] > WIDEST:
                raise ValueError(f"{name} is {self[name]}; it must be at most {WIDEST}")
        if self.n_heads % self.n_kv_groups:
            raise ValueError(
                f"{self.n_heads} heads cannot be divided among {self.n_kv_groups} groups; "
                f"n_kv_groups must be one of {divisors(self.n_heads)}"
            )
        object.__setattr__(self, "head_dim", self._width_of_a_head())
        _positive("rope_base", self.rope_base)
        if isinstance(self.rope_freq, Mapping):  # the book's dict, or what `to_dict` gave
            object.__setattr__(self, "rope_freq", RopeFreq.from_dict({**self.rope_freq}))
        if not isinstance(self.rope_freq, RopeFreq | None):
            raise ValueError(
                f"rope_freq is {self.rope_freq!r}; it must be None, or have "
                f"{', '.join(RopeFreq.__dataclass_fields__)}"
            )
        check_switches(self, ("qk_norm", "qkv_bias", "tie_embeddings"))
        if not is_number(self.norm_eps) or not 0 < self.norm_eps < 1:
            raise ValueError(f"norm_eps is {self.norm_eps!r}; it must be a number between 0 and 1")

    def _width_of_a_head(self) -> int:
        """The `head_dim` that is given, or emb_dim / n_heads. Raises ValueError for what cannot be turned."""
        if self.head_dim is not None:
            width = whole("head_dim", self.head_dim, 2)
        elif self.emb_dim % self.n_heads:
            raise ValueError(
                f"emb_dim {self.emb_dim} cannot be divided among {self.n_heads} heads; n_heads must be "
                f"one of {divisors(self.emb_dim)}, or give head_dim"
            )
        else:
            width = self.emb_dim // self.n_heads
        if width % 2 or width > WIDEST:
            raise ValueError(
                f"a head is {width} numbers wide; RoPE turns pairs, so it must be even, "
                f"and at most {WIDEST}"
            )
        return width

    def sizes(self, n_tokens: int) -> dict[str, int]:
        """The numbers behind the names in a site's shape, such as "D", for a text of `n_tokens`."""
        return {
            "T": n_tokens,
            "D": self.emb_dim,
            "H": self.n_heads,
            "K": self.n_kv_groups,
            "F": self.hidden_dim,
            "d": self.head_dim,
        }

    @property
    def parameters(self) -> int:
        """The number of trained parameters; a tied output head is not counted again."""
        D = self.emb_dim
        d = self.head_dim
        embedding = self.vocab_size * D
        qkv = (self.n_heads + 2 * self.n_kv_groups) * d * (D + self.qkv_bias)
        out_proj = self.n_heads * d * D
        norms = 2 * D + 2 * d * self.qk_norm
        block = qkv + out_proj + norms + 3 * D * self.hidden_dim
        if self.tie_embeddings:
            head = 0
        else:
            head = embedding
        return embedding + self.n_layers * block + D + head
