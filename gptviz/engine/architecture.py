"""What a model is made of, in one record: its sites, its norms, and what its scores are computed from.

Each class of model has such a record here, found by the class of the model or of its config. So nothing has
to ask which architecture a model has: it asks the record.

Shapes: B texts in a batch, t new tokens, T tokens, D emb_dim, H heads, K groups of heads that share a key and
a value, d head_dim, F hidden_dim.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gptviz import llama
from gptviz.engine import shapes
from gptviz.engine.attending import Append, attend, attend_in_groups
from gptviz.engine.config import GPTConfig, Settings
from gptviz.engine.kinds import Config, Model
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.shapes import Shapes
from gptviz.engine.site import Shortcut, Site
from gptviz.fast.kernels import modules_of
from gptviz.llama import GroupedQueryAttention, LlamaModel, RMSNorm, apply_rope
from gptviz.model import (
    GELU,
    FeedForward,
    GPTModel,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
)


@dataclass(frozen=True)
class NormPlace:
    """A norm of each block, or the last one: its module, and the site that is its input.

    `module` is a path inside a block, or inside the model for the last one, whose `source` is of the last
    block.
    """

    module: str
    source: str


@dataclass(frozen=True)
class Named:
    """What its parts are called on the screen, and the classes whose lines a reader is shown.

    `positions` says in a few words what a position does: "added to the stream", or "turns queries and keys".
    """

    norm: str
    activation: str
    positions: str
    norm_class: type[nn.Module]
    attention_class: type[nn.Module]
    feed_forward_class: type[nn.Module]
    block_class: type[nn.Module]

    @property
    def words(self) -> dict[str, str]:
        """The names of "norm" and "activation" alone."""
        return {"norm": self.norm, "activation": self.activation}


@dataclass(frozen=True)
class Architecture:
    """What is particular to one class of model.

    `sites` are the rows of its table, in the order of the pass, by name. `norms` are those of a block, in the
    order of the pass, and `final_norm` is the one after all blocks. A norm that is `centred` subtracts the
    mean of its input, and divides by the deviation; any other divides by the root of the mean square.

    `embedded` are the sites whose sum is the stream into block 0, by what each is of ("embedding",
    "position"), and `start` is the site of that sum. `embed` computes it for ids (B, t) at positions (t,):
    (B, t, D).

    A score is the dot product of a query and a key: `scores` are the sites of the two, (H, T, d) and (H, T, d)
    or (K, T, d). `attend` is the attention for tokens after others (`gptviz.engine.attending`). `projected` takes an
    attention module, "q" or "k", what the projection of that gave one head at some positions from `first` on,
    (d,) or (n, d), and a direction (d,) of what the scores have in its place. It returns the direction of the
    projection's own numbers, (d,) or (n, d): what is between the two is linear, with its norms held as they are.

    `hidden` are the sites of the feed-forward's hidden layer before its nonlinearity, and `active` the one after
    it, which the module `down` of a block takes: it is linear. Of two hidden sites the first is a gate: `bend`
    of a block is the function through which it goes, and the result is multiplied by the second.

    `shapes` are those of its parameters.

    `named` has the words and classes of its parts. `context_length` is the number of tokens that a model reads.
    `built_with` yields (name, value) for each setting of the config that can be read off the model's modules,
    once for each module that shows it.

    `called` has the names of pages that are called otherwise for such a model.
    """

    model: type[nn.Module]
    config: type[Settings]
    sites: Mapping[str, Site]
    norms: tuple[NormPlace, ...]
    final_norm: NormPlace
    centred: bool
    embedded: Mapping[str, str]
    start: str
    embed: Callable[[Any, Tensor, Tensor], Tensor]
    scores: tuple[str, str]
    attend: Callable[[Any, Tensor, int, Append], Tensor]
    projected: Callable[[Any, str, Tensor, Tensor, int], Tensor]
    hidden: tuple[str, ...]
    active: str
    down: str
    bend: Callable[[Any], Callable[[Tensor], Tensor]]
    shapes: Shapes
    named: Named
    context_length: Callable[[Any], int]
    built_with: Callable[[Any], Iterator[tuple[str, object]]]
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def spread(self) -> str:
        """What a norm divides by the root of, as the column of a table is called: "variance", "mean_square"."""
        if self.centred:
            return "variance"
        return "mean_square"

    @property
    def past(self) -> tuple[str, str]:
        """The sites of the keys and the values that are kept for later tokens (a KV cache)."""
        kept = {site.in_past: name for name, site in self.sites.items()}
        return kept["keys"], kept["values"]

    @property
    def lines(self) -> dict[str, Callable[..., Any]]:
        """The functions that are shown as the model's code, by name: a norm's as computed, and its "formula"."""
        model: Any = self.model
        norm: Any = self.named.norm_class
        return {
            "model": model.forward,
            "hidden": model.final_hidden,
            "block": self.named.block_class.forward,
            "attention": self.named.attention_class.forward,
            "norm": norm.forward,
            "formula": getattr(norm, "formula", norm.forward),
        }


def _by_name(*sites: Site) -> dict[str, Site]:
    return {site.name: site for site in sites}


# ---- GPT-2 ----

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


def _gpt_stream(model: GPTModel, in_idx: Tensor, positions: Tensor) -> Tensor:
    """The stream into block 0: (B, t) ids at positions (t,) -> (B, t, D)."""
    summed: Tensor = model.drop_emb(model.tok_emb(in_idx) + model.pos_emb(positions))
    return summed


def _gpt_built_with(model: GPTModel) -> Iterator[tuple[str, object]]:
    yield "vocab_size", model.tok_emb.num_embeddings
    # a classifier's head has a row for each class instead
    yield "vocab_size", model.out_head.weight.shape[0]
    yield "emb_dim", model.tok_emb.embedding_dim
    yield "context_length", model.pos_emb.num_embeddings
    yield "n_layers", len(model.trf_blocks)
    yield "tie_embeddings", model.out_head.weight is model.tok_emb.weight
    for module in modules_of(model):
        if isinstance(module, MultiHeadAttention):
            yield "n_heads", module.num_heads
            yield "qkv_bias", module.W_query.bias is not None
            yield "linear_bias", module.out_proj.bias is not None
        elif isinstance(module, LayerNorm):
            yield "norm_eps", module.eps
            yield "norm_bias", module.shift is not None
        elif isinstance(module, GELU | torch.nn.GELU):
            yield (
                "activation",
                "gelu" if getattr(module, "approximate", "tanh") == "none" else "gelu_tanh",
            )


GPT2 = Architecture(
    GPTModel,
    GPTConfig,
    _GPT2_SITES,
    norms=(NormPlace("norm1", "resid_pre"), NormPlace("norm2", "resid_mid")),
    final_norm=NormPlace("final_norm", "resid_post"),
    centred=True,
    embedded={"embedding": "tok_emb", "position": "pos_emb"},
    start="embed",
    embed=_gpt_stream,
    scores=("q", "k"),
    attend=attend,
    projected=lambda att, site, rows, direction, first: direction,
    hidden=("mlp_pre",),
    active="mlp_act",
    down="ff.layers.2",
    bend=lambda block: block.ff.layers[1],
    shapes=shapes.GPT2,
    named=Named(
        "LayerNorm",
        "GELU",
        "added to the stream",
        LayerNorm,
        MultiHeadAttention,
        FeedForward,
        TransformerBlock,
    ),
    context_length=lambda model: model.pos_emb.num_embeddings,
    built_with=_gpt_built_with,
)

# ---- Llama, Qwen2, Qwen3 ----

_LLAMA_SITES = _by_name(
    Site("tok_emb", "tok_emb", "output", "rows", "(T, D)", "each token's embedding"),
    _GPT2_SITES["resid_pre"],
    Site("q", _BLOCK + "att.W_query", "output", "heads", "(H, T, d)", "queries, before they are turned"),
    Site("k", _BLOCK + "att.W_key", "output", "groups", "(K, T, d)", "keys, before they are turned"),
    Site("v", _BLOCK + "att.W_value", "output", "groups", "(K, T, d)", "values", in_past="values"),
    Site("q_rot", _BLOCK + "att.rotated_queries", "output", "heads", "(H, T, d)",
         "queries, turned by their positions"),
    # what later tokens need of a key is the turned one
    Site("k_rot", _BLOCK + "att.rotated_keys", "output", "groups", "(K, T, d)",
         "keys, turned by their positions", in_past="keys"),
    Site("attn", _BLOCK + "att.attn_weights", "output", "weights", "(H, T, T)", "attention weights"),
    Site("z", _BLOCK + "att.out_proj", "input", "heads", "(H, T, d)", "each head's weighted values"),
    _GPT2_SITES["attn_out"],
    _GPT2_SITES["resid_mid"],
    Site("mlp_gate", _BLOCK + "ff.fc1", "output", "rows", "(T, F)", "the feed-forward's gate, before SiLU"),
    Site("mlp_up", _BLOCK + "ff.fc2", "output", "rows", "(T, F)", "what the gate is multiplied with"),
    Site("mlp_act", _BLOCK + "ff.fc3", "input", "rows", "(T, F)", "the feed-forward's SwiGLU: their product"),
    _GPT2_SITES["mlp_out"],
    _GPT2_SITES["resid_post"],
    Site("final", "final_norm", "output", "rows", "(T, D)", "after the final RMSNorm"),
)  # fmt: skip


def _llama_stream(model: LlamaModel, in_idx: Tensor, positions: Tensor) -> Tensor:
    """The stream into block 0: (B, t) ids -> (B, t, D). Nothing is added for the positions."""
    embedded: Tensor = model.tok_emb(in_idx)
    return embedded


def _llama_projected(
    att: GroupedQueryAttention, site: str, rows: Tensor, direction: Tensor, first: int
) -> Tensor:
    """A direction of a head's turned queries or keys as one of the projection's output, (n, d) or (d,)."""
    n = rows.numel() // rows.shape[-1]
    cos, sin = (table.to(direction) for table in att.rope(n, before=first))  # (n, d) each
    back: Tensor = apply_rope(direction, cos, -sin).reshape(rows.shape)  # turned the other way
    norm = {"q": att.q_norm, "k": att.k_norm}[site]
    if norm is None:
        return back
    root = (rows.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return back * norm.scale.detach().to(direction) / root


def _llama_built_with(model: LlamaModel) -> Iterator[tuple[str, object]]:
    yield "vocab_size", model.tok_emb.num_embeddings
    # a classifier's head has a row for each class instead
    yield "vocab_size", model.out_head.weight.shape[0]
    yield "emb_dim", model.tok_emb.embedding_dim
    yield "context_length", model.context_length
    yield "n_layers", len(model.trf_blocks)
    yield "tie_embeddings", model.out_head.weight is model.tok_emb.weight
    for block in model.trf_blocks:
        yield "hidden_dim", block.ff.fc1.out_features
    for module in modules_of(model):
        if isinstance(module, GroupedQueryAttention):
            yield "n_heads", module.num_heads
            yield "n_kv_groups", module.num_kv_groups
            yield "head_dim", module.head_dim
            yield "qkv_bias", module.W_query.bias is not None
            yield "qk_norm", module.q_norm is not None
            yield "rope_base", module.rope_base
        elif isinstance(module, RMSNorm):
            yield "norm_eps", module.eps


LLAMA = Architecture(
    LlamaModel,
    LlamaConfig,
    _LLAMA_SITES,
    norms=GPT2.norms,
    final_norm=GPT2.final_norm,
    centred=False,
    embedded={"embedding": "tok_emb"},
    start="tok_emb",
    embed=_llama_stream,
    scores=("q_rot", "k_rot"),
    attend=attend_in_groups,
    projected=_llama_projected,
    hidden=("mlp_gate", "mlp_up"),
    active="mlp_act",
    down="ff.fc3",
    bend=lambda block: F.silu,
    shapes=shapes.LLAMA,
    named=Named(
        "RMSNorm",
        "SwiGLU",
        "turns queries and keys",
        RMSNorm,
        GroupedQueryAttention,
        llama.FeedForward,
        llama.TransformerBlock,
    ),
    context_length=lambda model: model.context_length,
    built_with=_llama_built_with,
    called={"layernorm": "Norm"},
)

ARCHITECTURES = (GPT2, LLAMA)

_BY_CLASS: dict[type, Architecture] = {
    made_of: architecture
    for architecture in ARCHITECTURES
    for made_of in (architecture.model, architecture.config)
}


def architecture_of(model: Model | Config | nn.Module) -> Architecture:
    """The record of a model, or of a config, by its class. Raises ValueError for any other class."""
    for kind in type(model).__mro__:
        if kind in _BY_CLASS:
            return _BY_CLASS[kind]
    known = ", ".join(kind.__name__ for kind in _BY_CLASS)
    raise ValueError(f"a {type(model).__name__} cannot be shown; known are {known}")


def position_vectors(model: Model) -> Tensor:
    """The vector that is added for each position, (context length, D). Raises ValueError if there is none."""
    kind = architecture_of(model)
    site = kind.embedded.get("position")
    if site is None:
        raise ValueError(
            f"a {type(model).__name__} adds no vector for a position: it turns each block's queries and keys "
            "by it"
        )
    return model.get_parameter(f"{kind.sites[site].module}.weight")
