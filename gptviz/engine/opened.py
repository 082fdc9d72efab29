"""Blocks that were run once more for a lean trace; the most recent results are kept.

A lean trace is one of a long text: it does not hold all sites of the pass, but those that every block starts
from. When another site is asked for, its block is "opened": run again, from the stream that came into it.
"""

import weakref
from typing import Any, NamedTuple

from torch import Tensor

from gptviz.engine import forward
from gptviz.engine.sites import Key, sites_of
from gptviz.engine.sizes import nbytes_of

# Bytes for all traces together, 134 MB. Of 1,024 tokens of GPT-2 a block's attention takes 57 MB and the rest
# of it 35 MB: two attentions fit, or all of one block and the rest of another.
MOST_BYTES = 2**27


class Part(NamedTuple):
    """The part of a block that runs at once: the sites in its attention, or all its other sites."""

    block: int
    in_attention: bool


class Opened(dict[Part, dict[Key, Tensor]]):
    """The sites of the opened parts of one trace. A class, since a plain dict takes no weak references."""


class _Entry(NamedTuple):
    """One opened part of a trace that is alive, or was: the weak reference must not keep it alive."""

    parts: weakref.ref[Opened]
    part: Part
    n_bytes: int


_latest: list[_Entry] = []  # of all traces, the oldest first; changed only inside `forward.alone`


def opened(trace: Any, kept: Opened, key: Key) -> Tensor:
    """Return a site of a block of a Trace, from `kept` or by running a part of the block once more.

    `kept` has the opened parts of this trace. A part is dropped when the trace is, or to make room for newer
    ones. Raises ValueError if the model is no longer in memory, or its weights have changed.
    """
    name, block = key
    assert block is not None, "a trace holds every site outside the blocks"
    part = Part(block, sites_of(trace.config)[name].in_attention)
    values = kept.get(part)
    if values is None:
        # One thread at a time runs a model. Another that waited here for the same part finds it in `kept`.
        with forward.alone():
            values = kept.get(part)
            if values is None:
                # Reader.again runs the attention alone, or the block, and gives its sites
                values = kept[part] = trace.lm.again(trace, part.block, part.in_attention)
                _make_room(_Entry(weakref.ref(kept), part, nbytes_of(*values.values())))
    return values[key]


def _make_room(new: _Entry) -> None:
    """Add a part that was just opened; drop the oldest ones until all fit into MOST_BYTES."""
    _latest[:] = [entry for entry in _latest if entry.parts() is not None] + [new]
    while sum(entry.n_bytes for entry in _latest) > MOST_BYTES:
        oldest = _latest.pop(0)
        parts = oldest.parts()
        if parts is not None:
            parts.pop(oldest.part, None)
