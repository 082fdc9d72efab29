"""Marks as SVG: shapes stay shapes and text stays text, in the reader's own fonts."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gptviz.figures.still.canvas import (
    DASHES,
    Canvas,
    Curve,
    Disc,
    Group,
    Line,
    Mark,
    Pixels,
    Rectangle,
    Text,
)

FAMILY = "'Source Sans 3', 'Source Sans Pro', 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
NOT_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def svg(canvas: Canvas, title: str = "") -> str:
    """The picture as the text of an SVG file; `title` is what a screen reader says of it."""
    width = _number(canvas.width)
    height = _number(canvas.height)
    named = ""
    if title:
        named = f"<title>{_text(title)}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FAMILY}">{named}'
        f'<rect width="100%" height="100%" fill="{canvas.paper}"/>{_all(canvas.marks)}</svg>'
    )


def _all(marks: Sequence[Mark]) -> str:
    return "".join(map(_mark, marks))


def _mark(mark: Mark) -> str:
    match mark:
        case Group():
            return f'<g transform="translate({_number(mark.x)} {_number(mark.y)})">{_all(mark.marks)}</g>'
        case Rectangle():
            paint = _paint(mark.fill, mark.stroke, mark.stroke_width, mark.dash, mark.opacity)
            return f"<rect {_box(mark)}{paint}/>"
        case Line():
            points = "L".join(f"{_number(x)} {_number(y)}" for x, y in mark.points)
            end = "Z" if mark.fill else ""
            paint = _paint(mark.fill, mark.color, mark.width, mark.dash, mark.opacity)
            return f'<path d="M{points}{end}"{paint}/>'
        case Curve():
            start, *rest = (f"{_number(x)} {_number(y)}" for x, y in mark.points)
            paint = _paint(None, mark.color, mark.width, mark.dash, mark.opacity)
            return f'<path d="M{start}C{" ".join(rest)}"{paint}/>'
        case Disc():
            place = f'cx="{_number(mark.x)}" cy="{_number(mark.y)}" r="{_number(mark.radius)}"'
            paint = _paint(mark.fill, mark.stroke, mark.stroke_width, "solid", mark.opacity)
            return f"<circle {place}{paint}/>"
        case Pixels():
            drawn = base64.b64encode(png_of(mark.colors)).decode()
            return (
                f'<image {_box(mark)} preserveAspectRatio="none" style="image-rendering:pixelated" '
                f'href="data:image/png;base64,{drawn}"/>'
            )
        case Text():
            return _written(mark)


def _written(mark: Text) -> str:
    x = _number(mark.x)
    y = _number(mark.y)
    more = ""
    if mark.anchor != "start":
        more += f' text-anchor="{mark.anchor}"'
    if mark.bold:
        more += ' font-weight="650"'
    if mark.turn:
        more += f' transform="rotate({_number(mark.turn)} {x} {y})"'
    if mark.opacity < 1:
        more += f' opacity="{_number(mark.opacity)}"'
    place = f'x="{x}" y="{y}" font-size="{_number(mark.size)}" fill="{mark.color}"{more}'
    return f'<text {place} xml:space="preserve">{_text(mark.text)}</text>'


def _box(mark: Rectangle | Pixels) -> str:
    place = f'x="{_number(mark.x)}" y="{_number(mark.y)}"'
    return f'{place} width="{_number(mark.width)}" height="{_number(mark.height)}"'


def _paint(fill: str | None, stroke: str | None, width: float, dash: str, opacity: float) -> str:
    written = f' fill="{fill or "none"}"'
    if stroke and width:
        written += f' stroke="{stroke}" stroke-width="{_number(width)}"'
        if dash in DASHES:
            written += f' stroke-dasharray="{" ".join(map(_number, DASHES[dash]))}"'
    if opacity < 1:
        written += f' opacity="{_number(opacity)}"'
    return written


def _text(text: str) -> str:
    return escape(NOT_XML.sub("�", text))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def png_of(colors: NDArray[np.uint8]) -> bytes:
    """A grid of colours (rows, columns, 3) as a PNG, a pixel each; with a palette where 256 are enough."""
    image = Image.fromarray(colors)
    if image.getcolors(256) is not None:
        image = image.convert("P", palette=Image.Palette.ADAPTIVE)
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return file.getvalue()
