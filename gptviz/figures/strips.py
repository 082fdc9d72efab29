"""The Overview's small pictures: strips of signed numbers as PNG, a pair of lines as SVG."""

import io
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gptviz.both import Both
from gptviz.digits import significant
from gptviz.figures.head_grid import sample
from gptviz.figures.theme import Mode, palette

WIDTH, HEIGHT = 150, 180  # in the SVG's own units, about pixels; the page scales it
EDGE, TOP, BOTTOM = 5, 22, 138  # what the lines keep clear of: their labels


def strip(values: NDArray[np.floating], limit: float, mode: Mode) -> bytes:
    """Signed numbers (T, D) as a PNG with one pixel each, T high and D wide: blue below 0, orange above.

    The scale runs from -limit to limit; what is beyond has its last colour. ValueError for a limit that
    is not above 0.
    """
    if not limit > 0:
        raise ValueError(f"limit is {limit}; it must be above 0")
    scaled = np.clip(np.asarray(values, dtype=np.float64) / limit, -1, 1) / 2 + 0.5  # (T, D), 0 to 1
    colors = sample(palette(mode).signed, scaled.ravel()).reshape(*scaled.shape, 3)  # (T, D, 3)
    file = io.BytesIO()
    Image.fromarray(colors).save(file, format="PNG")
    return file.getvalue()


def norm_lines(spread: Both[NDArray[np.floating]], mode: Mode) -> str:
    """The spread of one token's numbers before and after each LayerNorm, as an SVG with two lines.

    Both are standard deviations, (2, N), on one logarithmic axis, since they grow by multiples. The lines are
    labelled with their first and last values; those of the unchanged model lie below them as ghosts.
    """
    colors, old = palette(mode), spread.was if spread.moved else None
    heights = _log_heights(np.concatenate([spread.now, *([] if old is None else [old])]))  # (2 or 4, N)
    xs = np.linspace(EDGE, WIDTH - EDGE, spread.now.shape[1])
    parts, labels = [], []
    for ys in heights[2:]:
        parts.append(_line(xs, ys, colors.ghost, ' stroke-dasharray="5 3"'))
    drawn = zip(("before", "after"), spread.now, (colors.positive, colors.output), strict=True)
    for line, (name, values, color) in enumerate(drawn):
        ys = heights[line]
        parts.append(_line(xs, ys, color))
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{color}"/>' for x, y in zip(xs, ys, strict=True)
        ]
        for i, anchor, x in ((0, "start", 0), (-1, "end", WIDTH)):
            upper = ys[i] < heights[1 - line][i] or (ys[i] == heights[1 - line][i] and line == 0)
            labels.append(
                _label(x, ys[i] + (-7 if upper else 17), anchor, color, significant(float(values[i]), 2))
            )
        labels.append(_label((0, WIDTH)[line], HEIGHT - 3, ("start", "end")[line], color, name))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-size="14">{"".join(parts)}'
        f'<g stroke="{colors.paper}" stroke-width="4" paint-order="stroke">{"".join(labels)}</g></svg>'
    )


def _line(xs: NDArray[np.floating], ys: NDArray[np.floating], color: str, more: str = "") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{more}/>'


def _log_heights(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Where values stand in the SVG, top to bottom, by their logarithm; 0 stands with the least above 0."""
    least = float(values[values > 0].min()) if (values > 0).any() else 1.0
    logs = np.log10(np.maximum(values, least))
    share = (logs - logs.min()) / max(float(np.ptp(logs)), 1e-9)
    return BOTTOM - share * (BOTTOM - TOP)


def _label(x: float, y: float, anchor: str, color: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'
