"""The shape of every parameter of a model in the words of its config, and which modules of a block are alike."""

from collections.abc import Mapping
from dataclasses import dataclass

_D = ("emb_dim",)
_DD = ("emb_dim", "emb_dim")
_TABLE = ("vocab_size", "emb_dim")


@dataclass(frozen=True)
class Shapes:
    """What a model's parameters are like.

    `of` has a shape by the parameter's name, which in a block is without "trf_blocks.3." in front. A side of it is
    a product of the config's numbers: "4 emb_dim", or "n_heads × head_dim". A model has no parameter that its
    config switches off.

    `alike` are the modules of a block in the order of the sum; those of one entry have the same shapes.
    """

    of: Mapping[str, tuple[str, ...]]
    alike: tuple[tuple[str, ...], ...]


_ATTENTION = ("att.W_query", "att.W_key", "att.W_value", "att.out_proj")
_NORMS = ("norm1", "norm2")

GPT2 = Shapes(
    {
        "tok_emb.weight": _TABLE,
        "pos_emb.weight": ("context_length", "emb_dim"),
        **{f"{module}.weight": _DD for module in _ATTENTION},
        **{f"{module}.bias": _D for module in _ATTENTION},
        "ff.layers.0.weight": ("4 emb_dim", "emb_dim"),
        "ff.layers.0.bias": ("4 emb_dim",),
        "ff.layers.2.weight": ("emb_dim", "4 emb_dim"),
        "ff.layers.2.bias": _D,
        **{f"{norm}.{name}": _D for norm in (*_NORMS, "final_norm") for name in ("scale", "shift")},
        "out_head.weight": _TABLE,
    },
    alike=(_ATTENTION[:3], _ATTENTION[3:], ("ff.layers.0",), ("ff.layers.2",), _NORMS),
)

_HEADS = "n_heads × head_dim"
_GROUPS = "n_kv_groups × head_dim"

LLAMA = Shapes(
    {
        "tok_emb.weight": _TABLE,
        "att.W_query.weight": (_HEADS, "emb_dim"),
        "att.W_key.weight": (_GROUPS, "emb_dim"),
        "att.W_value.weight": (_GROUPS, "emb_dim"),
        "att.W_query.bias": (_HEADS,),
        "att.W_key.bias": (_GROUPS,),
        "att.W_value.bias": (_GROUPS,),
        "att.out_proj.weight": ("emb_dim", _HEADS),
        "att.q_norm.scale": ("head_dim",),
        "att.k_norm.scale": ("head_dim",),
        "ff.fc1.weight": ("hidden_dim", "emb_dim"),
        "ff.fc2.weight": ("hidden_dim", "emb_dim"),
        "ff.fc3.weight": ("emb_dim", "hidden_dim"),
        **{f"{norm}.scale": _D for norm in (*_NORMS, "final_norm")},
        "out_head.weight": _TABLE,
    },
    alike=(
        _ATTENTION[:1],
        _ATTENTION[1:3],
        _ATTENTION[3:],
        ("att.q_norm", "att.k_norm"),
        ("ff.fc1", "ff.fc2"),
        ("ff.fc3",),
        _NORMS,
    ),
)
