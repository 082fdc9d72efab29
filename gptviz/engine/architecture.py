"""What a model is made of, in one record: its sites, its norms, and what its scores are computed from.

Each class of model has such a record beside it, found by the class of the model or of its config. So nothing
has to ask which architecture a model has: it asks the record. GPT-2 is the only one that can be shown; what
`gptviz.llama` needs of its own is in docs/llama.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from gptviz.engine.config import GPTConfig, Settings
from gptviz.engine.site import Shortcut, Site
from gptviz.model import GPTModel


@dataclass(frozen=True)
class NormPlace:
    """A norm of each block, or the last one: its module, and the site that is its input.

    `module` is a path inside a block, or inside the model for the last one, whose `source` is of the last
    block.
    """

    module: str
    source: str


@dataclass(frozen=True)
class Architecture:
    """What is particular to one class of model.

    `sites` are the rows of its table, in the order of the pass, by name. `norms` are those of a block, in the
    order of the pass, and `final_norm` is the one after all blocks. A score is the dot product of a query and
    a key: `scores` are the sites of the two, (H, T, D/H) each.
    """

    model: type[nn.Module]
    config: type[Settings]
    sites: Mapping[str, Site]
    norms: tuple[NormPlace, ...]
    final_norm: NormPlace
    scores: tuple[str, str]


def _by_name(*sites: Site) -> dict[str, Site]:
    return {site.name: site for site in sites}


_BLOCK = "trf_blocks.{b}."

_GPT2_SITES = _by_name(
    Site("tok_emb", "tok_emb", "output", "rows", "(T, D)", "each token's embedding"),
    Site("pos_emb", "pos_emb", "output", "rows", "(T, D)", "each position's embedding"),
    Site("embed", "drop_emb", "input", "rows", "(T, D)", "their sum"),
    # the shortcut starts before norm1: replace the input of the whole block
    Site("resid_pre", _BLOCK + "norm1", "input", "rows", "(T, D)", "the residual stream into the block",
         edit_at="trf_blocks.{b}"),
    Site("q", _BLOCK + "att.W_query", "output", "heads", "(H, T, D/H)", "queries"),
    Site("k", _BLOCK + "att.W_key", "output", "heads", "(H, T, D/H)", "keys", in_past="keys"),
    Site("v", _BLOCK + "att.W_value", "output", "heads", "(H, T, D/H)", "values", in_past="values"),
    # softmax is a function, not a module, so no hook can be put on it; the dropout after it is a module
    Site("attn", _BLOCK + "att.dropout", "input", "weights", "(H, T, T)", "attention weights"),
    Site("z", _BLOCK + "att.out_proj", "input", "heads", "(H, T, D/H)", "each head's weighted values"),
    Site("attn_out", _BLOCK + "att", "output", "rows", "(T, D)", "what attention adds"),
    # the shortcut starts before norm2, and no module has the stream before that as its input or output
    Site("resid_mid", _BLOCK + "norm2", "input", "rows", "(T, D)", "the stream after attention",
         shortcut=Shortcut(plus="mlp_out", end="resid_post")),
    Site("mlp_pre", _BLOCK + "ff.layers.0", "output", "rows", "(T, 4D)", "the feed-forward before GELU"),
    Site("mlp_act", _BLOCK + "ff.layers.1", "output", "rows", "(T, 4D)", "the feed-forward's GELU"),
    Site("mlp_out", _BLOCK + "ff", "output", "rows", "(T, D)", "what the feed-forward adds"),
    Site("resid_post", "trf_blocks.{b}", "output", "rows", "(T, D)", "the stream out of the block"),
    Site("final", "final_norm", "output", "rows", "(T, D)", "after the final LayerNorm"),
)  # fmt: skip

GPT2 = Architecture(
    GPTModel,
    GPTConfig,
    _GPT2_SITES,
    norms=(NormPlace("norm1", "resid_pre"), NormPlace("norm2", "resid_mid")),
    final_norm=NormPlace("final_norm", "resid_post"),
    scores=("q", "k"),
)

_BY_CLASS: dict[type, Architecture] = {
    made_of: architecture
    for architecture in (GPT2,)
    for made_of in (architecture.model, architecture.config)
}


def architecture_of(model: nn.Module | Settings) -> Architecture:
    """The record of a model, or of a config, by its class. Raises ValueError for any other class."""
    for kind in type(model).__mro__:
        if kind in _BY_CLASS:
            return _BY_CLASS[kind]
    known = ", ".join(kind.__name__ for kind in _BY_CLASS)
    raise ValueError(f"a {type(model).__name__} cannot be shown; known are {known}")
