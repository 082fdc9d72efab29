"""From GPT-2 to Llama in five switches: a GPTModel, some of whose modules are Llama's.

None on it is `gptviz.model.GPTModel`, all on it is `gptviz.llama.LlamaModel`: the same names of weights, the
same logits. The 30 models between them exist nowhere else. They show what one change does without the others.

Shapes in comments: b batch, T tokens, D emb_dim, H heads, K groups of heads, d head_dim, F hidden_dim.

References:
  Shazeer, GLU Variants Improve Transformer, 2020, for the width of SwiGLU's layers
  see `gptviz.llama` for the rest
"""

from dataclasses import dataclass, fields, replace

import torch
from torch import nn

from gptviz import llama
from gptviz.engine.config import GPTConfig, divisors
from gptviz.model import GPTModel

BYTES = 4  # of a number in float32
ROPE_BASE = 10_000.0


@dataclass(frozen=True)
class Switches:
    """The differences between GPT-2 and Llama, each off (GPT-2's way) or on (Llama's way).

    `rms_norm`: RMSNorm for LayerNorm. `rope`: RoPE in each block for the position embedding. `swiglu`: SwiGLU for
    GELU in the feed-forward layers. `grouped`: a group of heads shares a key and a value. `no_biases`: no linear
    layer and no LayerNorm has a bias. Raises ValueError for what is neither True nor False.
    """

    rms_norm: bool = False
    rope: bool = False
    swiglu: bool = False
    grouped: bool = False
    no_biases: bool = False

    def __post_init__(self) -> None:
        for name in NAMES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False")

    @property
    def on(self) -> tuple[str, ...]:
        """The names of the switches that are on, in the order of the fields."""
        return tuple(name for name in NAMES if getattr(self, name))


NAMES = tuple(field.name for field in fields(Switches))
GPT2 = Switches()
LLAMA = Switches(**dict.fromkeys(NAMES, True))


def hidden_dim(emb_dim: int) -> int:
    """The width F of SwiGLU's layers that leaves the number of weights as it is: 8/3 D, rounded.

    GELU's two layers have 2 * 4D * D weights, SwiGLU's three have 3 * F * D.
    """
    return round(8 * emb_dim / 3)


class NoPositions(nn.Module):
    """What stands in the place of `pos_emb` where nothing is added: zeros. (T,) -> (T, 1)."""

    def __init__(self, context_length: int):
        super().__init__()
        self.num_embeddings = context_length

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(positions), 1, device=positions.device)


class Attention(llama.GroupedQueryAttention):
    """Llama's attention, which need not rotate and may have biases. (b, T, D) -> (b, T, D)."""

    def __init__(self, config: GPTConfig, groups: int, rope: bool):
        super().__init__(
            d_in=config.emb_dim,
            num_heads=config.n_heads,
            num_kv_groups=groups,
            context_length=config.context_length,
            qkv_bias=config.qkv_bias,
            rope_base=ROPE_BASE,
        )
        self.rotates = rope
        if config.linear_bias:
            self.out_proj = nn.Linear(config.emb_dim, config.emb_dim)

    def rope(
        self, num_tokens: int, before: int = 0, device: torch.device | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The cosines and sines of the angles, two of (num_tokens, d): without RoPE all angles are 0."""
        cos, sin = super().rope(num_tokens, before, device)
        if self.rotates:
            return cos, sin
        return torch.ones_like(cos), torch.zeros_like(sin)


class FeedForward(llama.FeedForward):
    """SwiGLU that may have biases. (b, T, D) -> (b, T, D)."""

    def __init__(self, config: GPTConfig):
        width = hidden_dim(config.emb_dim)
        super().__init__({"emb_dim": config.emb_dim, "hidden_dim": width})
        if config.linear_bias:
            self.fc1 = nn.Linear(config.emb_dim, width)
            self.fc2 = nn.Linear(config.emb_dim, width)
            self.fc3 = nn.Linear(width, config.emb_dim)


class SwitchedModel(GPTModel):
    """A GPTModel with Llama's modules where a switch is on. Token ids in, logits out: (b, T) -> (b, T, V).

    `groups` is the number of groups where `grouped` is on: half of the heads, if it is not given. Attributes:
    `config` has the biases as they are here, `n_kv_groups` is the number of keys and values of a block.

    A weight that a plain GPTModel has as well, by its name and shape, begins as it does there after the same
    `torch.manual_seed`; so two of these models differ at first only in what a switch brings.

    Raises ValueError for groups that the heads cannot be divided among, for dropout, which Llama has not, and
    with RoPE for heads of an odd width.
    """

    def __init__(self, config: GPTConfig, switches: Switches = GPT2, groups: int | None = None):
        if config.drop_rate:
            raise ValueError(
                f"drop_rate is {config.drop_rate}; it must be 0, since a LlamaModel has no dropout"
            )
        first = GPTModel(config).state_dict()
        if switches.no_biases:
            config = replace(config, qkv_bias=False, linear_bias=False, norm_bias=False)
        super().__init__(config)
        self.config = config
        self.switches = switches
        self.n_kv_groups = kv_groups(config, switches, groups)
        if switches.rope:
            self.pos_emb = NoPositions(config.context_length)
        for block in self.trf_blocks:
            if switches.rope or switches.grouped:
                block.att = Attention(config, self.n_kv_groups, switches.rope)
            if switches.swiglu:
                block.ff = FeedForward(config)
            if switches.rms_norm:
                block.norm1 = llama.RMSNorm(config.emb_dim, config.norm_eps)
                block.norm2 = llama.RMSNorm(config.emb_dim, config.norm_eps)
        if switches.rms_norm:
            self.final_norm = llama.RMSNorm(config.emb_dim, config.norm_eps)
        own = self.state_dict()
        fits = {n: w for n, w in first.items() if n in own and own[n].shape == w.shape}
        self.load_state_dict(own | fits)


def kv_groups(config: GPTConfig, switches: Switches, groups: int | None = None) -> int:
    """The number K of keys and values in a block: one for each head, or one for each group where they share.

    `groups` is None for half of the heads, at least 1. Raises ValueError where the heads cannot be divided so.
    """
    heads = config.n_heads
    if groups is None:
        groups = max(1, heads // 2)
    if groups not in divisors(heads):
        raise ValueError(
            f"{heads} heads cannot be divided among {groups} groups; groups must be one of {divisors(heads)}"
        )
    if not switches.grouped:
        return heads
    return groups


def parameters(config: GPTConfig, switches: Switches, groups: int | None = None) -> int:
    """The number of trained parameters of a SwitchedModel, by the formula of each part."""
    D = config.emb_dim
    has_bias = config.linear_bias and not switches.no_biases
    qkv_bias = config.qkv_bias and not switches.no_biases
    has_shift = config.norm_bias and not switches.no_biases and not switches.rms_norm
    norm = D * (1 + has_shift)
    keys = kv_groups(config, switches, groups) * config.head_dim  # numbers of a token's keys
    attention = (D + 2 * keys) * (D + qkv_bias) + D * (D + has_bias)
    width = 4 * D
    layers = 2
    if switches.swiglu:
        width = hidden_dim(D)
        layers = 3
    feed_forward = layers * width * D + ((layers - 1) * width + D) * has_bias
    positions = 0
    if not switches.rope:
        positions = config.context_length * D
    vocabulary = config.vocab_size * D * (2 - config.tie_embeddings)
    return positions + vocabulary + config.n_layers * (attention + feed_forward + 2 * norm) + norm


def cache_bytes(
    config: GPTConfig, switches: Switches, n_tokens: int, groups: int | None = None
) -> int:
    """The bytes of the keys and values that a model keeps of `n_tokens` while it generates, in float32.

    2 * L * K * d numbers a token: a key and a value of d numbers, for each of K groups, in each of L blocks.
    """
    per_token = 2 * config.n_layers * kv_groups(config, switches, groups) * config.head_dim
    return per_token * n_tokens * BYTES
