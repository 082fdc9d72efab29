"""What a still picture is made of: marks at pixels, counted from the top left."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

WIDTH = 860.0  # pixels of a picture
LINE = 1.3  # a line of text is as high as this many of its sizes
ASCENT = 0.35  # how far a text's middle is above its baseline, in sizes of its type
DASHES = {"dash": (6.0, 4.0), "dot": (2.0, 3.0), "dashdot": (6.0, 3.0, 2.0, 3.0)}


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    opacity: float = 1.0
    dash: str = "solid"


@dataclass(frozen=True)
class Line:
    """Straight lines from point to point; with a `fill`, the shape that they enclose."""

    points: tuple[Point, ...]
    color: str | None
    width: float = 1.0
    dash: str = "solid"
    opacity: float = 1.0
    fill: str | None = None


@dataclass(frozen=True)
class Curve:
    """A Bézier curve: its start, two points that pull at it, and its end."""

    points: tuple[Point, Point, Point, Point]
    color: str
    width: float = 1.0
    dash: str = "solid"
    opacity: float = 1.0


@dataclass(frozen=True)
class Disc:
    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """A line of text; `y` is its baseline, and it is turned about its point by `turn` degrees clockwise."""

    x: float
    y: float
    text: str
    size: float = 14.0
    color: str = "#000000"
    anchor: Anchor = "start"
    bold: bool = False
    turn: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Pixels:
    """A grid of colours (rows, columns, 3), one rectangle each: without smoothing."""

    x: float
    y: float
    width: float
    height: float
    colors: NDArray[np.uint8]


@dataclass(frozen=True)
class Group:
    """Marks that are moved together."""

    x: float
    y: float
    marks: tuple["Mark", ...]


Mark = Rectangle | Line | Curve | Disc | Text | Pixels | Group


@dataclass
class Canvas:
    """The marks of a picture, the later ones over the earlier ones, on a sheet of one colour."""

    width: float
    height: float
    paper: str
    marks: list[Mark] = field(default_factory=list)

    def add(self, *marks: Mark) -> None:
        self.marks.extend(marks)

    def place(self, other: "Canvas", x: float, y: float) -> None:
        """Put another picture's marks here, its top left corner at this point."""
        self.marks.append(Group(x, y, tuple(other.marks)))

    def write(self, x: float, y: float, text: str, size: float, color: str, **more: object) -> None:
        """Write lines of text below each other; `y` is the first one's baseline."""
        for number, line in enumerate(text.split("\n")):
            self.marks.append(Text(x, y + number * LINE * size, line, size, color, **more))  # type: ignore[arg-type]


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The approximate width of a line of text in pixels, without asking any font."""
    narrow = "iljtfrI.,:;'|!()[]·- "
    wide = "mwMW@%—"
    ems = 0.0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            ems += 1.0
        elif unicodedata.combining(character):
            continue
        elif character in narrow:
            ems += 0.34
        elif character in wide:
            ems += 0.9
        elif character.isupper():
            ems += 0.68
        else:
            ems += 0.57
    if bold:
        ems *= 1.07
    return 1.06 * ems * size


def shortened(text: str, size: float, room: float) -> str:
    """The text, or as much of it as fits into `room` pixels, with "…" behind it."""
    if text_width(text, size) <= room:
        return text
    prefix = text
    while prefix and text_width(prefix + "…", size) > room:
        prefix = prefix[:-1]
    return prefix + "…"


def lines_of(text: str, size: float, room: float) -> list[str]:
    """Break a paragraph into lines of at most `room` pixels; a longer word is cut."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size) <= room:
            lines[-1] = longer
            continue
        while text_width(word, size) > room and len(word) > 1:
            part = len(shortened(word, size, room)) - 1
            lines.append(word[: max(1, part)])
            word = word[max(1, part) :]
        lines.append(word)
    return [line for line in lines if line] or [""]


def below(canvases: Sequence[Canvas], gap: float, paper: str) -> Canvas:
    """One picture of several, below each other."""
    width = max((canvas.width for canvas in canvases), default=WIDTH)
    joined = Canvas(width, 0.0, paper)
    for canvas in canvases:
        joined.place(canvas, 0.0, joined.height)
        joined.height += canvas.height + gap
    return joined


def right_end(marks: Sequence[Mark]) -> float:
    """The x of the rightmost pixel of these marks."""
    return max((_right_end(mark) for mark in marks), default=0.0)


def _right_end(mark: Mark) -> float:
    match mark:
        case Group():
            return mark.x + right_end(mark.marks)
        case Rectangle() | Pixels():
            return mark.x + mark.width
        case Disc():
            return mark.x + mark.radius
        case Line() | Curve():
            return max(x for x, _ in mark.points)
        case Text():
            before = {"start": 0.0, "middle": 0.5, "end": 1.0}[mark.anchor]
            along = math.cos(math.radians(mark.turn))
            return mark.x + (1 - before) * along * text_width(mark.text, mark.size, mark.bold)
