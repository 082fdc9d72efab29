"""One new token through all blocks without a module being called: half of what Python costs a step.

Writing a token is bound by reading the weights once; what is left is the way from one kernel to the next.
These are the steps of `gptviz.fast.attention` and of `gptviz.model`, to the bit, for a text of which only the
last token is new. A hook's function, a visit, is called where its module would be called. In bfloat16
attention is worked out in float32 from the keys and values as they are: the same but for rounding.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from gptviz.fast import kernels
from gptviz.fast.attention import is_causal
from gptviz.model import (
    GELU,
    FeedForward,
    GPTModel,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
)

Append = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
Visit = Callable[[Tensor], Tensor | None]
# block (None outside them), module in it, side
Visits = dict[tuple[int | None, str, str], list[Visit]]
See = Callable[[str, str, Tensor], Tensor]

# the modules that are passed here, by the side of theirs that is shown; "" is the block itself
_OUTSIDE = {"input": ("drop_emb",), "output": ("tok_emb", "pos_emb", "final_norm")}
_IN_A_BLOCK = {
    "input": ("", "norm1", "att.dropout", "att.out_proj", "norm2"),
    "output": (
        "att.W_query",
        "att.W_key",
        "att.W_value",
        "att",
        "ff.layers.0",
        "ff.layers.1",
        "ff",
        "",
    ),
}

_BOOKS = {
    GPTModel,
    TransformerBlock,
    MultiHeadAttention,
    FeedForward,
    LayerNorm,
    GELU,
    nn.GELU,
    nn.Linear,
    nn.Embedding,
    nn.Dropout,
    nn.Sequential,
}


def serves(model: nn.Module, in_idx: Tensor) -> TypeGuard[GPTModel]:
    """Whether the book's own lines would run for these ids, (B, 1), with nothing hooked in."""
    if not isinstance(model, GPTModel):
        return False
    weight = model.tok_emb.weight
    if in_idx.dim() != 2 or in_idx.shape[1] != 1 or torch_modules._has_any_global_hook():
        return False
    if not kernels.serves(weight) and not kernels.serves(weight, torch.bfloat16):
        return False
    for module in kernels.modules_of(model):
        if type(module) not in _BOOKS or module._forward_hooks or module._forward_pre_hooks:
            return False
        if "forward" in module.__dict__ and not kernels.is_ours(module.__dict__["forward"]):
            return False
        if type(module) is MultiHeadAttention and not is_causal(module):
            return False
    return True


def visits_at(model: GPTModel, places: Iterable[tuple[str, str, Visit]]) -> Visits | None:
    """Sort visits of a module (its path, "input" or "output") by place, in their order.

    None if a place is not passed here: its visit must be hung on the module as a hook.
    """
    visits: Visits = {}
    for path, side, visit in places:
        first, *below = path.split(".", 2)
        block = None
        module = path
        if (
            first == "trf_blocks"
            and below
            and below[0].isdigit()
            and int(below[0]) < len(model.trf_blocks)
        ):
            block = int(below[0])
            module = "".join(below[1:])
        if module not in (_OUTSIDE if block is None else _IN_A_BLOCK)[side]:
            return None
        visits.setdefault((block, module, side), []).append(visit)
    return visits


def hidden(
    model: GPTModel, in_idx: Tensor, positions: Tensor, append: Append, visits: Visits
) -> Tensor:
    """`GPTModel.final_hidden` for one token a text, where the model `serves`: (B, 1) -> (B, 1, D).

    `append` as in `Past`; a visit gets what the module would be given or give, and may replace it.
    """

    def see(block: int | None, module: str, side: str, x: Tensor) -> Tensor:
        for visit in visits.get((block, module, side), ()) if visits else ():
            new = visit(x)
            x = x if new is None else new
        return x

    tokens = see(None, "tok_emb", "output", model.tok_emb(in_idx))  # (B, 1, D)
    x = see(
        None, "drop_emb", "input", tokens + see(None, "pos_emb", "output", model.pos_emb(positions))
    )
    for number, block in enumerate(model.trf_blocks._modules.values()):
        x = _block(block, x, partial(append, number), partial(see, number))
    return see(None, "final_norm", "output", _norm(model.final_norm, x))


def _block(block: Any, x: Tensor, append: Callable[..., Any], see: See) -> Tensor:
    norm1, att, norm2, ff = (block._modules[name] for name in ("norm1", "att", "norm2", "ff"))
    x = see("", "input", x)
    x = (
        see("att", "output", _attention(att, _norm(norm1, see("norm1", "input", x)), append, see))
        + x
    )
    up, activation, down = ff._modules["layers"]._modules.values()
    before = see("ff.layers.0", "output", _linear(up, _norm(norm2, see("norm2", "input", x))))
    after = see("ff.layers.1", "output", F.gelu(before, approximate=_approximation(activation)))
    return see("", "output", see("ff", "output", _linear(down, after)) + x)


def _attention(att: Any, x: Tensor, append: Callable[..., Any], see: See) -> Tensor:
    b = len(x)
    h = att.num_heads
    d = att.head_dim
    queries, keys, values = (
        see(f"att.{name}", "output", _linear(att._modules[name], x)).view(b, h, 1, d)
        for name in ("W_query", "W_key", "W_value")
    )  # (B, 1, D) -> (B, H, 1, D/H): of one token the heads stand in order
    keys, values = append(keys, values)  # (B, H, n, D/H)
    n = keys.shape[2]
    # for which oneDNN makes a kernel anew for every n: 0.3 ms, and this 0.1
    if x.dtype is torch.bfloat16:
        queries = queries.float()
        keys = keys.float()
        values = values.float()
    weights = queries.new_empty(b * h, 1, n)
    # (B, H, n, D/H) -> (B * H, n, D/H)
    queries = queries.view(b * h, 1, d)
    keys = keys.reshape(b * h, n, d)
    values = values.reshape(b * h, n, d)
    # (B * H, 1, D/H) x (B * H, D/H, n) -> (B * H, 1, n)
    torch.baddbmm(weights, queries, keys.transpose(1, 2), beta=0, alpha=d**-0.5, out=weights)
    torch.softmax(weights, dim=-1, out=weights)
    weights = see("att.dropout", "input", weights.view(b, h, 1, n)).reshape(b * h, 1, n)
    # (B * H, 1, D/H) -> (B, 1, D)
    context = torch.bmm(weights, values).view(b, 1, h * d).to(x.dtype)
    return _linear(att._modules["out_proj"], see("att.out_proj", "input", context))


def _linear(layer: Any, x: Tensor) -> Tensor:
    parameters = layer._parameters
    weight = parameters["weight"]
    bias = parameters["bias"]
    if x.dtype is torch.bfloat16:
        if kernels.is_row(x):
            return kernels.row(x, weight, bias)
        return F.linear(x, weight, bias)
    if weight.numel() < kernels.SMALL_WEIGHT:
        return F.linear(x, weight, bias)
    return kernels.linear(x, weight, bias)


def _norm(norm: Any, x: Tensor) -> Tensor:
    parameters = norm._parameters
    return F.layer_norm(x, x.shape[-1:], parameters["scale"], parameters.get("shift"), norm.eps)


def _approximation(activation: Any) -> str:
    if type(activation) is GELU:
        return "tanh"
    return str(activation.approximate)
