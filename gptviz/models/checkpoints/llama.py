"""Hugging Face's layout of Llama and its relatives: config.json, and weights in one file or in shards.

Llama, Qwen2 and Qwen3 have the same tensors by the same names, as torch's Linears keep them: (out, in).
Qwen2's queries, keys and values have biases, and Qwen3 has a norm for each head's queries and keys. Gate, up
and down are `fc1`, `fc2` and `fc3` in the book. A head's two halves are the coordinates of its pairs, as ours
are. Meta's own files have them in another order, and other names: they are none of these.

A context ends at `LONGEST_CONTEXT`, whatever the config says: a text of at most so many tokens is read alike.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gptviz.engine.config import is_number
from gptviz.engine.llama_config import LlamaConfig, RopeFreq
from gptviz.models.checkpoints.assemble import LONGEST_CONTEXT, Copy, Dialect
from gptviz.models.checkpoints.errors import CheckpointError, errors_of

# our key, and theirs
KEYS = {
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "emb_dim": "hidden_size",
    "n_heads": "num_attention_heads",
    "n_layers": "num_hidden_layers",
    "hidden_dim": "intermediate_size",
    "n_kv_groups": "num_key_value_heads",
    "head_dim": "head_dim",
    "tie_embeddings": "tie_word_embeddings",
    "norm_eps": "rms_norm_eps",
}
# of each family, what transformers takes where a config leaves a key out
LLAMA = {
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "intermediate_size": 11008,
    "num_key_value_heads": None,  # as many as heads
    "head_dim": None,  # hidden_size / num_attention_heads
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
}
QWEN2 = LLAMA | {
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "intermediate_size": 22016,
    "num_key_value_heads": 32,
}
FAMILIES = {"llama": LLAMA, "qwen2": QWEN2, "qwen3": QWEN2 | {"head_dim": 128}}
ROPE_THETA = 10000.0

# of a class of theirs, its family; one without a language model's head can only be read if it is tied
ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "LlamaModel": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2Model": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3Model": "qwen3",
}

# What a config may ask for that LlamaModel does not do, with the one value that it does.
ONLY = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "partial_rotary_factor": 1.0,
    "quantization_config": None,
}
EXPERTS = re.compile(
    r"(^|_)(num|n|moe)_.*experts$|_experts_per_tok$"
)  # keys of a mixture of experts

# rope_freq's words, and theirs
ROPE_FREQ = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "original_context_length": "original_max_position_embeddings",
}

BLOCK = {
    "self_attn.q_proj.weight": "att.W_query.weight",
    "self_attn.k_proj.weight": "att.W_key.weight",
    "self_attn.v_proj.weight": "att.W_value.weight",
    "self_attn.o_proj.weight": "att.out_proj.weight",
    "input_layernorm.weight": "norm1.scale",
    "post_attention_layernorm.weight": "norm2.scale",
    "mlp.gate_proj.weight": "ff.fc1.weight",
    "mlp.up_proj.weight": "ff.fc2.weight",
    "mlp.down_proj.weight": "ff.fc3.weight",
}
QKV_BIAS = {
    "self_attn.q_proj.bias": "att.W_query.bias",
    "self_attn.k_proj.bias": "att.W_key.bias",
    "self_attn.v_proj.bias": "att.W_value.bias",
}
QK_NORM = {
    "self_attn.q_norm.weight": "att.q_norm.scale",
    "self_attn.k_norm.weight": "att.k_norm.scale",
}


def table(config: LlamaConfig) -> list[Copy]:
    """Every tensor of such a model; a tied output head is none of its own."""
    parts = {**BLOCK}
    if config.qkv_bias:
        parts |= QKV_BIAS
    if config.qk_norm:
        parts |= QK_NORM
    copies = [Copy("embed_tokens.weight", "tok_emb.weight")]
    for block in range(config.n_layers):
        for theirs, ours in parts.items():
            copies.append(Copy(f"layers.{block}.{theirs}", f"trf_blocks.{block}.{ours}"))
    copies.append(Copy("norm.weight", "final_norm.scale"))
    if not config.tie_embeddings:
        copies.append(Copy("lm_head.weight", "out_head.weight"))
    return copies


def is_llama(values: Mapping[str, Any]) -> bool:
    """Whether a config is of these families, or of their mixtures of experts, which `config_of` refuses."""
    kind = str(values.get("model_type")).removesuffix("_moe")
    architectures = values.get("architectures")
    if kind in FAMILIES or not isinstance(architectures, list):
        return kind in FAMILIES
    return any(str(name) in ARCHITECTURES for name in architectures)


def config_of(values: Mapping[str, Any], path: Path) -> LlamaConfig:
    """Our config from theirs. Raises CheckpointError that names the key that LlamaModel cannot follow."""
    family = _family(values, path)
    for key, value in ONLY.items():
        if values.get(key, value) not in (value, None):
            raise CheckpointError(
                f'{path}: "{key}" is {values[key]!r}; this model does only {value!r}'
            )
    theirs = {key: values.get(key, default) for key, default in FAMILIES[family].items()}
    ours = {key: theirs[name] for key, name in KEYS.items()}
    if ours["n_kv_groups"] is None:
        ours["n_kv_groups"] = ours["n_heads"]
    rope_base, rope_freq = _rope(values, theirs, path)
    with errors_of(path):
        config = LlamaConfig(
            **ours,
            rope_base=rope_base,
            rope_freq=rope_freq,
            qk_norm=family == "qwen3",
            qkv_bias=family == "qwen2",
        )
        _check_full_attention(values, config.n_layers)
    return shortened(config)


def shortened(config: LlamaConfig) -> LlamaConfig:
    """The config with a context that can be shown: a text of at most so many tokens is read alike."""
    return replace(config, context_length=min(config.context_length, LONGEST_CONTEXT))


def _family(values: Mapping[str, Any], path: Path) -> str:
    """The family of a config, a key of `FAMILIES`. Raises CheckpointError for any other."""
    architectures = values.get("architectures") or None
    kind = values.get("model_type")
    experts = [key for key in values if EXPERTS.search(key) and values[key] not in (None, 0)]
    if experts or str(kind).endswith("_moe"):
        what = ", ".join([f'"model_type" {kind!r}', *(f'"{key}" {values[key]}' for key in experts)])
        raise CheckpointError(
            f"{path} is of a mixture of experts ({what}), where each token goes through a few of many "
            "feed-forward layers; here all tokens go through the same one: give a dense model, such as "
            "Qwen/Qwen3-0.6B"
        )
    if architectures is None:
        expected = kind
    elif isinstance(architectures, list) and len(architectures) == 1:
        expected = ARCHITECTURES.get(str(architectures[0]))
    else:
        expected = None
    if expected not in FAMILIES or kind not in (None, expected):
        raise CheckpointError(
            f'{path}: "architectures" is {architectures!r} and "model_type" {kind!r}; only '
            f"{', '.join(ARCHITECTURES)} can be read, of the types {', '.join(FAMILIES)}"
        )
    return str(expected)


def _check_full_attention(values: Mapping[str, Any], n_layers: int) -> None:
    """Raise ValueError or TypeError for a model of which some blocks look back over a window only."""
    window = values.get("sliding_window", 4096)
    kinds = values.get("layer_types")
    if kinds is None and values.get("use_sliding_window", False) and window is not None:
        # Qwen's older configs: the blocks from this one on
        first = values.get("max_window_layers", 28)
        kinds = ["full_attention"] * min(first, n_layers)
        kinds += ["sliding_attention"] * (n_layers - len(kinds))
    others = set(kinds or []) - {"full_attention"}
    if others:
        raise ValueError(
            f"it has blocks with {', '.join(sorted(map(str, others)))} (a window of {window} tokens); here "
            "every block looks back over the whole text: give a model with full attention"
        )


def _rope(
    values: Mapping[str, Any], theirs: dict[str, Any], path: Path
) -> tuple[float, RopeFreq | None]:
    """RoPE's base, and the scaling of its frequencies. Raises CheckpointError for any other kind of it."""
    # transformers 5 writes one dict, those before it the base apart from the scaling
    key = "rope_scaling"
    if not values.get(key):
        key = "rope_parameters"
    settings = values.get(key) or {}
    if not isinstance(settings, dict) or any(isinstance(s, dict) for s in settings.values()):
        raise CheckpointError(
            f'{path}: "{key}" is {settings!r}; expected one set of numbers for all blocks'
        )
    base = settings.get("rope_theta", values.get("rope_theta", ROPE_THETA))
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise CheckpointError(
            f'{path}: the "rope_type" of "{key}" is {kind!r}; this model turns queries and keys only as '
            '"default" and "llama3" do'
        )
    if settings.get("partial_rotary_factor", 1.0) != 1.0:
        raise CheckpointError(
            f"{path}: only a part of each head is turned by its position "
            f'("partial_rotary_factor" {settings["partial_rotary_factor"]!r}); here all of it is'
        )
    if kind == "default":
        return base, None
    trained = settings.get("original_max_position_embeddings", theirs["max_position_embeddings"])
    # some configs have it outside, where transformers prefers it
    trained = values.get("original_max_position_embeddings", trained)
    numbers = settings | {"original_max_position_embeddings": trained}
    missing = [name for name in ROPE_FREQ.values() if not is_number(numbers.get(name))]
    if missing:
        raise CheckpointError(f'{path}: "{key}" needs a number for "{missing[0]}"')
    with errors_of(path):
        return base, RopeFreq(**{ours: numbers[name] for ours, name in ROPE_FREQ.items()})


def largest_possible(config: LlamaConfig, largest: Mapping[str, float]) -> float:
    """A bound on every number of a LlamaModel's pass, for any text, from the weights' largest.

    What `assemble.largest_possible` is for a GPTModel. An RMSNorm's output is no longer than sqrt(D), times
    the largest scale, and a row of a matrix no longer than sqrt(D) times its largest weight: so their product
    is at most D times both. A rotation keeps lengths.
    """

    def largest_in(name: str) -> float:
        return largest.get(name, 0.0)

    def of_normed(path: str, norm: str) -> float:
        """A Linear's output, from an RMSNorm's."""
        return width * largest_in(f"{path}.weight") * norms[norm] + largest_in(f"{path}.bias")

    def squares(n: int, x: float) -> float:
        return n * x * x  # not **: that raises where this is infinite

    width = config.emb_dim
    stream = largest_in("tok_emb.weight")
    bounds = [squares(width, stream)]
    for block in range(config.n_layers):
        path = f"trf_blocks.{block}"
        norms = {name: largest_in(f"{path}.{name}.scale") for name in ("norm1", "norm2")}
        q, k, v = (of_normed(f"{path}.att.W_{part}", "norm1") for part in ("query", "key", "value"))
        bounds += [squares(config.head_dim, q), squares(config.head_dim, k)]
        if config.qk_norm:
            q = math.sqrt(config.head_dim) * largest_in(f"{path}.att.q_norm.scale")
            k = math.sqrt(config.head_dim) * largest_in(f"{path}.att.k_norm.scale")
        bounds.append(config.head_dim * q * k)
        inner = config.n_heads * config.head_dim
        stream += inner * largest_in(f"{path}.att.out_proj.weight") * v
        bounds.append(squares(width, stream))
        gated = of_normed(f"{path}.ff.fc1", "norm2") * of_normed(f"{path}.ff.fc2", "norm2")
        stream += config.hidden_dim * largest_in(f"{path}.ff.fc3.weight") * gated
        bounds += [gated, squares(width, stream)]
    head = largest.get("out_head.weight", largest_in("tok_emb.weight"))
    return max(*bounds, width * head * largest_in("final_norm.scale"))


DIALECT = Dialect(
    "a Hugging Face Llama",
    table,
    head="lm_head.weight",
    root="model.",
    # frequencies, which older files keep beside the weights
    ignored=re.compile(r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq"),
    bound=largest_possible,
)
