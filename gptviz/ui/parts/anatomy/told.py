"""What the Anatomy page says of one kind of model, where another kind is made otherwise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gptviz.analysis.anatomy import cache_memory
from gptviz.engine.architecture import architecture_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.past import past_bytes
from gptviz.figures.anatomy import percent
from gptviz.ui.parts.anatomy import fields
from gptviz.ui.words import counted, gigabytes, significant


@dataclass(frozen=True)
class Told:
    """The sentences of one kind; each function takes a config of it.

    `tables` are the embeddings in a few words, `vectors` what the line below a block has. `matrices` compares those of
    the feed-forward with attention's, `counted_as` says which part norms inside of attention are counted as, or "".
    `doubled` says what a wider stream does, `heads` what more heads do. `kept` is about the keys and values that are
    kept while a text is written, "" where nothing is to be said of them.
    """

    tables: str
    vectors: Callable[[Any], str]
    matrices: Callable[[Any], str]
    counted_as: Callable[[Any], str]
    doubled: str
    heads: Callable[[Any], str]
    kept: Callable[[Any], str]


# ---- GPT-2 ----


def _gpt_heads(config: GPTConfig) -> str:
    width = config.emb_dim
    if config.n_heads == 1:
        heads_have = f"The one head has all {width:,} rows of W_query, W_key and W_value and all columns of out_proj"
    else:
        heads_have = (
            f"The {config.n_heads:,} heads share the {width:,} rows of W_query, W_key and W_value, "
            f"{config.head_dim:,} each, and the {width:,} columns of out_proj"
        )
    return (
        f"**The number of heads does not change the size of the model.** {heads_have}. More heads are "
        "narrower heads."
    )


_XL = fields.GPT2.presets["XL"]

GPT2 = Told(
    tables="the token and position tables",
    vectors=lambda config: "biases and LayerNorms",
    matrices=lambda config: (
        "The matrices of the feed-forward layer (gold) "
        "have twice the parameters of attention's: 8 × emb_dim² against 4 × emb_dim²."
    ),
    counted_as=lambda config: "",
    doubled=(
        "Double emb_dim: the embedding tables double, but the blocks grow about "
        "fourfold. In GPT-2 XL, `tok_emb` is only "
        f"{percent(_XL.vocab_size * _XL.emb_dim / _XL.parameters)} of the model."
    ),
    heads=_gpt_heads,
    kept=lambda config: "",
)

# ---- Llama, Qwen2, Qwen3 ----


def _llama_vectors(config: LlamaConfig) -> str:
    if config.qkv_bias:
        return "biases and RMSNorms"
    return "RMSNorms"


def _llama_matrices(config: LlamaConfig) -> str:
    # each is so many times emb_dim
    feed_forward = 3 * config.hidden_dim
    attention = 2 * (config.n_heads + config.n_kv_groups) * config.head_dim
    return (
        "The three matrices of the feed-forward layer (gold) are `fc1`, the gate, `fc2`, what it is multiplied "
        f"with, and `fc3`. They have {significant(feed_forward / attention)} times the parameters of attention's: "
        "3 × hidden_dim × emb_dim against 2 × (n_heads + n_kv_groups) × head_dim × emb_dim."
    )


def _llama_counted_as(config: LlamaConfig) -> str:
    if not config.qk_norm:
        return ""
    return "`q_norm` and `k_norm`, the RMSNorms of queries and keys, are counted as attention's. "


def _llama_heads(config: LlamaConfig) -> str:
    heads = config.n_heads
    groups = config.n_kv_groups
    width = config.head_dim
    said = (
        f"**More heads make a larger model.** Each has {width:,} rows of W_query and as many columns of out_proj, "
        f"whatever emb_dim is: {counted(heads, 'head')} have {heads * width:,} of each."
    )
    if groups == heads:
        return f"{said} W_key and W_value have as many rows: no head shares its key and its value."
    own = replace(config, n_kv_groups=heads)
    return (
        f"{said} The heads of a group share a key and a value: {counted(groups, 'group')} have "
        f"{groups * width:,} rows of W_key and of W_value. With a key and a value for each head, the model would have "
        f"{own.parameters - config.parameters:,} parameters more."
    )


def _llama_kept(config: LlamaConfig) -> str:
    groups = counted(config.n_kv_groups, "group")
    a_token = past_bytes(config, 1)
    longest = cache_memory(config).iloc[-1]
    said = (
        "The model keeps the keys and values of all tokens before, so that it does not compute them again for each "
        f"new one: 2 × {counted(config.n_layers, 'block')} × {groups} × {config.head_dim:,} numbers × 4 bytes = "
        f"{gigabytes(a_token)} a token. With {config.context_length:,} tokens they take "
        f"**{gigabytes(int(longest['kept']))}** in float32."
    )
    if config.n_kv_groups == config.n_heads:
        return f"{said} Each head has a key and a value of its own: fewer groups would take less."
    times = config.n_heads // config.n_kv_groups
    return (
        f"{said} With a key and a value for each of the {config.n_heads:,} heads it would be {times:,} times as "
        "much."
    )


_LLAMA8B = fields.LLAMA.presets["Llama 3.1 8B"]

LLAMA = Told(
    tables="the token table",
    vectors=_llama_vectors,
    matrices=_llama_matrices,
    counted_as=_llama_counted_as,
    doubled=(
        "Double emb_dim alone, and every matrix doubles: hidden_dim and head_dim are numbers of their own. Larger "
        "models have more of these, too, so their blocks grow faster than `tok_emb`: in Llama 3.1 8B it is only "
        f"{percent(_LLAMA8B.vocab_size * _LLAMA8B.emb_dim / _LLAMA8B.parameters)} of the model. There is no table of "
        "positions: RoPE turns queries and keys by angles that are computed, not learned."
    ),
    heads=_llama_heads,
    kept=_llama_kept,
)

_OF_KIND: dict[type, Told] = {GPTConfig: GPT2, LlamaConfig: LLAMA}


def told_of(config: Config) -> Told:
    """What is said of a model of this kind."""
    return _OF_KIND[architecture_of(config).config]
