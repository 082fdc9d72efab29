"""The real shapes of a function's variables, recorded while it runs."""

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch

from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed
from gptviz.fast import kernels

Shape = tuple[int, ...]
Shapes = dict[str, tuple[Shape, ...]]  # variable -> the shapes it had, in order


def record_shapes(
    functions: Iterable[Callable[..., Any]], run: Callable[[], object]
) -> dict[str, Shapes]:
    """Run `run`, and record the tensors and arrays among the variables of these functions.

    `__qualname__` -> variable -> its shapes in the order it had them, of the first call of each function. A
    function that `run` never comes by has no entry. Only this thread is watched; what `run` raises is
    raised.
    """
    names: dict[CodeType, str] = {}
    for function in functions:
        inner = inspect.unwrap(function)
        names[inner.__code__] = inner.__qualname__
    recorded: dict[str, Shapes] = {}

    def watch(frame: FrameType, event: str, arg: object) -> Any:
        name = names.get(frame.f_code)
        if name is None or name in recorded:
            return None
        shapes = recorded[name] = {}

        def line(frame: FrameType, event: str, arg: object) -> Any:
            _take_down(frame, shapes)
            return line

        return line

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
    return recorded


def _take_down(frame: FrameType, shapes: Shapes) -> None:
    for name, value in frame.f_locals.items():
        if isinstance(value, torch.Tensor | np.ndarray):
            shape = tuple(value.shape)
            earlier = shapes.get(name, ())
            if earlier[-1:] != (shape,):
                shapes[name] = (*earlier, shape)


@undisturbed
def run_first_block(lm: LanguageModel, ids: Sequence[int]) -> None:
    """The model's own pass on these ids, without its other blocks: their shapes are those of the first."""
    shallow = copy.copy(lm.model)
    shallow._modules = {**lm.model._modules, "trf_blocks": lm.model.trf_blocks[:1]}
    with kernels.by_the_book():
        forward.hidden(shallow, lm.batch(ids))
