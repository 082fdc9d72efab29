"""Read a chart that was written for Plotly: its arrays, its texts, its colours, its axes."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.theme import sample

Written = Mapping[str, Any]

FIELD = re.compile(r"%\{([\w.]+)(?:\[(\d+)\])?(?::([^}]*))?\}")  # a gap of a hover's sentence
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def values(of: Any) -> list[Any]:
    """A trace's array as a list: it may be written as the bytes of a typed array."""
    if isinstance(of, Mapping):
        return array(of).tolist()
    return list(of)


def array(of: Any) -> NDArray[Any]:
    """A trace's array as one of numpy's."""
    if not isinstance(of, Mapping):
        return np.asarray(of)
    numbers = np.frombuffer(base64.b64decode(of["bdata"]), np.dtype(of["dtype"]))
    if "shape" in of:
        return numbers.reshape([int(side) for side in of["shape"].split(",")])
    return numbers


def grid(of: Any) -> NDArray[np.float64]:
    """A heat map's numbers (rows, columns); NaN where there is none."""
    return array(of).astype(np.float64)


def each(of: Any, count: int, default: Any = None) -> list[Any]:
    """A property of each of `count` marks, which may be written once for all of them."""
    if of is None:
        return [default] * count
    if isinstance(of, str | int | float):
        return [of] * count
    return values(of)


def plain(text: object) -> str:
    """A label without its tags: "<br>" begins a new line, "<sub>3</sub>" is a small 3."""
    stripped = re.sub(r"<br\s*/?>", "\n", str(text))
    stripped = re.sub(r"<sub>(\d+)</sub>", lambda number: number[1].translate(_SMALL), stripped)
    return unescape(re.sub(r"<[^<>]+>", "", stripped))


def runs(line: str, color: str) -> list[tuple[str, str]]:
    """A label's line in pieces, each with its colour: "<span style='color:#d9690f'>● fires</span>"."""
    parts = re.split(r"<span style='color:(#\w{6})'>(.*?)</span>", line)
    pieces = [(plain(parts[0]), color)]
    for piece_color, text, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        pieces += [(plain(text), piece_color), (plain(after), color)]
    return [(text, piece_color) for text, piece_color in pieces if text]


def is_bold(line: str) -> bool:
    """Whether a whole line of a label is set in bold."""
    return line.startswith("<b>") and line.endswith("</b>")


def paint(color: Any) -> tuple[str | None, float]:
    """A colour as "#rrggbb" and its opacity; None for one that cannot be seen."""
    match = re.fullmatch(r"rgba?\(([^)]*)\)", str(color))
    if match is None:
        return color, 1.0
    red, green, blue, *alpha = (float(part) for part in match[1].split(","))
    opacity = alpha[0] if alpha else 1.0
    if opacity == 0:
        return None, 0.0
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}", opacity


def colors_of(
    z: NDArray[np.float64], scale: Sequence[Sequence[Any]], low: float, high: float
) -> NDArray[np.uint8]:
    """The colours (rows, columns, 3) of a map's numbers."""
    shares = (z - low) / ((high - low) or 1.0)
    return sample([(stop, color) for stop, color in scale], np.nan_to_num(shares))


def number(value: float) -> str:
    """A number as it is written at an axis."""
    size = abs(value)
    if size and (size < 1e-3 or size >= 1e6):
        mantissa, power = f"{value:.0e}".split("e")
        raised = f"10{str(int(power)).translate(_RAISED)}"
        if mantissa == "1":
            return raised
        return f"{mantissa.replace('-', '−')}×{raised}"
    return f"{value:,.10g}".replace("-", "−")


def filled(template: str, fields: Mapping[str, Any]) -> str:
    """Fill the fields of a mark into Plotly's hover template. frame.js has the same rules."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        index = match[2]
        form = match[3]
        value = fields.get(name, "")
        if index is not None:
            value = value[int(index)]
        if form:
            return formatted(value, form)
        return plain(value)

    text = re.sub(r"<extra>.*?</extra>", "", template)
    return plain(FIELD.sub(fill, text))


def formatted(value: float, form: str) -> str:
    """A number by a form that our figures use: ".3f", ".3r" (digits that mean something), ".4~r"."""
    digits = int(form.strip(".~rf"))
    if form.endswith("f"):
        return f"{value:.{digits}f}".replace("-", "−")
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    text = f"{float(f'{mantissa}e{power}'):.{max(0, digits - 1 - int(power))}f}"
    if "~" in form and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


# ---- axes ----


@dataclass
class Axis:
    """An axis: its Plotly layout, its categories or range, and the pixels at which it starts and ends."""

    horizontal: bool
    written: Written
    categories: list[str] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    start: float = 0.0  # the pixel of `low`
    end: float = 1.0  # the pixel of `high`

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.written.get("domain", (0.0, 1.0))
        return float(low), float(high)

    @property
    def shown(self) -> bool:
        return bool(self.written.get("visible", True))

    @property
    def labelled(self) -> bool:
        return self.shown and bool(self.written.get("showticklabels", True))

    @property
    def is_log(self) -> bool:
        return self.written.get("type") == "log"

    @property
    def title(self) -> str:
        return plain(self.written.get("title", {}).get("text", ""))

    @property
    def size(self) -> float:
        """Pixels of its labels' type."""
        return float(self.written.get("tickfont", {}).get("size", 13))

    def place(self, value: Any) -> float:
        """The place of a value in the axis' own units (log10 on a log axis); NaN where it has none."""
        if value is None:
            return math.nan
        if isinstance(value, str):
            if value in self.categories:
                return float(self.categories.index(value))
            return math.nan
        if self.is_log:
            if value > 0:
                return math.log10(value)
            return math.nan
        return float(value)

    def at(self, value: Any) -> float:
        """The pixel of a value."""
        return self.pixel(self.place(value))

    def pixel(self, place: float) -> float:
        return self.start + (place - self.low) / ((self.high - self.low) or 1.0) * (
            self.end - self.start
        )

    def ticks(self) -> list[tuple[float, str]]:
        """The places of the axis' labels, in its own units, and their texts."""
        alias = self.written.get("labelalias", {})
        tickvals = self.written.get("tickvals")
        if tickvals is not None:
            names = self.written.get("ticktext")
            places = [self.place(value) for value in values(tickvals)]
            if names is None:
                texts = [number(place) for place in places]
            else:
                texts = [str(name) for name in names]
            return [
                (position, text)
                for position, text in zip(places, texts, strict=False)
                if self._has(position)
            ]
        if self.categories:
            room = abs(self.end - self.start) / max(1.0, abs(self.high - self.low))
            every_nth = max(1, math.ceil(1.2 * self.size / max(room, 0.01)))
            texts = [alias.get(name, name) for name in self.categories]
            return [
                (float(i), text)
                for i, text in enumerate(texts)
                if i % every_nth == 0 and self._has(i)
            ]
        low, high = sorted((self.low, self.high))
        if self.is_log:
            powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            return [(float(power), number(10.0**power)) for power in powers]
        step = _step(high - low, abs(self.end - self.start), self.horizontal)
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        return [(i * step, number(round(i * step, 10))) for i in range(first, last + 1)]

    def _has(self, place: float) -> bool:
        low, high = sorted((self.low, self.high))
        return low - 1e-6 <= place <= high + 1e-6


def _step(span: float, pixels: float, horizontal: bool) -> float:
    """A round step between labels, so that they have room."""
    most = max(2.0, pixels / (90 if horizontal else 45))
    rough = (span or 1.0) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
