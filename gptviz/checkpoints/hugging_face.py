"""Hugging Face's layout: config.json of a GPT2LMHeadModel, and its weights in one file or several.

Their Conv1D keeps weights as (in, out), and query, key and value as one tensor.
"""

import json
import re
from pathlib import Path
from typing import Any

from gptviz.checkpoints.assemble import Copy, Dialect
from gptviz.checkpoints.errors import CheckpointError, errors_of
from gptviz.checkpoints.looks import read_text
from gptviz.checkpoints.tensors import Tensors, open_tensors
from gptviz.engine.config import GPTConfig

# in the order in which transformers looks for them
WEIGHTS = tuple(
    f"{name}{index}" for name in ("model.safetensors", "pytorch_model.bin") for index in ("", ".index.json")
)

# their parts of a block, and ours
LINEARS = {"attn.c_proj": "att.out_proj", "mlp.c_fc": "ff.layers.0", "mlp.c_proj": "ff.layers.2"}
NORM = {"weight": "scale", "bias": "shift"}
QKV = ("att.W_query", "att.W_key", "att.W_value")

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}

# What a config may ask for that this model does not do, with the one value that it does.
ONLY = {
    "model_type": "gpt2",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": None,
}


def gpt2_table(n_layers: int, root: str = "", turned: bool = False, biases: bool = True) -> list[Copy]:
    """Every tensor under GPT-2's own names, which begin with `root`; `turned` weights are (in, out)."""
    kinds = ("weight", "bias") if biases else ("weight",)
    copies = [Copy(f"{root}wte.weight", "tok_emb.weight"), Copy(f"{root}wpe.weight", "pos_emb.weight")]
    for block in range(n_layers):
        theirs, ours = f"{root}h.{block}.", f"trf_blocks.{block}."
        for kind in kinds:
            turn = turned and kind == "weight"
            for third, part in enumerate(QKV):
                copies.append(Copy(f"{theirs}attn.c_attn.{kind}", f"{ours}{part}.{kind}", turn, third))
            for their_part, our_part in LINEARS.items():
                copies.append(Copy(f"{theirs}{their_part}.{kind}", f"{ours}{our_part}.{kind}", turn))
            for number in (1, 2):
                copies.append(Copy(f"{theirs}ln_{number}.{kind}", f"{ours}norm{number}.{NORM[kind]}"))
    return copies + [Copy(f"{root}ln_f.{kind}", f"final_norm.{NORM[kind]}") for kind in kinds]


def table(config: GPTConfig) -> list[Copy]:
    """Every tensor of theirs."""
    head = [] if config.tie_embeddings else [Copy("lm_head.weight", "out_head.weight")]
    return gpt2_table(config.n_layers, turned=True) + head


DIALECT = Dialect(
    "a Hugging Face GPT-2",
    table,
    prefixes=("transformer.",),
    head="lm_head.weight",
    ignored=re.compile(r"h\.\d+\.attn\.(bias|masked_bias)"),  # their causal masks
)


def weights_of(folder: Path) -> Tensors:
    """The folder's weights. Raises CheckpointError, listing what was looked for."""
    for name in WEIGHTS:
        if (folder / name).is_file():
            return open_tensors(folder / name)
    raise CheckpointError(f"{folder} has no weights: none of {', '.join(WEIGHTS)} is there")


def read_config(path: Path) -> GPTConfig:
    """Our config from theirs. Raises CheckpointError that names the key that this model cannot follow."""
    values = read_json(path)
    architectures = values.get("architectures")
    if architectures not in (None, ["GPT2LMHeadModel"]):
        raise CheckpointError(
            f'{path}: "architectures" is {architectures!r}; only ["GPT2LMHeadModel"] can be read'
        )
    if architectures is None and "model_type" not in values:
        raise CheckpointError(f'{path} has neither "architectures" nor "model_type": is it a config?')
    for key, value in ONLY.items():
        if values.get(key, value) != value and not (value == {} and values[key] is None):
            raise CheckpointError(f'{path}: "{key}" is {values[key]!r}; this model does only {value!r}')
    activation = values.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f'{path}: "activation_function" is {activation!r}; it must be one of {", ".join(ACTIVATIONS)}'
        )
    width, inner = values.get("n_embd", 768), values.get("n_inner")
    if inner is not None and inner != 4 * width:
        raise CheckpointError(f'{path}: "n_inner" is {inner!r}; this model does only 4 x n_embd, {4 * width}')
    tied = values.get("tie_word_embeddings", True)
    if not isinstance(tied, bool):
        raise CheckpointError(f'{path}: "tie_word_embeddings" is {tied!r}; it must be true or false')
    with errors_of(path):
        return GPTConfig(
            vocab_size=values.get("vocab_size", 50257),
            context_length=values.get("n_positions", 1024),
            emb_dim=width,
            n_heads=values.get("n_head", 12),
            n_layers=values.get("n_layer", 12),
            drop_rate=values.get("resid_pdrop", 0.1),
            qkv_bias=True,
            tie_embeddings=tied,
            activation=ACTIVATIONS[activation],
            norm_eps=values.get("layer_norm_epsilon", 1e-5),
        )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises CheckpointError."""
    try:
        values = json.loads(read_text(path))
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} has no {path.name}: it is not a model folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a {type(values).__name__}; expected a JSON object")
    return values
