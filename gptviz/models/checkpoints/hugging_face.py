"""Hugging Face's layout: config.json of a GPT-2 or a GPT-Neo, and its weights in one file or several.

GPT-2's Conv1D keeps weights as (in, out), and query, key and value as one tensor. GPT-Neo (Black et al.,
2021; TinyStories) has a tensor each, as torch keeps them, and does not divide scores by the root of a head's
width: our queries are that much longer instead. Some of its blocks look back over no more than `window_size`
tokens; a text of at most so many is read alike by all blocks, and there our context ends.

A GPT-2 may scale its scores otherwise, too, and then its queries are made longer or shorter: `query_factors`.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gptviz.engine.config import GPTConfig
from gptviz.engine.index import one_of
from gptviz.models.checkpoints.assemble import Copy, Dialect
from gptviz.models.checkpoints.errors import CheckpointError, errors_of
from gptviz.models.checkpoints.looks import read_json
from gptviz.models.checkpoints.tensors import Tensors, open_tensors

# in the order in which transformers looks for them
WEIGHTS = tuple(
    f"{name}{index}"
    for name in ("model.safetensors", "pytorch_model.bin")
    for index in ("", ".index.json")
)

# their parts of a block, and ours
MLP = {"mlp.c_fc": "ff.layers.0", "mlp.c_proj": "ff.layers.2"}
LINEARS = {"attn.c_proj": "att.out_proj"} | MLP
NEO_LINEARS = {"attn.attention.out_proj": "att.out_proj"} | MLP
NORM = {"weight": "scale", "bias": "shift"}
QKV = ("att.W_query", "att.W_key", "att.W_value")

# transformers has several names for either of our two functions
ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
}

# What a config may ask for that this model does not do, with the one value that it does.
ONLY = {
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": None,
}

# How scores are scaled, which our queries follow. The third is how 16-bit numbers are spared a rounding: of
# float32, which is what the numbers here are, it changes nothing.
SCALES = ("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn")

# of each key of ours, theirs, and its value where a config leaves it out
GPT2_KEYS = {
    "context_length": ("n_positions", 1024),
    "emb_dim": ("n_embd", 768),
    "n_heads": ("n_head", 12),
    "n_layers": ("n_layer", 12),
    "drop_rate": ("resid_pdrop", 0.1),
    "inner": ("n_inner", None),
}
NEO_KEYS = {
    "context_length": ("max_position_embeddings", 2048),
    "emb_dim": ("hidden_size", 2048),
    "n_heads": ("num_heads", 16),
    "n_layers": ("num_layers", 24),
    "drop_rate": ("resid_dropout", 0.0),
    "inner": ("intermediate_size", None),
}
ROOT = "transformer."  # before all names but the head's, or before none
FAMILIES = {"gpt2": GPT2_KEYS, "gpt_neo": NEO_KEYS}

# of a class of theirs, its family: those without a language model's head use the token embedding as one, and
# the double heads' second one looks at what the first model gives
ARCHITECTURES = {
    "GPT2LMHeadModel": "gpt2",
    "GPT2Model": "gpt2",
    "GPT2DoubleHeadsModel": "gpt2",
    "GPTNeoForCausalLM": "gpt_neo",
    "GPTNeoModel": "gpt_neo",
}
ALTERNATING = [[["global", "local"], 12]]  # GPT-Neo's blocks, where a config leaves it out


def gpt2_table(
    n_layers: int,
    root: str = "",
    turned: bool = False,
    biases: bool = True,
    query_factors: Sequence[float] = (),
) -> list[Copy]:
    """Every tensor under GPT-2's own names, which begin with `root`; `turned` weights are (in, out).

    `query_factors`: how many times longer our queries are, of each block; as long as theirs if not given.
    """
    kinds = ("weight", "bias") if biases else ("weight",)
    copies = [
        Copy(f"{root}wte.weight", "tok_emb.weight"),
        Copy(f"{root}wpe.weight", "pos_emb.weight"),
    ]
    for block in range(n_layers):
        theirs = f"{root}h.{block}."
        ours = f"trf_blocks.{block}."
        for kind in kinds:
            turn = turned and kind == "weight"
            for third, part in enumerate(QKV):
                is_scaled = part == "att.W_query" and len(query_factors) > 0
                factor = 1.0
                if is_scaled:
                    factor = query_factors[block]
                source = f"{theirs}attn.c_attn.{kind}"
                target = f"{ours}{part}.{kind}"
                copies.append(Copy(source, target, turn, third, factor=factor))
            copies += _others(theirs, ours, LINEARS, kind, turn)
    return copies + [Copy(f"{root}ln_f.{kind}", f"final_norm.{NORM[kind]}") for kind in kinds]


def _others(
    theirs: str, ours: str, linears: dict[str, str], kind: str, turned: bool = False
) -> list[Copy]:
    """The weights, or the biases, of what a block has beside query, key and value."""
    copies = [Copy(f"{theirs}{t}.{kind}", f"{ours}{o}.{kind}", turned) for t, o in linears.items()]
    return copies + [Copy(f"{theirs}ln_{n}.{kind}", f"{ours}norm{n}.{NORM[kind]}") for n in (1, 2)]


def table(config: GPTConfig) -> list[Copy]:
    """Every tensor of a GPT-2 of theirs."""
    return gpt2_table(config.n_layers, turned=True) + head_table(config)


def neo_table(config: GPTConfig) -> list[Copy]:
    """Every tensor of a GPT-Neo."""
    copies = [
        Copy("wte.weight", "tok_emb.weight"),
        Copy("wpe.weight", "pos_emb.weight", first=True),
    ]
    for block in range(config.n_layers):
        theirs = f"h.{block}."
        ours = f"trf_blocks.{block}."
        for name, part, factor in zip(
            "qkv", QKV, (math.sqrt(config.head_dim), 1.0, 1.0), strict=True
        ):
            source = f"{theirs}attn.attention.{name}_proj.weight"
            copies.append(Copy(source, f"{ours}{part}.weight", factor=factor))
        copies += [copy for kind in NORM for copy in _others(theirs, ours, NEO_LINEARS, kind)]
    return (
        copies
        + [Copy(f"ln_f.{kind}", f"final_norm.{NORM[kind]}") for kind in NORM]
        + head_table(config)
    )


def head_table(config: GPTConfig) -> list[Copy]:
    """The output head, where it is not tied to the embedding."""
    if config.tie_embeddings:
        return []
    return [Copy("lm_head.weight", "out_head.weight")]


def _dialect(name: str, table: Callable[[GPTConfig], list[Copy]], attention: str) -> Dialect:
    # causal masks, and the double heads' second head, which no logit depends on
    ignored = re.compile(rf"h\.\d+\.{attention}\.(bias|masked_bias)|multiple_choice_head\..*")
    return Dialect(f"a Hugging Face {name}", table, "lm_head.weight", ROOT, ignored, OTHER_NAMES)


# as the first releases had it: DialoGPT's files
OTHER_NAMES = {"lm_head.decoder.weight": "lm_head.weight"}

DIALECT = _dialect("GPT-2", table, "attn")
NEO_DIALECT = _dialect("GPT-Neo", neo_table, r"attn\.attention")


def dialect_of(config: GPTConfig, values: dict[str, Any]) -> Dialect:
    """The names of a model's tensors, by our config and by the `values` of theirs that it was read from."""
    if not config.qkv_bias:  # of the two, only GPT-2 has a bias in query, key and value
        return NEO_DIALECT
    scaled = values.get("scale_attn_by_inverse_layer_idx", False)
    if values.get("scale_attn_weights", True) and not scaled:
        return DIALECT

    def scaled_table(config: GPTConfig) -> list[Copy]:
        factors = query_factors(config, values)
        return gpt2_table(config.n_layers, turned=True, query_factors=factors) + head_table(config)

    return replace(DIALECT, table=scaled_table)


def query_factors(config: GPTConfig, values: dict[str, Any]) -> list[float]:
    """The factor of our queries to a GPT-2's, for each block, so that all scores are the same.

    Ours divides every score by the root of a head's width. With "scale_attn_weights" false theirs does not,
    and with "scale_attn_by_inverse_layer_idx" it divides by the number of the block, from 1, as well.
    """
    if values.get("scale_attn_weights", True):
        root = 1.0
    else:
        root = math.sqrt(config.head_dim)
    if not values.get("scale_attn_by_inverse_layer_idx", False):
        return [root] * config.n_layers
    return [root / (block + 1) for block in range(config.n_layers)]


def has_weights(folder: Path) -> bool:
    """Whether the folder has weights under a name that transformers gives them."""
    return any((folder / name).is_file() for name in WEIGHTS)


def weights_of(folder: Path) -> Tensors:
    """The folder's weights. Raises CheckpointError, listing what was looked for."""
    for name in WEIGHTS:
        if (folder / name).is_file():
            return open_tensors(folder / name)
    raise CheckpointError(f"{folder} has no weights: none of {', '.join(WEIGHTS)} is there")


def read_config(path: Path) -> GPTConfig:
    """Our config from their file. Raises CheckpointError, see `config_of`."""
    return config_of(read_json(path), path)


def config_of(values: dict[str, Any], path: Path) -> GPTConfig:
    """Our config from theirs. Raises CheckpointError that names the key that this model cannot follow."""
    architectures = values.get("architectures") or None
    kind = values.get("model_type")
    if architectures not in (None, *([name] for name in ARCHITECTURES)):
        allowed = ", ".join(json.dumps([name]) for name in ARCHITECTURES)
        raise CheckpointError(
            f'{path}: "architectures" is {architectures!r}; only {allowed} can be read'
        )
    if architectures is None and "model_type" not in values:
        raise CheckpointError(
            f'{path} has neither "architectures" nor "model_type": is it a config?'
        )
    expected = ARCHITECTURES[architectures[0]] if architectures else kind
    if kind not in (None, expected) or not isinstance(expected, str) or expected not in FAMILIES:
        if architectures:
            model_types = expected
        else:
            model_types = " and ".join(FAMILIES)
        raise CheckpointError(
            f'{path}: "model_type" is {kind!r}; this model does only {model_types}'
        )
    keys = FAMILIES[expected]
    for key, value in ONLY.items():
        if values.get(key, value) != value and not (value == {} and values[key] is None):
            raise CheckpointError(
                f'{path}: "{key}" is {values[key]!r}; this model does only {value!r}'
            )
    activation = values.get("activation_function", "gelu_new")
    with errors_of(path):
        one_of('"activation_function"', activation, ACTIVATIONS)
    theirs: dict[str, Any] = {
        ours: values.get(key, default) for ours, (key, default) in keys.items()
    }
    width = theirs["emb_dim"]
    inner = theirs.pop("inner")
    if inner is not None and isinstance(width, int) and inner != 4 * width:
        name = keys["inner"][0]
        width_key = keys["emb_dim"][0]
        raise CheckpointError(
            f'{path}: "{name}" is {inner!r}; this model does only 4 x {width_key}, {4 * width}'
        )
    for key in ("tie_word_embeddings", *SCALES):
        if not isinstance(values.get(key, True), bool):
            raise CheckpointError(f'{path}: "{key}" is {values[key]!r}; it must be true or false')
    with errors_of(path):
        if expected == "gpt_neo":
            theirs["context_length"] = _seen_by_all(values, theirs["context_length"])
        return GPTConfig(
            vocab_size=values.get("vocab_size", 50257),
            qkv_bias=expected == "gpt2",
            tie_embeddings=values.get("tie_word_embeddings", True),
            activation=ACTIVATIONS[activation],
            norm_eps=values.get("layer_norm_epsilon", 1e-5),
            **theirs,
        )


def _seen_by_all(values: dict[str, Any], positions: Any) -> Any:
    """The length of text that every block of a GPT-Neo reads as a whole.

    Raises ValueError or TypeError.
    """
    kinds = {kind for kinds, _ in values.get("attention_types", ALTERNATING) for kind in kinds}
    window = values.get("window_size", 256)
    if not kinds <= {"global", "local"}:
        raise ValueError(
            f'"attention_types" has {", ".join(sorted(kinds))}; known are global and local'
        )
    if not isinstance(window, int):
        raise ValueError(f'"window_size" is {window!r}; it must be a whole number')
    if "local" in kinds and isinstance(positions, int):
        return min(positions, window)
    return positions
