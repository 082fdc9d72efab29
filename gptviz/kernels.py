"""What makes a pass faster on a CPU, with the same numbers: two kernels in the place of the book's lines.

`with fast(model):` around a forward lets this thread's pass go through them; `gptviz.model` stays as it
is, every module is still called, and so every hook of the table of sites still fires.

Linear layers go through oneDNN instead of MKL where that was measured to be faster on this machine, for
this shape. Attention writes its scores once: scaled, masked and divided in one buffer, row block by row
block, and never the half that the causal mask hides. Both are for float32 on a CPU without gradients;
anything else takes the book's path. The environment variable GPTVIZ_KERNELS=off turns them off.
"""

import math
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.weak import WeakTensorKeyDictionary

from gptviz.model import MultiHeadAttention

SETTING = "GPTVIZ_KERNELS"

# a block's scores stay in the cache of a core from the product to the division: 12 heads x 64 x 1024
# floats are 3 MB. Texts shorter than two such blocks and a half have little to gain from them.
ROWS = 64
WHOLE_UP_TO = 160

# from here on a buffer is worth huge pages: touching 48 MB for the first time takes 26 ms in pages of
# 4 kB and 6 ms in pages of 2 MB, where the whole of the attention takes 60
HUGE_FROM = 4 * 2**20

# one answer for all texts of about a length; more rows than these are decided as these are
MOST_ROWS = 64
MOST_OUTPUTS = 4096

# a smaller layer is done before it is worth asking which way is faster
SMALLEST_WEIGHT = 2**19


class _Thread(threading.local):
    depth = 0  # how often `fast` is entered
    by_the_book = False  # inside `by_the_book`


_this_thread = _Thread()
_measuring = threading.Lock()
_onednn_is_faster: dict[tuple[int, ...], bool] = {}
_causal = WeakTensorKeyDictionary()  # a mask -> (its version, whether it is the causal one)


def enabled() -> bool:
    """Whether the setting leaves them on. ValueError for a value that is neither on nor off."""
    value = os.environ.get(SETTING, "on")
    if value not in ("on", "off"):
        raise ValueError(f'{SETTING} is {value!r}; it may be "on" or "off" (or not be set, which is "on")')
    return value == "on"


@contextmanager
def fast(model: nn.Module) -> Iterator[None]:
    """While it is entered, a pass of this thread through `model` goes through the kernels.

    To be entered under the lock of the pass. Another thread that runs the same model meanwhile gets the
    book's own forward; nothing is left on the model afterwards, however it ends. It may be entered
    again from within.
    """
    if _this_thread.by_the_book or not enabled():
        yield
        return
    bound: list[nn.Module] = []
    _this_thread.depth += 1
    try:
        _bind(model, bound)
        yield
    finally:
        _this_thread.depth -= 1
        for module in bound:
            module.__dict__.pop("forward", None)


@contextmanager
def by_the_book() -> Iterator[None]:
    """While it is entered, this thread's passes run `gptviz.model`'s own lines: to watch them at work."""
    before, _this_thread.by_the_book = _this_thread.by_the_book, True
    try:
        yield
    finally:
        _this_thread.by_the_book = before


def _bind(model: nn.Module, bound: list[nn.Module]) -> None:
    """Give every module that has a twin its twin's forward, and note it in `bound`."""
    left = [model]
    while left:  # model.modules() works out names, too: a tenth of a short pass through a small model
        module = left.pop()
        left.extend(child for child in module._modules.values() if child is not None)
        twin = _TWINS.get(type(module))  # not a subclass, whose forward may be another
        if twin is None or (type(module) is nn.Linear and module.weight.numel() < SMALLEST_WEIGHT):
            continue
        if "forward" not in module.__dict__:
            bound.append(module)
            # past nn.Module's own __setattr__, which looks for parameters
            module.__dict__["forward"] = MethodType(twin, module)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`F.linear`: (..., K) x (N, K) -> (..., N), through oneDNN where it was measured to be faster."""
    if _is_plain(x) and _is_plain(weight) and weight.is_contiguous() and enabled():
        return _linear(x, weight, bias)
    return F.linear(x, weight, bias)


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """The answer for this shape; measured when the shape is first met, then the same for the process.

    One answer a process, so that the same text gives the same bits every time.
    """
    rows = x.shape[:-1].numel()
    key = (min(rows, MOST_ROWS).bit_length(), *weight.shape)
    onednn = _onednn_is_faster.get(key)
    if not x.numel():
        onednn = False
    elif onednn is None:
        with _measuring:
            if key not in _onednn_is_faster:
                _onednn_is_faster[key] = _has_onednn() and _measure(x, weight, bias)
            onednn = _onednn_is_faster[key]
    return _onednn(x, weight, bias) if onednn else F.linear(x, weight, bias)


def _is_plain(x: torch.Tensor) -> bool:
    """Whether the kernels are for it: float32 on a CPU, and nothing that must be differentiated."""
    return (
        x.dtype is torch.float32
        and x.is_cpu
        and x.layout is torch.strided
        and not (torch.is_grad_enabled() and x.requires_grad)
        and not torch.is_autocast_enabled("cpu")
    )


def _onednn(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    # torch's own inductor calls it so; it packs the weight in every call, so that none is kept twice
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _measure(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Both ways in turn on a part of what is to be computed, a few milliseconds in all.

    The shortest time of each counts, and only this thread's own: on a machine with other work wall time
    and medians of so few say how often a thread was put aside (8 ms), no property of the kernel.
    """
    part = x.reshape(-1, x.shape[-1])[:MOST_ROWS].contiguous()
    weight, bias = weight[:MOST_OUTPUTS], None if bias is None else bias[:MOST_OUTPUTS]
    truth = F.linear(part, weight, bias)
    error = (_onednn(part, weight, bias) - truth).abs().max()
    if not error <= 1e-4 * truth.abs().max():  # also NaN: somebody allowed it fewer digits than float32's
        return False
    ways: tuple[Callable[..., torch.Tensor], ...] = (F.linear, _onednn)
    best = dict.fromkeys(ways, float("inf"))
    began = time.thread_time()
    for attempt in range(9):
        if attempt >= 3 and time.thread_time() - began > 0.02:
            break
        for way in ways:
            start = time.thread_time()
            way(part, weight, bias)
            best[way] = min(best[way], time.thread_time() - start)
    return best[_onednn] < 0.97 * best[F.linear]


def _linear_twin() -> Any:
    # called `forward` because a bound method is pickled by its name: what is read back has the class's own
    def forward(self: nn.Linear, input: torch.Tensor) -> torch.Tensor:
        if _this_thread.depth and _is_plain(input) and _is_plain(self.weight) and self.weight.is_contiguous():
            return _linear(input, self.weight, self.bias)
        return nn.Linear.forward(self, input)

    return forward


def _attention_twin() -> Any:
    def forward(self: MultiHeadAttention, x: torch.Tensor) -> torch.Tensor:
        if _this_thread.depth and _is_plain(x) and not torch.is_grad_enabled():
            return _attention(self, x)
        result: torch.Tensor = MultiHeadAttention.forward(self, x)
        return result

    return forward


_TWINS = {nn.Linear: _linear_twin(), MultiHeadAttention: _attention_twin()}


def _attention(att: Any, x: torch.Tensor) -> torch.Tensor:
    """`MultiHeadAttention.forward`: (b, T, d_in) -> (b, T, d_out)."""
    b, n, _ = x.shape
    h, d = att.num_heads, att.head_dim
    # (b, T, d_out) -> (b, T, H, head_dim) -> (b * H, T, head_dim); a view where b is 1
    queries, keys, values = (
        projection(x).view(b, n, h, d).transpose(1, 2).reshape(b * h, n, d)
        for projection in (att.W_query, att.W_key, att.W_value)
    )
    if n > WHOLE_UP_TO and _is_causal(att.mask):
        context = _by_rows(att, b, queries, keys, values)
    else:
        weights = _divided(queries, keys, att.mask[:n, :n], _buffer(b * h, n, n)).view(b, h, n, n)
        context = att.dropout(weights) @ values.view(b, h, n, d)  # (b, H, T, head_dim)
        context = context.transpose(1, 2).reshape(b, n, h * d)  # (b, T, d_out): heads side by side
    result: torch.Tensor = att.out_proj(context)
    return result


def _divided(
    queries: torch.Tensor, keys: torch.Tensor, mask: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    """The attention weights of some queries in `out`: scores, masked, softmax, in one buffer.

    (b * H, R, head_dim) and (b * H, K, head_dim) -> (b * H, R, K). The mask is that of the last keys.
    """
    scale = queries.shape[-1] ** -0.5
    torch.baddbmm(out, queries, keys.transpose(1, 2), beta=0, alpha=scale, out=out)
    out[:, :, -mask.shape[1] :].masked_fill_(mask, -torch.inf)
    return torch.softmax(out, dim=-1, out=out)


def _by_rows(
    att: Any, b: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Each head's weighted values, (b, T, d_out), a block of queries at a time with the keys that it sees."""
    heads, n, d = queries.shape
    watched = _is_watched(att.dropout)  # if nobody looks at the weights, no more than a block is kept
    weights = _buffer(heads, n, n) if watched else None
    scores = queries.new_empty(heads * ROWS * n)
    context = queries.new_empty(b, n, heads // b, d)
    by_head = context.transpose(1, 2)  # (b, H, T, head_dim)
    for i in range(0, n, ROWS):
        j = min(i + ROWS, n)
        block = scores[: heads * (j - i) * j].view(heads, j - i, j)
        _divided(queries[:, i:j], keys[:, :j], att.mask[i:j, i:j], block)
        if weights is not None:
            weights[:, i:j, :j] = block
            weights[:, i:j, j:] = 0
        by_head[:, :, i:j] = (block @ values[:, :j]).view(b, -1, j - i, d)
    if weights is not None:
        shown = weights.view(b, -1, n, n)
        before = _version(shown)
        dropped = att.dropout(shown)
        if dropped is not shown or before is None or _version(shown) != before:  # an edit: once more with it
            by_head.copy_(dropped @ values.view(b, -1, n, d))
    return context.view(b, n, -1)


def _version(x: torch.Tensor) -> int | None:
    """How often it was written into, as torch counts; it does not count in inference mode."""
    return None if x.is_inference() else x._version


def _is_watched(dropout: nn.Module) -> bool:
    """Whether anybody but the next line sees what is passed through it, or it is more than a passage."""
    return (
        type(dropout) is not nn.Dropout
        or dropout.training
        or "forward" in dropout.__dict__
        or bool(dropout._forward_pre_hooks or dropout._forward_hooks)
    )


def _is_causal(mask: torch.Tensor) -> bool:
    """Whether a model's mask is the book's: later keys hidden, all others not. Looked at once a mask."""
    known = _causal.get(mask)
    if known is None or known[0] != _version(mask):
        book = torch.ones_like(mask).triu(1)
        known = _causal[mask] = (_version(mask), torch.equal(mask, book))
    return known[1]


def _buffer(*shape: int) -> torch.Tensor:
    """An empty float32 tensor; a large one in huge pages where the system has them (Linux)."""
    size = 4 * math.prod(shape)
    if size < HUGE_FROM or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape)
    memory = mmap.mmap(-1, size)  # given back to the system as soon as the tensor is gone
    memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.float32).view(shape)
