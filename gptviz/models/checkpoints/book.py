"""The book's own files: `torch.save(model.state_dict())`, alone or beside an optimizer's state.

The names are ours. What the file does not say is the number of heads; everything else is in the
shapes. The masks may be there or not; dropout layers, however called, leave no trace in a file.
"""

import re

from gptviz.engine.blank import blank_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.models.checkpoints import llama
from gptviz.models.checkpoints.assemble import Copy, Dialect
from gptviz.models.checkpoints.errors import errors_of
from gptviz.models.checkpoints.sizes import embedding_sizes, heads_missing
from gptviz.models.checkpoints.tensors import Tensors

IN_BLOCK = re.compile(r"trf_blocks\.(\d+)\.")


def table(config: Config) -> list[Copy]:
    """Every tensor of our model, under its own name."""
    if config.tie_embeddings:
        tied = {"out_head.weight"}
    else:
        tied = set()
    return [Copy(name, name) for name in blank_of(config).state_dict() if name not in tied]


DIALECT = Dialect(
    "the book's state dict",
    table,
    head="out_head.weight",
    ignored=re.compile(r"trf_blocks\.\d+\.att\.mask"),
)


# the book's Llama has torch's RMSNorm, whose scale is called weight; its tables of angles are no weights
LLAMA_NORM = re.compile(r"(norm[12]?|q_norm|k_norm)\.weight$")
LLAMA_DIALECT = Dialect(
    "the book's Llama or Qwen3",
    table,
    head="out_head.weight",
    ignored=re.compile(r"(trf_blocks\.\d+\.att\.)?(mask|cos|sin)"),
    bound=llama.largest_possible,
    renamed=lambda name: LLAMA_NORM.sub(r"\1.scale", name),
)


def is_book(names: set[str]) -> bool:
    """Whether bare names are those of the book's model."""
    return "tok_emb.weight" in names or any(IN_BLOCK.match(name) for name in names)


def config_of(tensors: Tensors, n_heads: int | None) -> GPTConfig:
    """The config that the shapes give, with the caller's number of heads. Raises CheckpointError."""
    names = DIALECT.names(tensors)
    sizes = embedding_sizes(tensors, "tok_emb.weight", "pos_emb.weight", names)
    blocks = {match[1] for name in names if (match := IN_BLOCK.match(name))}
    if n_heads is None:
        raise heads_missing(tensors.path, sizes["emb_dim"])
    tied = "out_head.weight" not in names or tensors.shares(
        names["out_head.weight"], names["tok_emb.weight"]
    )
    with errors_of(tensors.path):
        return GPTConfig(
            **sizes,
            n_heads=n_heads,
            n_layers=len(blocks),
            qkv_bias=any(name.endswith(".att.W_query.bias") for name in names),
            tie_embeddings=tied,
            norm_bias="final_norm.shift" in names,
            linear_bias=any(name.endswith(".att.out_proj.bias") for name in names),
        )
