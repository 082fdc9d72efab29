"""The number of bytes that objects hold, for every cache with a limit in bytes."""

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
    (a Trace) is asked. Classes, functions and modules count nothing.
    """
    buffers: dict[int, int] = {}
    seen: dict[int, Any] = {}  # by id, with the object, so that no id is taken by another meanwhile
    total = 0
    waiting = list(things)
    while waiting:
        value = waiting.pop()
        kind = type(value)  # which is enough to tell most values apart
        usual = kind in _PLAIN or kind in _LISTS
        if id(value) in seen or value is None or (not usual and isinstance(value, _NOBODYS)):
            continue
        seen[id(value)] = value
        if usual:
            total += sys.getsizeof(value)
            waiting.extend(value if kind in _LISTS else ())
        elif isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            buffers[storage.data_ptr()] = storage.nbytes()
        elif isinstance(value, np.ndarray):
            if value.base is not None:
                waiting.append(value.base)
            else:
                buffers[value.__array_interface__["data"][0]] = value.nbytes
            if value.dtype.hasobject:
                waiting.extend(value.flat)
        elif isinstance(value, memoryview):
            waiting.append(value.obj)
        elif isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            usage = value.memory_usage(deep=True)
            total += int(usage if isinstance(usage, int) else usage.sum())
        elif isinstance(getattr(value, "nbytes", None), int):
            total += value.nbytes
        else:
            total += sys.getsizeof(value)
            waiting.extend(_parts(value))
    return total + sum(buffers.values())


_PLAIN = {str, bytes, int, float, bool}
_LISTS = {list, tuple, set, frozenset}
_NOBODYS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, str | bytes | bytearray | int | float | complex):
        return []
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [getattr(value, "__dict__", None), *(getattr(value, name, None) for name in slots)]
