"""Protect a function from the global settings of torch and NumPy: `@undisturbed` and `with settled():`.

A notebook may have called `torch.set_default_dtype(torch.float64)`, set a default device, or be inside
`torch.autocast` or inference mode; it may have lowered the precision of matrix products, or made NumPy raise
an error for 0 / 0. Any of these would change gptviz's float32 numbers, or make it fail. So every public
function that computes is marked `@undisturbed`, and every forward pass runs in `with settled():`. Both set
everything as in a fresh process and put the caller's settings back afterwards. tests/test_undisturbed.py
calls every function under each setting.

The number of torch's threads, deterministic algorithms and the flushing of denormals are left as they are.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import torch

P = ParamSpec("P")
R = TypeVar("R")

NUMPYS_OWN = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
DEVICES = ("cpu", "cuda", "mps", "xpu")  # the devices that autocast may be on for
EXACT = ("none", "ieee")  # the settings under which float32 products have full precision


class _Thread(threading.local):
    inside = False  # whether this thread is inside `settled`


class _Process:
    """The settings that all threads of a process share, as they were before the first one entered `settled`.

    The last thread that leaves puts them back; before that, another one still needs gptviz's.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # for the fields below
        self.inside = 0  # the number of threads inside `settled`
        self.put_back: list[Callable[[], object]] = []  # calls that restore the settings


_this_thread = _Thread()
_process = _Process()


@contextmanager
def settled() -> Iterator[None]:
    """Set everything as in a fresh process inside the block, and put it back afterwards.

    Settings of a thread are changed for this thread only, those of the process for all threads.
    """
    # an outer call has set everything; what gptviz itself changed since must stay
    if _this_thread.inside:
        yield
        return
    with ExitStack() as settings:
        _enter_all()
        settings.callback(_leave_all)
        if torch._C._len_torch_function_stack() and torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        for device in DEVICES:
            if torch.is_autocast_enabled(device):
                settings.callback(torch.set_autocast_enabled, device, True)
                torch.set_autocast_enabled(device, False)
        if torch.is_inference_mode_enabled():
            settings.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            settings.enter_context(torch.enable_grad())
        if np.geterr() != NUMPYS_OWN:
            settings.enter_context(np.errstate(**cast(Any, NUMPYS_OWN)))
        settings.callback(setattr, _this_thread, "inside", False)
        _this_thread.inside = True
        yield


def _enter_all() -> None:
    """Change the settings that all threads share, if this thread is the first inside."""
    with _process.lock:
        if not _process.inside:
            _process.put_back = [*_default_dtype(), *_precisions()]
        _process.inside += 1


def _leave_all() -> None:
    """Put the settings that all threads share back, if this thread is the last inside."""
    with _process.lock:
        _process.inside -= 1
        if not _process.inside:
            for put_back in reversed(_process.put_back):
                put_back()
            _process.put_back = []


def _default_dtype() -> Iterator[Callable[[], object]]:
    """Make float32 the default dtype; yield a call that puts another one back."""
    dtype = torch.get_default_dtype()
    if dtype != torch.float32:
        torch.set_default_dtype(torch.float32)
        yield functools.partial(torch.set_default_dtype, dtype)


def _precisions() -> Iterator[Callable[[], object]]:
    """Switch float32 products to full precision; yield calls that put other settings back.

    Before torch 2.9 there is a single setting for all devices.
    """
    mkldnn: Any = torch.backends.mkldnn
    cuda: Any = torch.backends.cuda
    # the more general settings first: a special one may be set to follow the general one
    places: list[Any] = [torch.backends, mkldnn, getattr(mkldnn, "matmul", None), cuda.matmul]
    for place in places:
        precision = getattr(place, "fp32_precision", "none")
        if precision not in EXACT:
            place.fp32_precision = "ieee"
            yield functools.partial(setattr, place, "fp32_precision", precision)
    if not hasattr(torch.backends, "fp32_precision"):
        matmul_precision = torch.get_float32_matmul_precision()
        if matmul_precision != "highest":
            torch.set_float32_matmul_precision("highest")
            yield functools.partial(torch.set_float32_matmul_precision, matmul_precision)


def undisturbed(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function, or each step of a generator, with torch's and NumPy's settings as in a fresh process.

    It guards against what a caller has set before: a default dtype or device, autocast, inference mode or
    no_grad, a lower precision of products, NumPy's error handling. Mark every public function that makes
    tensors or computes with them; private functions need no mark, nor do those with `@reads` or `@of_model`,
    which do the same.
    """
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def step_by_step(*args: P.args, **named: P.kwargs) -> Any:
            generator = cast(Any, function(*args, **named))
            try:
                while True:
                    # left before each yield, so that the caller has its own settings
                    with settled():
                        try:
                            value = next(generator)
                        except StopIteration as end:
                            return end.value
                    yield value
            finally:
                generator.close()

        return cast(Callable[P, R], step_by_step)

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        with settled():
            return function(*args, **named)

    return called
