"""Marks as a PNG or a PDF, by matplotlib: it is not installed with gptviz, and imported only here."""

import io
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

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

PIXELS = 96  # an inch, as in a browser
# The first one comes with matplotlib; of the others those that this machine has, for what it lacks.
FAMILIES = (
    *("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Serif CJK SC", "PingFang SC"),
    *(
        "Hiragino Sans",
        "Microsoft YaHei",
        "Yu Gothic",
        "Malgun Gothic",
        "WenQuanYi Zen Hei",
        "SimHei",
    ),
    *(
        "Arial Unicode MS",
        "Noto Sans",
        "Noto Sans Arabic",
        "Noto Sans Hebrew",
        "Noto Sans Devanagari",
    ),
    *("Noto Sans Thai", "Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Symbola", "Arial"),
)


def is_installed() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


def png(canvas: Canvas, scale: float = 2.0) -> bytes:
    """The picture as a PNG of `scale` pixels for each of its own."""
    return _drawn(canvas, "png", scale)


def small_png(canvas: Canvas) -> bytes:
    """The same of few bytes: a pixel for each, in 128 colours."""
    drawn = Image.open(io.BytesIO(_drawn(canvas, "png", 1.0))).convert("RGB")
    file = io.BytesIO()
    drawn.quantize(128, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
    return file.getvalue()


def pdf(canvas: Canvas) -> bytes:
    """The picture as a PDF of one page: shapes are shapes, and its fonts are in it."""
    return _drawn(canvas, "pdf", 1.0)


def _drawn(canvas: Canvas, kind: str, scale: float) -> bytes:
    if not is_installed():
        raise ValueError(
            f"a {kind.upper()} is drawn by matplotlib, which is not installed: pip install 'gptviz[paper]', "
            "or save it as .svg, which needs nothing"
        )
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    fig = Figure(
        (canvas.width / PIXELS, canvas.height / PIXELS), PIXELS * scale, facecolor=canvas.paper
    )
    axes = fig.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    axes.set_axis_off()
    _draw(axes, canvas.marks, 0.0, 0.0)
    file = io.BytesIO()
    dateless = None
    if kind == "pdf":
        dateless = {"CreationDate": None}
    with rc_context({"pdf.fonttype": 3}), warnings.catch_warnings():
        # of a font that lacks a letter which another has
        warnings.simplefilter("ignore", UserWarning)
        fig.savefig(
            file, format=kind, dpi=PIXELS * scale, facecolor=canvas.paper, metadata=dateless
        )
    return file.getvalue()


def _draw(axes: Any, marks: Sequence[Mark], left: float, top: float) -> None:
    """Draw marks in their order. Shapes that follow each other go in one piece: ten times as fast."""
    from matplotlib.collections import PatchCollection

    shapes: list[Any] = []

    def draw_shapes() -> None:
        if shapes:
            axes.add_collection(
                PatchCollection(shapes, match_original=True, zorder=1), autolim=False
            )
            shapes.clear()

    for mark in marks:
        if isinstance(mark, Group | Pixels | Text):
            draw_shapes()
        match mark:
            case Group():
                _draw(axes, mark.marks, left + mark.x, top + mark.y)
            case Pixels():
                _paste(axes, mark, left, top)
            case Text():
                _write(axes, mark, left, top)
            case _:
                shapes.append(_shape(mark, left, top))
    draw_shapes()


def _shape(mark: Rectangle | Disc | Line | Curve, left: float, top: float) -> Any:
    from matplotlib import patches, path

    match mark:
        case Rectangle():
            look = _look(mark.fill, mark.stroke, mark.stroke_width, mark.dash, mark.opacity)
            return patches.Rectangle((left + mark.x, top + mark.y), mark.width, mark.height, **look)
        case Disc():
            look = _look(mark.fill, mark.stroke, mark.stroke_width, "solid", mark.opacity)
            return patches.Circle((left + mark.x, top + mark.y), mark.radius, **look)
        case Line():
            look = _look(mark.fill, mark.color, mark.width, mark.dash, mark.opacity)
            points = [(left + x, top + y) for x, y in mark.points]
            return patches.PathPatch(path.Path(points, closed=False), **look)
        case Curve():
            look = _look(None, mark.color, mark.width, mark.dash, mark.opacity)
            points = [(left + x, top + y) for x, y in mark.points]
            codes = [path.Path.MOVETO, *[path.Path.CURVE4] * 3]
            return patches.PathPatch(path.Path(points, codes), **look)


def _paste(axes: Any, mark: Pixels, left: float, top: float) -> None:
    x = left + mark.x
    y = top + mark.y
    box = (x, x + mark.width, y + mark.height, y)
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(mark.colors, extent=box, interpolation="nearest", aspect="auto", zorder=1)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])


def _look(
    fill: str | None, stroke: str | None, width: float, dash: str, opacity: float
) -> dict[str, Any]:
    points = width * 72 / PIXELS
    stroked = stroke is not None and width > 0
    look: dict[str, Any] = {"facecolor": fill or "none", "edgecolor": "none", "linewidth": 0.0}
    if stroked:
        look |= {"edgecolor": stroke, "linewidth": points}
        if dash in DASHES:
            look["linestyle"] = (0, tuple(part / max(width, 0.1) for part in DASHES[dash]))
    return look | {"alpha": opacity}


def _write(axes: Any, mark: Text, left: float, top: float) -> None:
    if not mark.text.strip():
        return
    axes.text(
        left + mark.x,
        top + mark.y,
        drawable(mark.text),
        fontsize=mark.size * 72 / PIXELS,
        fontfamily=list(_families()),
        fontweight="bold" if mark.bold else "normal",
        color=mark.color,
        alpha=mark.opacity,
        ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
        va="baseline",
        rotation=-mark.turn,
        rotation_mode="anchor",
        parse_math=False,
        zorder=1,
    )


def drawable(text: str) -> str:
    """The text with U+1F642 in place of a character that no font of this machine has."""
    return "".join(
        character if _has_a_font(ord(character)) else f"U+{ord(character):04X}"
        for character in text
    )


@cache
def _families() -> tuple[str, ...]:
    from matplotlib import font_manager

    known = set(font_manager.get_font_names())
    return tuple(name for name in FAMILIES if name in known)


@cache
def _fonts() -> list[Any]:
    from matplotlib import font_manager

    files = [
        font_manager.findfont(font_manager.FontProperties(family=name)) for name in _families()
    ]
    return [font_manager.get_font(file) for file in dict.fromkeys(files)]


@cache
def _has_a_font(code: int) -> bool:
    return any(font.get_char_index(code) for font in _fonts())
