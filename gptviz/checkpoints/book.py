"""The book's own files: `torch.save(model.state_dict())`, alone or beside an optimizer's state.

The names are ours. What the file does not say is the number of heads; everything else is in the
shapes. The masks may be there or not; dropout layers, however called, leave no trace in a file.
"""

import re

from gptviz.checkpoints.assemble import Copy, Dialect
from gptviz.checkpoints.errors import CheckpointError, HeadsMissing, errors_of
from gptviz.checkpoints.tensors import Tensors
from gptviz.engine.blank import blank_model
from gptviz.engine.config import WIDEST, GPTConfig, divisors

IN_BLOCK = re.compile(r"trf_blocks\.(\d+)\.")
SIZES = ("tok_emb.weight", "pos_emb.weight")


def table(config: GPTConfig) -> list[Copy]:
    """Every tensor of our model, under its own name."""
    tied = {"out_head.weight"} if config.tie_embeddings else set()
    return [Copy(name, name) for name in blank_model(config).state_dict() if name not in tied]


DIALECT = Dialect(
    "the book's state dict",
    table,
    prefixes=("_orig_mod.",),  # torch.compile's
    head="out_head.weight",
    ignored=re.compile(r"trf_blocks\.\d+\.att\.mask"),
)


def is_book(names: set[str]) -> bool:
    plain = {DIALECT.plain(name) for name in names}
    return "tok_emb.weight" in plain or any(IN_BLOCK.match(name) for name in plain)


def config_of(tensors: Tensors, n_heads: int | None) -> GPTConfig:
    """The config that the shapes give, with the caller's number of heads. Raises CheckpointError."""
    names = DIALECT.names(tensors)
    for name in SIZES:
        if name not in names:
            raise CheckpointError(f"{tensors.path} lacks {name}, which gives the model's size")
        if len(tensors.shapes[names[name]]) != 2:
            shape = tensors.shapes[names[name]]
            raise CheckpointError(f"{tensors.path}: {name} has the shape {shape}; expected two dimensions")
    vocab_size, emb_dim = tensors.shapes[names["tok_emb.weight"]]
    if not 1 <= emb_dim <= WIDEST:
        raise CheckpointError(f"{tensors.path}: emb_dim is {emb_dim}; it must be from 1 to {WIDEST}")
    context_length, _ = tensors.shapes[names["pos_emb.weight"]]
    blocks = {found[1] for name in names if (found := IN_BLOCK.match(name))}
    if n_heads is None:
        choices = divisors(emb_dim)
        raise HeadsMissing(
            f"{tensors.path} does not say how many attention heads the model has; say it as its config did: "
            f"gptviz.load({tensors.path.name!r}, n_heads=...). {emb_dim} dimensions can be divided among "
            f"{', '.join(map(str, choices))} heads; GPT-2 has 64 dimensions per head",
            choices,
            emb_dim,
        )
    tied = "out_head.weight" not in names or tensors.shares(names["out_head.weight"], names["tok_emb.weight"])
    with errors_of(tensors.path):
        return GPTConfig(
            vocab_size=vocab_size,
            context_length=context_length,
            emb_dim=emb_dim,
            n_heads=n_heads,
            n_layers=len(blocks),
            qkv_bias=any(name.endswith(".att.W_query.bias") for name in names),
            tie_embeddings=tied,
            norm_bias="final_norm.shift" in names,
            linear_bias=any(name.endswith(".att.out_proj.bias") for name in names),
        )
