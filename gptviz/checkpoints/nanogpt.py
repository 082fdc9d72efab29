"""nanoGPT's ckpt.pt: the model's state dict beside its `model_args`.

Weights are torch Linears, (out, in) as ours; query, key and value are one tensor; the head is tied;
GELU is the exact one; with `bias=False` neither Linears nor LayerNorms have a bias.
"""

import re
from pathlib import Path
from typing import Any

from gptviz.checkpoints.assemble import Dialect
from gptviz.checkpoints.errors import CheckpointError, errors_of
from gptviz.checkpoints.hugging_face import gpt2_table
from gptviz.engine.config import GPTConfig

ARGUMENTS = {
    "vocab_size": "vocab_size",
    "block_size": "context_length",
    "n_embd": "emb_dim",
    "n_head": "n_heads",
    "n_layer": "n_layers",
}


DIALECT = Dialect(
    "a nanoGPT checkpoint",
    lambda config: gpt2_table(config.n_layers, "transformer.", biases=config.linear_bias),
    prefixes=("_orig_mod.",),  # torch.compile's
    head="lm_head.weight",
    ignored=re.compile(r"transformer\.h\.\d+\.attn\.bias"),  # causal masks
)


def is_nanogpt(saved: object) -> bool:
    return isinstance(saved, dict) and "model_args" in saved and "model" in saved


def read_config(path: Path, saved: dict[str, Any]) -> GPTConfig:
    """Our config from `model_args`. Raises CheckpointError that names the argument."""
    arguments = saved["model_args"]
    if not isinstance(arguments, dict):
        raise CheckpointError(f'{path}: "model_args" holds {type(arguments).__name__}, not a dict')
    missing = [name for name in ARGUMENTS if name not in arguments]
    if missing:
        raise CheckpointError(f'{path}: "model_args" lacks {missing[0]}')
    bias = arguments.get("bias", True)
    if not isinstance(bias, bool):
        raise CheckpointError(f'{path}: "model_args" says bias is {bias!r}; it must be True or False')
    with errors_of(f'{path}: "model_args"'):
        return GPTConfig(
            **{ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()},
            drop_rate=arguments.get("dropout", 0.0),
            qkv_bias=bias,
            tie_embeddings=True,
            activation="gelu",
            norm_bias=bias,
            linear_bias=bias,
        )
