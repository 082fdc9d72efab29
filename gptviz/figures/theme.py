"""One palette for everything that is drawn, in the browser's light and dark.

Colour means the same everywhere (CONTRIBUTING.md has the table): ink is what a person has chosen or can press;
attention runs from paper to purple, and what a head writes is purple; the feed-forward layer is gold; a probability
is teal, a loss is pink; signed values run blue - paper - orange, centred on zero; query blue, key red, value green;
what the causal mask hides is flat grey. Every figure of the package is made by `figure`.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

Mode = Literal["light", "dark"]
Scale = list[tuple[float, str]]  # a Plotly colour scale


@dataclass(frozen=True)
class Palette:
    paper: str
    panel: str
    ink: str
    quiet: str  # secondary text, axis lines
    grid: str
    accent: str  # what is chosen, and what can be pressed
    query: str
    key: str
    value: str
    output: str  # attention: what a head writes
    feed_forward: str
    probability: str
    loss: str
    positive: str
    negative: str
    masked: str
    # what the unchanged model gives, where it stands beside the changed one (see marks.py)
    ghost: str
    attention: Scale
    signed: Scale
    probabilities: Scale
    positions: tuple[str, ...]  # a chip's colour by its position, in turn
    # a head's colour where lines of several are in one picture; 4.5 to 1 on paper
    heads: tuple[str, ...]


PALETTES: dict[Mode, Palette] = {
    "light": Palette(
        paper="#fbfaf7",
        panel="#f1eee7",
        ink="#23202b",
        quiet="#6d6878",
        grid="#e4e0d8",
        accent="#23202b",
        query="#2563c9",
        key="#c23b36",
        value="#1c7746",
        output="#6a3fb5",
        feed_forward="#7f6100",
        probability="#0f7684",
        loss="#b0307a",
        positive="#d9690f",
        negative="#1f5fbf",
        masked="#d8d5ce",
        ghost="#88838f",
        attention=[
            (0.0, "#fbfaf7"),
            (0.15, "#e6dcf4"),
            (0.4, "#b99ede"),
            (0.7, "#7a4db8"),
            (1.0, "#3b1470"),
        ],
        signed=[
            (0.0, "#164a9c"),
            (0.25, "#8db3e6"),
            (0.5, "#fbfaf7"),
            (0.75, "#f4b072"),
            (1.0, "#c2570a"),
        ],
        probabilities=[
            (0.0, "#fbfaf7"),
            (0.15, "#d5ecec"),
            (0.4, "#93ccd0"),
            (0.7, "#2c8b96"),
            (1.0, "#06434b"),
        ],
        positions=(
            *("#e6dcf4", "#d3e5f7", "#d5eddc", "#fae7c8", "#f9d9d6"),
            *("#dfe3f6", "#d0ecea", "#ecebc8", "#f6dcec", "#e4e0d8"),
        ),
        heads=(
            *("#2563c9", "#b95309", "#1c7746", "#b0307a", "#6a3fb5", "#856800"),
            *("#0f7684", "#c23b36", "#4a5568", "#7a4a21", "#3d7400", "#8b3fa8"),
        ),
    ),
    "dark": Palette(
        paper="#16151b",
        panel="#23212b",
        ink="#ece9f1",
        quiet="#a39eb0",
        grid="#34323d",
        accent="#ece9f1",
        query="#7fb0ff",
        key="#ff8e87",
        value="#6fd39b",
        output="#bfa3ff",
        feed_forward="#e8cf2a",
        probability="#4fd1c5",
        loss="#ff8fc4",
        positive="#ffb066",
        negative="#7fb0ff",
        masked="#3a3843",
        ghost="#8b8697",
        attention=[
            (0.0, "#16151b"),
            (0.15, "#33264f"),
            (0.4, "#6643ac"),
            (0.7, "#a482ee"),
            (1.0, "#f3ecff"),
        ],
        signed=[
            (0.0, "#8dbaff"),
            (0.25, "#2f568f"),
            (0.5, "#16151b"),
            (0.75, "#8a5018"),
            (1.0, "#ffb366"),
        ],
        probabilities=[
            (0.0, "#16151b"),
            (0.15, "#15403e"),
            (0.4, "#217870"),
            (0.7, "#46c2b7"),
            (1.0, "#e6fcf9"),
        ],
        positions=(
            *("#43346b", "#26466b", "#28503a", "#5e4a22", "#63332f"),
            *("#343d6b", "#215250", "#505024", "#5c3350", "#45424f"),
        ),
        heads=(
            *("#7fb0ff", "#ffb066", "#6fd39b", "#ff8fc4", "#bfa3ff", "#e6c84f"),
            *("#5fd0dd", "#ff8e87", "#b8c0cc", "#d9a679", "#a5d65c", "#dd9bf5"),
        ),
    ),
}


def palette(mode: Mode) -> Palette:
    return PALETTES[mode]


def rgb(color: str) -> tuple[int, ...]:
    """Red, green and blue of `#rrggbb`, 0 to 255."""
    return tuple(bytes.fromhex(color[1:]))


def mixed(low: str, high: str, share: float) -> str:
    """The colour at `share` (0 to 1) of the way from `low` to `high`, both `#rrggbb`."""
    share = min(max(share, 0.0), 1.0)
    pairs = zip(rgb(low), rgb(high), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def sample(scale: Scale, shares: np.ndarray) -> np.ndarray:
    """A colour scale at shares from 0 to 1, outside of them its ends: (...) -> (..., 3) uint8, straight in
    RGB as Plotly draws it."""
    stops = [stop for stop, _ in scale]
    channels = np.array([rgb(color) for _, color in scale]).T  # (3, stops)
    mixed = [np.interp(shares, stops, channel) for channel in channels]
    return np.rint(np.stack(mixed, axis=-1)).astype(np.uint8)  # 3 of (...) -> (..., 3)


def color_at(scale: Scale, share: float) -> str:
    """The colour of a scale at `share`; outside of 0 to 1 its ends."""
    return f"#{sample(scale, np.asarray(share)).tobytes().hex()}"


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2): text can be read from 4.5 on."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = (part / 255 for part in rgb(color))
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(color: str) -> str:
    """Black or white, whichever can be read better on it: at least 4.58 to 1 on any colour."""
    return max("#000000", "#ffffff", key=lambda text: contrast(color, text))


FONT = "Source Sans, sans-serif"
LABEL = 14  # pixels of what is written at an axis; HOVER of the sentence over a point
HOVER = 15
MARGIN = {"l": 8, "r": 8, "t": 28, "b": 8}


@cache
def _constant(mode: Mode) -> dict[str, Any]:
    """The layout that all figures of a mode share.

    Read only: it is in every one of them.

    Paper and font stand in the layout itself, since Streamlit puts its own where a layout has none.
    """
    colors = PALETTES[mode]
    return {
        "paper_bgcolor": colors.paper,
        "plot_bgcolor": colors.paper,
        "font": {"family": FONT, "size": LABEL, "color": colors.ink},
        "hoverlabel": {
            "bgcolor": colors.panel,
            "bordercolor": colors.grid,
            "font": {"family": FONT, "color": colors.ink, "size": HOVER},
        },
        "showlegend": False,
        "barmode": "overlay",  # a ghost, or a part, lies over its bar
        # a drag scrolls the page: nothing here needs a zoom that cannot be undone
        "dragmode": False,
    }


@cache
def _axis(mode: Mode) -> dict[str, Any]:
    """The layout of every axis; a drag along it moves nothing, since that could not be undone.

    Not a template: Plotly would take it for a new one every time, and redraw.
    """
    grid = PALETTES[mode].grid
    look = {
        "automargin": True,
        "zeroline": False,
        "gridcolor": grid,
        "linecolor": grid,
        "showline": False,
    }
    small = {"exponentformat": "power"}  # 2×10⁻⁵, where Plotly would write 20μ
    # labels have room (automargin): Plotly would lay out the page once a label, to see whether it fits
    small |= {"ticklabeloverflow": "allow"}
    return look | small | {"ticks": "", "fixedrange": True, "title": {"font": {"size": LABEL}}}


# Plotly's names of what a browser's typed arrays can hold
_TYPES = {np.dtype(code): code for code in ("f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4")}


class Figure(go.Figure):
    """`go.Figure({"data": [...], "layout": {...}})`, drawn as it is written, built when it is read.

    Plotly's objects check each property of each figure, every time it is drawn: for a page of four figures
    that is ten times the work of everything else in them. The tests look into every figure, and so check it.

    `fig.data`, `fig.layout` and all that changes a figure build Plotly's objects first, with their usual
    errors. Each trace states its `type`, a title is {"text": ...}: short forms are Plotly's objects'.
    """

    def __init__(self, written: dict[str, Any]):
        self._written: dict[str, Any] | None = written

    def __getattr__(self, name: str) -> Any:
        """Build Plotly's figure at the first access of one of its own attributes."""
        written = self.__dict__.get("_written")
        if written is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        self._written = None
        super().__init__(written)
        if "template" not in written["layout"]:
            self._layout.pop("template", None)  # Plotly's own, which it has by now
        return getattr(self, name)

    @property
    def _now(self) -> dict[str, Any]:
        return self.__dict__["_written"] or super().to_dict()

    @property
    def height(self) -> float:
        """In pixels, as it was written."""
        return float(self._now["layout"]["height"])

    @property
    def cells(self) -> tuple[int, int]:
        """The numbers of rows and columns of its first heatmap."""
        rows, columns = np.shape(
            next(trace["z"] for trace in self._now["data"] if trace["type"] == "heatmap")
        )
        return rows, columns

    def laid_out(self, **layout: Any) -> "Figure":
        """The same with this in its layout."""
        return Figure(self._now | {"layout": self._now["layout"] | layout})

    def larger(self, factor: float) -> "Figure":
        """The same with type, points, margins and height times `factor`: for a screen that is far away."""
        layout = _larger(self._now["layout"], factor)
        if "height" in layout:
            layout["height"] *= factor
        return Figure({"data": _larger(self._now["data"], factor), "layout": layout})

    def to_dict(self) -> dict[str, Any]:
        """The figure for the browser: fresh dictionaries, long arrays as typed arrays."""
        written = self.__dict__["_written"]
        if written is None:
            return super().to_dict()
        return {part: packed(written[part]) for part in ("data", "layout")}


# pixels wherever they stand; "size" is some only in a font or a marker (elsewhere it may be a bin's)
_PIXELS = ("thickness", "xshift", "yshift", "standoff", "ticklabelstandoff")


def _larger(value: Any, factor: float, parent_key: str = "") -> Any:
    """Copy with pixel sizes multiplied by `factor`; `parent_key` is the key that the value stands under."""
    if isinstance(value, list | tuple):
        return [_larger(part, factor, parent_key) for part in value]
    if not isinstance(value, dict):
        return value
    sized = parent_key == "marker" or parent_key.endswith("font")
    return {
        key: part * factor
        if isinstance(part, int | float)
        and (parent_key == "margin" or key in _PIXELS or (key == "size" and sized))
        else _larger(part, factor, key)
        for key, part in value.items()
    }


# Up to so many numbers an array is sent as a list: Plotly takes every typed array for a new one, and redraws.
# Above that the bytes of a list cost more than the redraw.
LISTED = 4096
_PLAIN = {str, int, float, bool, type(None)}


def packed(value: Any) -> Any:
    """The same as plain JSON; a long array of numbers as the {"dtype", "bdata", "shape"} of Plotly's."""
    if type(value) in _PLAIN:  # nearly all, and asked first
        return value
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
    code = _TYPES.get(array.dtype)
    if code is None or not array.size:
        return packed(array.tolist())
    if array.size <= LISTED:
        return _listed(array)
    data = {"dtype": code, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    if array.ndim == 1:
        return data
    return data | {"shape": ", ".join(map(str, array.shape))}


def _listed(array: np.ndarray) -> Any:
    """Numbers as nested lists: float32 with the 9 digits that restore it, NaN and infinity as None."""
    if array.dtype.kind != "f":
        return array.tolist()
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    if array.dtype == np.float32:
        size = np.log10(np.abs(numbers), where=finite & (numbers != 0), out=np.zeros_like(numbers))
        scale = 10.0 ** (8 - np.floor(size))
        numbers = np.round(numbers * scale) / scale
    if finite.all():
        return numbers.tolist()
    gaps = numbers.astype(object)
    gaps[~finite] = None
    return gaps.tolist()


def _axis_of(trace: Mapping[str, Any], xy: str) -> str:
    return f"{xy}axis{trace.get(f'{xy}axis', xy)[1:]}"


def figure(
    traces: Sequence[Mapping[str, Any]],
    layout: Mapping[str, Any],
    mode: Mode,
    height: float,
    **margin: float,
) -> Figure:
    """The house's figure: paper, ink, one font, no decoration.

    Traces and layout are written out in full: a trace has its "type", a title is {"text": ...}. `margin` is
    l, r, t or b where it is not `MARGIN`.
    """
    shared = _constant(mode) | {"height": height, "margin": MARGIN | margin}
    layout = shared | dict(layout)
    barred = {
        _axis_of(t, "y" if t.get("orientation") == "h" else "x")
        for t in traces
        if t["type"] == "bar"
    }
    used = {_axis_of(trace, xy) for trace in traces for xy in "xy"}
    for name in sorted(used | {name for name in layout if name[1:5] == "axis"}):
        axis = _axis(mode) | {"showgrid": name not in barred}
        written = layout.get(name, {})
        layout[name] = axis | written | {"title": axis["title"] | written.get("title", {})}
    if "annotations" in layout:
        layout["annotations"] = [{"showarrow": False} | note for note in layout["annotations"]]
    return Figure({"data": list(traces), "layout": layout})
