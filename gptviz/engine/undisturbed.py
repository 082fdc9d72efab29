"""Keep the caller's global settings out of a call, and put them back after it.

`torch.set_default_dtype`, a default device, `torch.autocast`, inference mode, a lower precision of matrix
products, NumPy's handling of 0 / 0: each would change numbers that are documented as float32, or raise an
error in the middle of a function. Every public function that works with numbers is marked `@undisturbed`, and
every forward pass runs in `with settled():`. tests/test_undisturbed.py calls them under each setting.

The number of torch's threads, its deterministic algorithms and its flushing of denormals are left alone.
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
DEVICES = ("cpu", "cuda", "mps", "xpu")  # that autocast may be on for
EXACT = ("none", "ieee")  # precisions of float32 products that lose nothing


class _Thread(threading.local):
    inside = False


class _Process:
    """Settings that torch has once for all threads, as they were before the first thread came inside."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.put_back: list[Callable[[], object]] = []


_this_thread = _Thread()
_process = _Process()


@contextmanager
def settled() -> Iterator[None]:
    """Set everything as in a fresh process, for this thread and for all; put it back afterwards."""
    if _this_thread.inside:  # the outermost call did it, and what gptviz itself set since is meant
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
    with _process.lock:
        if not _process.inside:
            _process.put_back = [*_default_dtype(), *_precisions()]
        _process.inside += 1


def _leave_all() -> None:
    with _process.lock:
        _process.inside -= 1
        if not _process.inside:
            for put_back in reversed(_process.put_back):
                put_back()
            _process.put_back = []


def _default_dtype() -> Iterator[Callable[[], object]]:
    dtype = torch.get_default_dtype()
    if dtype != torch.float32:
        torch.set_default_dtype(torch.float32)
        yield functools.partial(torch.set_default_dtype, dtype)


def _precisions() -> Iterator[Callable[[], object]]:
    """Switch float32 products to full precision; before torch 2.9 one setting stands for all devices."""
    mkldnn: Any = torch.backends.mkldnn
    cuda: Any = torch.backends.cuda
    # what is outer first: what is in it may only follow it
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
                    with settled():  # and not while the caller has what was yielded
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
