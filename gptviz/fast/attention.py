"""The attention of `gptviz.fast.kernels`: the book's numbers, without the half that the causal mask hides.

It writes its scores once: scaled, masked and divided in one buffer, row block by row block. It is for
float32 on a CPU without gradients, and serves tokens that come after others as well (`gptviz.engine.past`).
"""

import math
import mmap
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gptviz.model import MultiHeadAttention

# a block's scores stay in the cache of a core from the product to the division: 12 heads x 64 x 1024
# floats are 3 MB. Texts shorter than two such blocks and a half have little to gain from them.
ROWS = 64
WHOLE_UP_TO = 160

# from here on a buffer is worth huge pages: touching 48 MB for the first time takes 26 ms in pages of
# 4 kB and 6 ms in pages of 2 MB, where the whole of the attention takes 60
HUGE_FROM = 4 * 2**20

Known = tuple[Tensor, Tensor]  # keys and values, (b, H, T, head_dim)
Earlier = Callable[[Tensor, Tensor], Known]


def attention(
    att: Any,
    x: Tensor,
    after: Earlier | None = None,
    last: bool = False,
    known: Known | None = None,
) -> Tensor:
    """`MultiHeadAttention.forward`: (b, T, d_in) -> (b, T, d_out).

    `after` takes the tokens' keys and values (b, H, T, head_dim) and gives them behind those of the tokens
    that were read before: (b, H, K, head_dim). With `last` only the last token has a query: (b, 1, d_out).
    Keys and values that are `known` are not worked out.
    """
    b = len(x)
    h = att.num_heads
    d = att.head_dim

    def of_heads(projection: nn.Module, rows: Tensor) -> Tensor:
        # (b, T, d_out) -> (b, T, H, head_dim) -> (b, H, T, head_dim)
        return projection(rows).view(b, -1, h, d).transpose(1, 2)

    queries = of_heads(att.W_query, x[:, -1:] if last else x)
    keys, values = known or (of_heads(att.W_key, x), of_heads(att.W_value, x))
    n = queries.shape[2]
    if after is not None:
        keys, values = after(keys, values)
    k = keys.shape[2]  # as many as T, if there is nothing before
    # (b, H, T, head_dim) -> (b * H, T, head_dim); a view where b is 1
    queries = queries.reshape(b * h, n, d)
    keys, values = (x.reshape(b * h, k, d) for x in (keys, values))  # (b * H, K, head_dim)
    if n > WHOLE_UP_TO and is_causal(att):
        context = _by_rows(att, b, queries, keys, values)
    else:
        mask = att.mask(n, before=k - n, device=x.device)
        weights = _divided(queries, keys, mask, _buffer(b * h, n, k)).view(b, h, n, k)
        context = att.dropout(weights) @ values.view(b, h, k, d)  # (b, H, T, head_dim)
        context = context.transpose(1, 2).reshape(b, n, h * d)  # (b, T, d_out): heads side by side
    return att.out_proj(context)


def _divided(queries: Tensor, keys: Tensor, mask: Tensor, out: Tensor) -> Tensor:
    """The attention weights of some queries in `out`: scores, masked, softmax, in one buffer.

    (b * H, R, head_dim) and (b * H, K, head_dim) -> (b * H, R, K). The mask is that of the last keys.
    """
    scale = queries.shape[-1] ** -0.5
    torch.baddbmm(out, queries, keys.transpose(1, 2), beta=0, alpha=scale, out=out)
    # added, since that takes a quarter of the time of masked_fill_ for every head
    out[:, :, -mask.shape[1] :] += out.new_zeros(mask.shape).masked_fill_(mask, -torch.inf)
    return torch.softmax(out, dim=-1, out=out)


def _by_rows(att: Any, b: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Each head's weighted values, (b, T, d_out), a block of queries at a time with the keys that it sees."""
    heads, n, d = queries.shape
    k = keys.shape[1]
    first = k - n  # how many keys stand before the first query
    watched = _is_watched(att.dropout)  # if no hook sees the weights, no more than a block is kept
    weights = None
    if watched:
        weights = _buffer(heads, n, k)
    scores = queries.new_empty(heads * ROWS * k)
    context = queries.new_empty(b, n, heads // b, d)
    by_head = context.transpose(1, 2)  # (b, H, T, head_dim)
    mask = att.mask(ROWS, device=queries.device)  # of a block's queries, for the block's own keys
    for i in range(0, n, ROWS):
        j = min(i + ROWS, n)
        seen = first + j
        # (b * H, rows, seen keys)
        block = scores[: heads * (j - i) * seen].view(heads, j - i, seen)
        _divided(queries[:, i:j], keys[:, :seen], mask[: j - i, : j - i], block)
        if weights is not None:
            weights[:, i:j, :seen] = block
            weights[:, i:j, seen:] = 0
        # (b, H, rows, head_dim)
        by_head[:, :, i:j] = (block @ values[:, :seen]).view(b, -1, j - i, d)
    if weights is not None:
        shown = weights.view(b, -1, n, k)  # (b, H, T, K)
        before = _version(shown)
        dropped = att.dropout(shown)
        # an edit: once more with it
        if dropped is not shown or before is None or _version(shown) != before:
            by_head.copy_(dropped @ values.view(b, -1, k, d))
    return context.view(b, n, -1)  # (b, T, H, head_dim) -> (b, T, d_out)


def _version(x: Tensor) -> int | None:
    """How often x was written to, as torch counts; None in inference mode, where it does not."""
    if x.is_inference():
        return None
    return x._version


def _is_watched(dropout: nn.Module) -> bool:
    """Whether a hook sees what passes through this dropout, or it changes what passes."""
    return (
        type(dropout) is not nn.Dropout
        or dropout.training
        or "forward" in dropout.__dict__
        or bool(dropout._forward_pre_hooks or dropout._forward_hooks)
    )


def is_causal(att: Any) -> bool:
    """Whether a model's attention has the book's own mask, and no other one in its place."""
    return type(att).mask is MultiHeadAttention.mask and "mask" not in att.__dict__


def _buffer(*shape: int) -> Tensor:
    """An empty float32 tensor; a large one in huge pages where the system has them (Linux)."""
    size = 4 * math.prod(shape)
    if size < HUGE_FROM or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape)
    memory = mmap.mmap(-1, size)  # given back to the system as soon as the tensor is gone
    memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.float32).view(shape)
