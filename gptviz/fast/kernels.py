"""What makes a pass faster on a CPU, with the same numbers: three kernels in the place of the book's lines.

`with fast(model):` around a forward lets this thread's pass go through them; `gptviz.model` stays as it
is, every module that is looked at is called, and so every hook of the table of sites still fires.

Linear layers go through oneDNN instead of MKL where that was measured to be faster on this machine, for
this shape. Attention goes through `gptviz.fast.attention`. A GELU is worked out in place where no hook sees
what is before it, and by oneDNN in one go with the product. All are for float32 on a CPU without
gradients; anything else takes the book's path. The environment variable GPTVIZ_KERNELS=off turns them off.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from gptviz.fast.attention import Known, attention
from gptviz.model import GELU, FeedForward, GPTModel, MultiHeadAttention

SETTING = "GPTVIZ_KERNELS"

# one answer for all texts of about a length; more rows than these are decided as these are
MOST_ROWS = 64
MOST_OUTPUTS = 4096

# A smaller layer is asked about more rows than those only, as maps of many texts have: a short text's pass
# has the same bits in every process.
SMALL_WEIGHT = 2**19


class _Thread(threading.local):
    depth = 0  # how often `fast` is entered
    by_the_book = False  # inside `by_the_book`
    known: Known | None = None  # of the pass that runs now


_this_thread = _Thread()
_measuring = threading.Lock()
_onednn_is_faster: dict[tuple[int, ...], bool] = {}


def enabled() -> bool:
    """Whether fast kernels are enabled (GPTVIZ_KERNELS; on by default).

    ValueError for a value that is neither on nor off.
    """
    value = os.environ.get(SETTING, "on")
    if value not in ("on", "off"):
        raise ValueError(
            f'{SETTING} is {value!r}; it may be "on" or "off" (or not be set, which is "on")'
        )
    return value == "on"


@contextmanager
def fast(model: nn.Module, known: Known | None = None) -> Iterator[None]:
    """Let this thread's passes through `model` use the kernels inside the block.

    To be entered under the lock of the pass. Another thread that runs the same model meanwhile gets the
    book's own forward; nothing is left on the model afterwards, however it ends. It may be entered
    again from within. Keys and values that are `known` are an attention's own, of a pass through one block.
    Only a GPTModel has such kernels: any other model's pass is torch's own.
    """
    before = _this_thread.known  # a pass within this one has its own, or none
    _this_thread.known = known
    is_used = enabled() and not _this_thread.by_the_book and isinstance(model, GPTModel)
    bound: list[nn.Module] = []
    _this_thread.depth += is_used
    try:
        if is_used:
            _bind(model, bound)
        yield
    finally:
        _this_thread.known = before
        _this_thread.depth -= is_used
        for module in bound:
            module.__dict__.pop("forward", None)


@contextmanager
def by_the_book() -> Iterator[None]:
    """Let this thread's passes run `gptviz.model`'s own lines inside the block, to watch them at work."""
    before = _this_thread.by_the_book
    _this_thread.by_the_book = True
    try:
        yield
    finally:
        _this_thread.by_the_book = before


def modules_of(model: nn.Module) -> list[nn.Module]:
    """All modules of a model. (model.modules() makes names: a tenth of a short pass of a small model.)"""
    modules = [model]
    for module in modules:  # which grows meanwhile
        if module._modules:
            modules += [child for child in module._modules.values() if child is not None]
    return modules


def _bind(model: nn.Module, bound: list[nn.Module]) -> None:
    """Give every module that has a twin its twin's forward, and note it in `bound`."""
    for module in modules_of(model):
        twin = _TWINS.get(type(module))  # not a subclass, whose forward may be another
        if twin is not None and "forward" not in module.__dict__:
            bound.append(module)
            # past nn.Module's own __setattr__, which looks for parameters
            module.__dict__["forward"] = MethodType(twin, module)


def is_ours(forward: Any) -> bool:
    """Whether this forward was put on a module by `fast`."""
    return getattr(forward, "__func__", None) in _TWINS.values()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`: (..., K) x (N, K) -> (..., N), through oneDNN where it was measured to be faster."""
    if _is_plain(x) and _fits(weight) and enabled():
        return _linear(x, weight, bias)
    return F.linear(x, weight, bias)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None = None) -> Tensor:
    """`F.linear` in the way that was chosen for this shape, then GELU where "tanh" or "none" says which."""
    if _prefers_onednn(x, weight, bias):
        return _onednn(x, weight, bias, gelu)
    # in its own memory: what the allocator gives back to the system is cleared when it is had again
    result = F.linear(x, weight, bias)
    if gelu is None:
        return result
    return torch.ops.aten.gelu_(result, approximate=gelu)


def _prefers_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether this shape goes through oneDNN: measured once, then the same for the process.

    One answer a process, so that the same text gives the same bits every time.
    """
    rows = x.shape[:-1].numel()
    if not x.numel() or (rows <= MOST_ROWS and weight.numel() < SMALL_WEIGHT):
        return False
    key = (min(rows, MOST_ROWS).bit_length(), *weight.shape)
    if key not in _onednn_is_faster:
        with _measuring:
            if key not in _onednn_is_faster:
                _onednn_is_faster[key] = _has_onednn() and _measure(x, weight, bias)
    return _onednn_is_faster[key]


def row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear` of one row in bfloat16: (..., K) x (N, K) -> (..., N), as fast as the matrix is read.

    F.linear goes through oneDNN, which lays the matrix out anew in every call: twice the time of the product,
    which torch's own kernel does with the matrix as it stands. Both add up in float32. oneDNN's switch is the
    process's, so this is for passes only, which hold a lock; a product of another thread meanwhile goes
    through torch's kernels, too, to the same numbers but for rounding.
    """
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        return F.linear(x, weight, bias)
    finally:
        torch._C._set_mkldnn_enabled(before)


def is_row(x: Tensor) -> bool:
    """Whether the input of this thread's pass is one row, which `row` computes."""
    return (
        _HAS_SWITCH and serves(x, torch.bfloat16) and x.dim() > 0 and x.numel() == x.shape[-1] > 0
    )


_HAS_SWITCH = hasattr(torch._C, "_set_mkldnn_enabled") and hasattr(torch._C, "_get_mkldnn_enabled")


def _is_plain(x: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Whether the kernels can take x: this dtype, on a CPU, no autocast, no gradient."""
    return (
        x.dtype is dtype
        and x.is_cpu
        and x.layout is torch.strided
        and not (torch.is_grad_enabled() and x.requires_grad)
        and not torch.is_autocast_enabled("cpu")
    )


def _fits(weight: Tensor) -> bool:
    return _is_plain(weight) and weight.is_contiguous()


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None = None) -> Tensor:
    # torch's own inductor calls it so; it packs the weight in every call, so that none is kept twice
    if gelu is None:
        after = "none"
        kind = ""
    else:
        after = "gelu"
        kind = gelu
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, after, [], kind)


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _measure(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Time both ways in turn on a part of the product, a few milliseconds in all: whether oneDNN is faster.

    The shortest time of each counts, and only this thread's own: on a machine with other work wall time
    and medians of so few say how often a thread was put aside (8 ms), no property of the kernel.
    """
    part = x.reshape(-1, x.shape[-1])[:MOST_ROWS].contiguous()  # (..., K) -> (at most MOST_ROWS, K)
    weight = weight[:MOST_OUTPUTS]
    if bias is not None:
        bias = bias[:MOST_OUTPUTS]
    truth = F.linear(part, weight, bias)
    error = (_onednn(part, weight, bias) - truth).abs().max()
    # also NaN: somebody allowed it fewer digits than float32's
    if not error <= 1e-4 * truth.abs().max():
        return False
    ways: tuple[Callable[..., Tensor], ...] = (F.linear, _onednn)
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


# Their methods are called `forward` because a bound method is pickled by its name: what is read back has the
# class's own. No module is made of these classes.


class _FastLinear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        if _this_thread.depth and _is_plain(input) and _fits(self.weight):
            return _linear(input, self.weight, self.bias)
        if is_row(input):
            return row(input, self.weight, self.bias)
        return nn.Linear.forward(self, input)


class _FastAttention(MultiHeadAttention):
    def forward(self, x: Tensor) -> Tensor:
        if serves(x):
            return attention(self, x, known=_this_thread.known)
        return MultiHeadAttention.forward(self, x)


class _FastFeedForward(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        up, activation, down = self.layers
        if not serves(x) or not _is_unseen(self.layers, up, activation) or not _fits(up.weight):
            return FeedForward.forward(self, x)
        if type(activation) is GELU:
            kind = "tanh"
        else:
            kind = activation.approximate
        return down(_linear(x, up.weight, up.bias, kind))  # (b, T, D) -> (b, T, 4D) -> (b, T, D)


def _is_unseen(layers: nn.Module, up: nn.Module, activation: nn.Module) -> bool:
    """Whether these are the book's own modules, with no hook between them."""
    for module in (layers, up, activation):
        forward = module.__dict__.get("forward")
        if (
            module._forward_hooks
            or module._forward_pre_hooks
            or not (forward is None or is_ours(forward))
        ):
            return False
    return (
        type(up) is nn.Linear
        and type(activation) in (GELU, nn.GELU)
        and not torch_modules._has_any_global_hook()
    )


_TWINS: dict[type[nn.Module], Callable[..., Tensor]] = {
    nn.Linear: _FastLinear.forward,
    MultiHeadAttention: _FastAttention.forward,
    FeedForward: _FastFeedForward.forward,
}


def serves(x: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Whether this thread's pass goes through `attention` for this input."""
    return bool(_this_thread.depth) and _is_plain(x, dtype) and not torch.is_grad_enabled()
