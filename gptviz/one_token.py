"""One new token through all blocks without a module being called: half of what Python costs a step.

Writing a token is bound by reading the weights once; what is left is the way from one kernel to the next.
These are the steps of `gptviz.fast_attention` and of `gptviz.model`, to the bit, for a text of which only the
last token is new and which nobody watches. In bfloat16 attention is worked out in float32 from the keys and
values as they are: the same but for rounding.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules import module as torch_modules

from gptviz import kernels
from gptviz.fast_attention import is_causal
from gptviz.model import (
    GELU,
    FeedForward,
    GPTModel,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
)

Append = Callable[[int, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

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


def serves(model: GPTModel, x: torch.Tensor) -> bool:
    """Whether the book's lines, and nobody else's, would run for what comes into the first block."""
    if x.shape[1] != 1 or torch_modules._has_any_global_hook():
        return False
    if not kernels.serves(x) and not kernels.serves(x, torch.bfloat16):
        return False
    for module in kernels.modules_of(model):
        if type(module) not in _BOOKS or module._forward_hooks or module._forward_pre_hooks:
            return False
        if "forward" in module.__dict__ and not kernels.is_ours(module.__dict__["forward"]):
            return False
        if type(module) is MultiHeadAttention and not is_causal(cast(torch.Tensor, module.mask)):
            return False
    return True


def blocks(model: GPTModel, x: torch.Tensor, append: Append) -> torch.Tensor:
    """`model.trf_blocks(x)` for one token a text: (B, 1, D) -> (B, 1, D); `append` as in `Past`."""
    for number, block in enumerate(model.trf_blocks._modules.values()):
        assert block is not None
        norm1, att, norm2, ff = (block._modules[name] for name in ("norm1", "att", "norm2", "ff"))
        x = _attention(att, _norm(norm1, x), number, append) + x
        up, activation, down = ff._modules["layers"]._modules.values()
        hidden = F.gelu(_linear(up, _norm(norm2, x)), approximate=_approximation(activation))
        x = _linear(down, hidden) + x
    return x


def _attention(att: Any, x: torch.Tensor, block: int, append: Append) -> torch.Tensor:
    b, h, d = len(x), att.num_heads, att.head_dim
    layers = att._modules
    # (B, 1, D) -> (B, H, 1, D/H): of one token the heads stand in order
    keys, values = append(
        block, _linear(layers["W_key"], x).view(b, h, 1, d), _linear(layers["W_value"], x).view(b, h, 1, d)
    )
    n = keys.shape[2]
    queries = _linear(layers["W_query"], x)
    if x.dtype is torch.bfloat16:  # for which oneDNN makes a kernel anew for every n: 0.3 ms, and this 0.1
        queries, keys, values = queries.float(), keys.float(), values.float()
    queries = queries.view(b * h, 1, d)
    weights = queries.new_empty(b * h, 1, n)
    torch.baddbmm(
        weights, queries, keys.reshape(b * h, n, d).transpose(1, 2), beta=0, alpha=d**-0.5, out=weights
    )
    torch.softmax(weights, dim=-1, out=weights)
    context = torch.bmm(weights, values.reshape(b * h, n, d))  # (B * H, 1, D/H)
    return _linear(layers["out_proj"], context.view(b, 1, h * d).to(x.dtype))


def _linear(layer: Any, x: torch.Tensor) -> torch.Tensor:
    parameters = layer._parameters
    weight, bias = parameters["weight"], parameters["bias"]
    if x.dtype is torch.bfloat16:
        return kernels.row(x, weight, bias) if kernels.is_row(x) else F.linear(x, weight, bias)
    if weight.numel() < kernels.SMALLEST_WEIGHT:
        return F.linear(x, weight, bias)
    return kernels.linear(x, weight, bias)


def _norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    parameters = norm._parameters
    return F.layer_norm(x, x.shape[-1:], parameters["scale"], parameters.get("shift"), norm.eps)


def _approximation(activation: Any) -> str:
    return "tanh" if type(activation) is GELU else str(activation.approximate)
