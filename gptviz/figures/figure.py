"""A Plotly figure that stays the plain dictionaries it was written as, until somebody looks into it.

Plotly's objects check each property of each figure, every time it is drawn: for a page of four figures
that is ten times the work of everything else in them. The tests look into every figure, and so check it.
"""

import base64
from typing import Any

import numpy as np
import plotly.graph_objects as go

# Plotly's names of what a browser's typed arrays can hold
_TYPES = {"float32": "f4", "float64": "f8"}
_TYPES |= {
    f"{sign}int{8 * size}": f"{letter}{size}"
    for sign, letter in (("", "i"), ("u", "u"))
    for size in (1, 2, 4)
}


class Figure(go.Figure):
    """`go.Figure({"data": [...], "layout": {...}})`, drawn as it is written, built when it is read.

    `fig.data`, `fig.layout` and all that changes a figure build Plotly's objects first, with their usual
    errors. Each trace states its `type`, a title is {"text": ...}: short forms are Plotly's objects'.
    """

    def __init__(self, written: dict[str, Any]):
        self._written: dict[str, Any] | None = written

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there: before the figure is built that is all of Plotly's own."""
        written = self.__dict__.get("_written")
        if written is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        self._written = None
        super().__init__(written)
        return getattr(self, name)

    @property
    def height(self) -> float:
        """In pixels, as it was written."""
        return float((self.__dict__["_written"] or super().to_dict())["layout"]["height"])

    def larger(self, factor: float) -> "Figure":
        """The same with type, points, margins and height of this factor: for a screen that is far away."""
        written = self.__dict__["_written"] or super().to_dict()
        layout = _larger(written["layout"], factor)
        if "height" in layout:
            layout["height"] *= factor
        return Figure({"data": _larger(written["data"], factor), "layout": layout})

    def to_dict(self) -> dict[str, Any]:
        """What the browser gets: fresh dictionaries, arrays of numbers as typed arrays."""
        written = self.__dict__["_written"]
        if written is None:
            return super().to_dict()
        return {part: packed(written[part]) for part in ("data", "layout")}


# pixels wherever they stand; "size" is some only in a font or a marker (elsewhere it may be a bin's)
_PIXELS = ("thickness", "xshift", "yshift", "standoff", "ticklabelstandoff")


def _larger(value: Any, factor: float, of: str = "") -> Any:
    """Fresh dictionaries and lists; `of` is the key that the value stands under."""
    if isinstance(value, list | tuple):
        return [_larger(part, factor, of) for part in value]
    if not isinstance(value, dict):
        return value
    sized = of == "marker" or of.endswith("font")
    return {
        key: part * factor
        if isinstance(part, int | float) and (of == "margin" or key in _PIXELS or (key == "size" and sized))
        else _larger(part, factor, key)
        for key, part in value.items()
    }


def packed(value: Any) -> Any:
    """The same as plain JSON; an array of numbers as the {"dtype", "bdata", "shape"} that Plotly reads."""
    if isinstance(value, dict):
        return {key: packed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [packed(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _array(value)
    return value


def _array(array: np.ndarray) -> Any:
    if array.dtype == np.int64:  # a browser has no such array
        if not array.size or np.abs(array).max() > np.iinfo(np.int32).max:
            return array.tolist()
        array = array.astype(np.int32)
    code = _TYPES.get(array.dtype.name)
    if code is None or not array.size:
        return packed(array.tolist())
    data = {"dtype": code, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    return data if array.ndim == 1 else data | {"shape": ", ".join(map(str, array.shape))}
