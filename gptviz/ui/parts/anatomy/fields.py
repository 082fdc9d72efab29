"""What the Anatomy page's form holds of each kind of config: its numbers and switches, and configs to begin with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gptviz.analysis.anatomy import NOTEBOOK
from gptviz.engine.architecture import architecture_of
from gptviz.engine.config import GPTConfig, divisors
from gptviz.engine.kinds import Config
from gptviz.engine.llama_config import LlamaConfig, RopeFreq
from gptviz.llama import LLAMA32_CONFIG
from gptviz.model import GPT_CONFIG_124M
from gptviz.models.checkpoints.hub import HUB_MODELS


@dataclass(frozen=True)
class Fields:
    """The form of one kind of config. `most` has the largest numbers that the page can draw, and the address hold.

    `help` says of each number and switch what it does.
    """

    sizes: tuple[str, ...]
    switches: tuple[str, ...]
    most: Mapping[str, int]
    presets: Mapping[str, Config]
    help: Mapping[str, str]


_VOCABULARY = "How many tokens the model knows: one row each in tok_emb and in out_head."
_BLOCKS = "How many blocks there are, all of the same size."

# a model of 10^13 parameters still fits
_MOST = {"vocab_size": 999_999, "context_length": 999_999, "emb_dim": 65_536, "n_layers": 200}

GPT2 = Fields(
    sizes=("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"),
    switches=("qkv_bias", "tie_embeddings", "linear_bias", "norm_bias"),
    most=_MOST,
    presets={
        "GPT-2 small": HUB_MODELS["gpt2"].config,
        "medium": HUB_MODELS["gpt2-medium"].config,
        "large": HUB_MODELS["gpt2-large"].config,
        "XL": HUB_MODELS["gpt2-xl"].config,
        "DistilGPT-2": HUB_MODELS["distilgpt2"].config,
        "Let's build GPT": NOTEBOOK,
        "the book's 124M": GPTConfig.from_dict(GPT_CONFIG_124M),
    },
    help={
        "vocab_size": _VOCABULARY,
        "context_length": "How many tokens the model can read at once: one row each in pos_emb.",
        "emb_dim": "How many numbers represent a token. Every tensor grows with it, the blocks' matrices with its "
        "square.",
        "n_heads": "How many heads share the emb_dim columns. It does not change the number of parameters.",
        "n_layers": _BLOCKS,
        "qkv_bias": "Whether W_query, W_key and W_value add a bias: OpenAI's GPT-2 does, the book's does not.",
        "tie_embeddings": "Whether out_head uses the numbers of tok_emb, as in OpenAI's GPT-2, or its own.",
        "linear_bias": "Whether out_proj and the feed-forward add a bias; nanoGPT's `bias=False` has none.",
        "norm_bias": "Whether the LayerNorms have a shift besides their scale; nanoGPT's `bias=False` has none.",
    },
)

_QWEN25 = LlamaConfig(  # Qwen2's kind
    151_936, 32_768, 896, 14, 24, 4864, 2,
    rope_base=1_000_000.0, qkv_bias=True, tie_embeddings=True, norm_eps=1e-6,
)  # fmt: skip
_LLAMA31 = LlamaConfig(
    128_256, 131_072, 4096, 32, 32, 14_336, 8,
    rope_base=500_000.0, rope_freq=RopeFreq(8.0, 1.0, 4.0, 8192),
)  # fmt: skip

LLAMA = Fields(
    sizes=(
        "vocab_size",
        "context_length",
        "emb_dim",
        "n_heads",
        "n_kv_groups",
        "head_dim",
        "hidden_dim",
        "n_layers",
    ),
    switches=("qkv_bias", "qk_norm", "tie_embeddings"),
    most={**_MOST, "n_heads": 1024, "head_dim": 1024, "hidden_dim": 262_144},
    presets={
        "SmolLM2 135M": HUB_MODELS["smollm2-135m"].config,
        "Qwen2.5 0.5B": _QWEN25,
        "Qwen3 0.6B": HUB_MODELS["qwen3-0.6b"].config,
        # the published model reuses tok_emb, which the book's dict does not say
        "Llama 3.2 1B": replace(LlamaConfig.from_dict(LLAMA32_CONFIG), tie_embeddings=True),
        "Llama 2 7B": LlamaConfig(32_000, 4096, 4096, 32, 32, 11_008, 32),
        "Llama 3.1 8B": _LLAMA31,
    },
    help={
        "vocab_size": _VOCABULARY,
        "context_length": "How many tokens the model can read at once. It does not change the number of parameters.",
        "emb_dim": "How many numbers represent a token. Every matrix grows with it.",
        "n_heads": "How many heads a block has, each with head_dim rows of W_query and columns of out_proj.",
        "n_kv_groups": "Among how many groups the heads are divided. Those of a group share a key and a value.",
        "head_dim": "How many numbers a query, a key and a value of a head have: even, since RoPE turns pairs.",
        "hidden_dim": "How many units a feed-forward layer has, each with a gate.",
        "n_layers": _BLOCKS,
        "qkv_bias": "Whether W_query, W_key and W_value add a bias, as in Qwen2.",
        "qk_norm": "Whether each head's queries and keys go through an RMSNorm, as in Qwen3.",
        "tie_embeddings": "Whether out_head uses the numbers of tok_emb, as in most small models, or its own.",
    },
)

_OF_KIND: dict[type, Fields] = {GPTConfig: GPT2, LlamaConfig: LLAMA}


def fields_of(config: Config) -> Fields:
    """The form of a config of this kind."""
    return _OF_KIND[architecture_of(config).config]


def parts_of(config: Config) -> dict[str, Any]:
    """A config's values in the form: all that the sum of parameters depends on, and n_heads."""
    fields = fields_of(config)
    return {name: config[name] for name in (*fields.sizes, *fields.switches)}


def preset_name(values: Mapping[str, Any], base: Config) -> str | None:
    """The name of the preset of `base`'s kind that has exactly these values; None if there is none."""
    presets = fields_of(base).presets
    return next((name for name, config in presets.items() if parts_of(config) == values), None)


def problem(values: Mapping[str, Any], base: Config) -> str | None:
    """Why there is no such model of `base`'s kind, or none that the page draws: a sentence, or None."""
    fields = fields_of(base)
    for name in fields.sizes:
        if values[name] < 1:
            return f"{name} is {values[name]:,}; it must be at least 1."
        if values[name] > fields.most.get(name, values[name]):
            return f"{name} is {values[name]:,}; this page goes up to {fields.most[name]:,}."
    if "n_kv_groups" in values:
        return _problem_of_groups(values)
    return _problem_of_heads(values["emb_dim"], values["n_heads"])


def _problem_of_heads(width: int, heads: int) -> str | None:
    if width % heads == 0:
        return None
    widths = [n for n in (width // heads * heads, (width // heads + 1) * heads) if n]
    either, or_else = (
        " or ".join(f"{n:,}" for n in numbers) for numbers in (_close(width, heads), widths)
    )
    return (
        f"emb_dim {width:,} cannot be divided among {heads:,} heads: each must get the same whole number "
        f"of dimensions. {either} heads would do, or emb_dim {or_else}."
    )


def _problem_of_groups(values: Mapping[str, Any]) -> str | None:
    heads = values["n_heads"]
    groups = values["n_kv_groups"]
    width = values["head_dim"]
    if heads % groups:
        could = " or ".join(f"{n:,}" for n in _close(heads, groups))
        return (
            f"{heads:,} heads cannot be divided among {groups:,} groups: each must have the same number of heads. "
            f"n_kv_groups {could} would do."
        )
    if width % 2:
        return f"head_dim is {width:,}; RoPE turns pairs of numbers, so it must be even: {width + 1:,} would do."
    return None


def _close(number: int, to: int) -> list[int]:
    """The divisors of a number that are next to another number: the one below, the one above."""
    found = divisors(number)
    return [n for n in found if n < to][-1:] + [n for n in found if n > to][:1]
