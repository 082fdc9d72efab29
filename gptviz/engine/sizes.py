"""How many bytes something holds: what every cache that is bounded by bytes counts with."""

import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch


def nbytes_of(*things: Any) -> int:
    """Bytes of everything these objects hold, each once however many names it has.

    Tensors and arrays count as the whole buffer that they keep alive, views included. Lists, tuples,
    sets, dicts, dataclasses and other objects are looked into; an object that knows its own `nbytes`
    (a Trace) is asked. Classes, functions and modules are nobody's and count nothing.
    """
    buffers: dict[int, int] = {}
    seen: dict[int, Any] = {}  # by id, with the object, so that no id is taken by another meanwhile
    total = 0
    waiting = list(things)
    while waiting:
        thing = waiting.pop()
        kind = type(thing)  # which answers for most of what there is
        usual = kind in _PLAIN or kind in _LISTS
        if id(thing) in seen or thing is None or (not usual and isinstance(thing, _NOBODYS)):
            continue
        seen[id(thing)] = thing
        if usual:
            total += sys.getsizeof(thing)
            waiting.extend(thing if kind in _LISTS else ())
        elif isinstance(thing, torch.Tensor):
            storage = thing.untyped_storage()
            buffers[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, np.ndarray):
            if thing.base is not None:
                waiting.append(thing.base)
            else:
                buffers[thing.__array_interface__["data"][0]] = thing.nbytes
            if thing.dtype.hasobject:
                waiting.extend(thing.flat)
        elif isinstance(thing, memoryview):
            waiting.append(thing.obj)
        elif isinstance(thing, pd.DataFrame | pd.Series | pd.Index):
            usage = thing.memory_usage(deep=True)
            total += int(usage if isinstance(usage, int) else usage.sum())
        elif isinstance(getattr(thing, "nbytes", None), int):
            total += thing.nbytes
        else:
            total += sys.getsizeof(thing)
            waiting.extend(_parts(thing))
    return total + sum(buffers.values())


_PLAIN = {str, bytes, int, float, bool}
_LISTS = {list, tuple, set, frozenset}
_NOBODYS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, str | bytes | bytearray | int | float | complex):
        return []
    if isinstance(thing, Mapping):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [getattr(thing, "__dict__", None), *(getattr(thing, name, None) for name in slots)]
