"""nanoGPT's ckpt.pt: the model's state dict beside its `model_args`.

Weights are torch Linears, (out, in) as ours; query, key and value are one tensor; the head is tied;
GELU is the exact one; with `bias=False` neither Linears nor LayerNorms have a bias.
"""

import re
from pathlib import Path
from typing import Any

from gptviz.checkpoints.assemble import Copy, Dialect
from gptviz.checkpoints.errors import CheckpointError
from gptviz.checkpoints.hugging_face import BLOCK, NORM, QKV
from gptviz.engine.config import GPTConfig

ARGUMENTS = {
    "vocab_size": "vocab_size",
    "block_size": "context_length",
    "n_embd": "emb_dim",
    "n_head": "n_heads",
    "n_layer": "n_layers",
}


def table(config: GPTConfig) -> list[Copy]:
    kinds = ("weight", "bias") if config.linear_bias else ("weight",)
    copies = [
        Copy("transformer.wte.weight", "tok_emb.weight"),
        Copy("transformer.wpe.weight", "pos_emb.weight"),
    ]
    for block in range(config.n_layers):
        theirs, ours = f"transformer.h.{block}.", f"trf_blocks.{block}."
        for kind in kinds:
            for third, part in enumerate(QKV):
                copies.append(Copy(f"{theirs}attn.c_attn.{kind}", f"{ours}{part}.{kind}", third=third))
            for their_part, our_part, _ in BLOCK:
                name = NORM[kind] if "norm" in our_part else kind
                copies.append(Copy(f"{theirs}{their_part}.{kind}", f"{ours}{our_part}.{name}"))
    return copies + [Copy(f"transformer.ln_f.{kind}", f"final_norm.{NORM[kind]}") for kind in kinds]


DIALECT = Dialect(
    "a nanoGPT checkpoint",
    table,
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
    try:
        return GPTConfig(
            **{ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()},
            drop_rate=arguments.get("dropout", 0.0),
            qkv_bias=bias,
            tie_embeddings=True,
            activation="gelu",
            norm_bias=bias,
            linear_bias=bias,
        )
    except (TypeError, ValueError) as error:
        raise CheckpointError(f'{path}: "model_args": {error}') from None
