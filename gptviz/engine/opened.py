"""Blocks that were run once more for a lean trace; the most recent ones are kept."""

import weakref
from typing import Any

from torch import Tensor

from gptviz.engine import forward
from gptviz.engine.sites import SITES, Key
from gptviz.engine.sizes import nbytes_of

MOST_BYTES = 2**27  # of all traces together: three blocks of 1,024 tokens of GPT-2

Part = tuple[int, bool]  # a block, and whether it is what is inside its attention


class Opened(dict[Part, dict[Key, Tensor]]):
    """The opened blocks of one trace; unlike a dict it can be referred to weakly."""


_latest: list[tuple[weakref.ref[Opened], Part, int]] = []  # whose, which, how many bytes; the oldest first


def opened(trace: Any, kept: Opened, key: Key) -> Tensor:
    """A site of a block of a Trace, from `kept` or by running the block once more.

    `kept` belongs to the trace; its entries go with the trace, or to make room for newer ones. Raises
    ValueError if the model is no longer in memory, or its weights have changed.
    """
    name, block = key
    assert block is not None, "what is outside the blocks is held"
    part = block, SITES[name].in_attention
    values = kept.get(part)
    if values is None:
        with forward.alone():  # a caller who asks for the same meanwhile waits, and finds it
            values = kept.get(part)
            if values is None:
                values = kept[part] = trace.lm.again(trace, *part)
                _make_room((weakref.ref(kept), part, nbytes_of(*values.values())))
    return values[key]


def _make_room(new: tuple[weakref.ref[Opened], Part, int]) -> None:
    _latest[:] = [entry for entry in _latest if entry[0]() is not None] + [new]
    while sum(size for _, _, size in _latest) > MOST_BYTES:
        whose, part, _ = _latest.pop(0)
        blocks = whose()
        if blocks is not None:
            blocks.pop(part, None)
