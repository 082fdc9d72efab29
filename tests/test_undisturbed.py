"""Numbers are the same to the bit under everything that is set around a call, which leaves it as it was."""

import importlib
import pkgutil
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import gptviz
from gptviz.engine.undisturbed import settled, undisturbed
from tests.asked import IDS, OTHER, REDUCED, bits, of_grad, of_model, of_sites, of_trace_itself
from tests.conftest import random_lm

LM = random_lm()
OURS = ("gptviz.engine", "gptviz.analysis", "gptviz.lessons")


@contextmanager
def during(put: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    put(value)
    try:
        yield
    finally:
        put(before)


def tensor_type(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and used
        torch.set_default_tensor_type(kind)


def backends(precision: str) -> None:
    torch.backends.fp32_precision = precision


SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "float64": lambda: during(torch.set_default_dtype, torch.float64, torch.float32),
    "bfloat16": lambda: during(torch.set_default_dtype, torch.bfloat16, torch.float32),
    "a tensor type": lambda: during(tensor_type, torch.DoubleTensor, torch.FloatTensor),
    "a default device": lambda: during(torch.set_default_device, "meta", None),
    "in a device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "products": lambda: during(torch.set_float32_matmul_precision, "medium", "highest"),
    "products, by backend": lambda: during(backends, "tf32", "none"),
    "deterministic": lambda: during(torch.use_deterministic_algorithms, True, False),
    "numpy": lambda: np.errstate(all="raise"),
}


def state() -> list[Any]:
    """All that is set, and where random numbers go on."""
    return [
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_inference_mode_enabled(),
        torch.is_grad_enabled(),
        torch.backends.mkldnn.matmul.fp32_precision,
        torch.backends.cuda.matmul.fp32_precision,
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
        np.geterr(),
        bits(torch.get_rng_state() if torch.get_default_device().type == "cpu" else 0),
        repr(np.random.get_state()),
        random.getstate(),
    ]


def loaded() -> Any:
    lm = gptviz.load("mini-untrained")
    return [dict(lm.model.state_dict()), lm.trace([1, 2, 3]).logits()]


def wrapped() -> Any:
    return gptviz.wrap(LM.model, LM.tokenizer).trace(IDS).logits()


EDITS = [
    "z.1.2=zero",
    "attn.0=uniform",
    "mlp_out.1=sample",
    "resid_pre.1@3=ids5+9+9+5",
    "embed=+2*tok5",
]

CALLS: dict[str, Callable[[], Any]] = {
    "load": loaded,
    "wrap": wrapped,
    "trace": lambda: of_sites(LM.trace(IDS)),
    "edits": lambda: of_sites(LM.trace(IDS, edits=EDITS)),
    "after": lambda: of_sites(LM.trace([*IDS, 3], after=LM.trace(IDS))),
    "grad": lambda: of_grad(LM.trace(IDS, grad=(5, 9))),
    "generate": lambda: list(LM.generate(IDS, 3, temperature=0.9, seed=1)),
    "patching": lambda: LM.patching(IDS, OTHER, (42, 30), sites=["z"]),
    "path_patching": lambda: LM.path_patching(IDS, OTHER, (42, 30)),
    "attribution": lambda: LM.trace(IDS).attribution(5),
}


@pytest.fixture(scope="module")
def right() -> dict[str, Any]:
    return {name: bits(call()) for name, call in CALLS.items()}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_reaches_no_number_and_is_left_as_it_was(setting, right):
    forget()
    with SETTINGS[setting]():
        before = state()
        found = {name: call() for name, call in CALLS.items()}
        assert state() == before
    for name, result in found.items():
        assert bits(result) == right[name], name


@pytest.mark.parametrize("number", [1, 3])
def test_another_number_of_threads_only_rounds_otherwise(number, right):
    """Sums are added up in another order: the one setting that is left to whoever sets it."""
    with during(torch.set_num_threads, number, torch.get_num_threads()):
        before = state()
        found = {name: bits(CALLS[name]()) for name in ("trace", "edits", "grad")}
        assert state() == before
    for name, numbers in found.items():
        for place, number_of in numbers.items():
            if isinstance(number_of, tuple):
                one, other = (
                    np.frombuffer(kept[2], kept[0]) for kept in (number_of, right[name][place])
                )
                assert np.allclose(one, other, rtol=1e-5, atol=1e-6), (name, place)


def test_everything_is_the_same_under_all_of_them_together():
    t = LM.trace(IDS, reduce=REDUCED)
    calls = [*of_trace_itself(t), *of_model(LM, t)]
    together = ("bfloat16", "a default device", "autocast", "inference mode", "products", "numpy")
    for name, call in calls:
        forget()
        with ExitStack() as settings:
            for one in together:
                settings.enter_context(SETTINGS[one]())
            before = state()
            found = call()
            assert state() == before, name
        forget()
        assert bits(found) == bits(call()), name


def forget() -> None:
    """Empty every cache of functions, so that nothing is as it was worked out at another time."""
    for name in OURS:
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            for function in vars(importlib.import_module(module.name)).values():
                if hasattr(function, "cache_clear") and function.__module__.startswith(OURS):
                    function.cache_clear()


def test_a_trace_of_inside_autocast_goes_on_outside():
    with torch.autocast("cpu", torch.bfloat16):
        inside = LM.trace(IDS)
    assert bits(of_sites(inside)) == bits(of_sites(LM.trace(IDS)))
    longer = LM.trace([*IDS, 3], after=inside)
    assert bits(longer.logits()) == bits(LM.trace([*IDS, 3], after=LM.trace(IDS)).logits())


def test_what_yields_leaves_the_settings_to_whoever_has_the_value():
    with SETTINGS["float64"](), torch.autocast("cpu", torch.bfloat16):
        for _ in LM.generate(IDS, 2, seed=1):
            assert torch.get_default_dtype() is torch.float64
            assert torch.is_autocast_enabled("cpu")


def test_threads_that_leave_in_another_order_put_back_what_was_set_first():
    """One thread is inside when the other comes, and leaves first."""
    first_is_in = threading.Event()
    first_may_go = threading.Event()
    found = []

    def first() -> None:
        with settled():
            first_is_in.set()
            first_may_go.wait(60)

    with SETTINGS["float64"]():
        other = threading.Thread(target=first)
        other.start()
        first_is_in.wait(60)
        with settled():
            first_may_go.set()
            other.join(60)
            found.append(torch.get_default_dtype())
        found.append(torch.get_default_dtype())
    assert found == [torch.float32, torch.float64]


def test_what_is_raised_inside_leaves_the_settings_as_they_were():
    @undisturbed
    def refuses() -> None:
        raise ValueError("no")

    with SETTINGS["float64"](), SETTINGS["a default device"](), torch.autocast("cpu"):
        before = state()
        with pytest.raises(ValueError, match="no"):
            refuses()
        assert state() == before
