"""Parts of the blocks as a grid, and each head's direct share beside what muting it takes away.

What raises a logit is orange, what lowers it blue, as everywhere. Shapes: L blocks, H heads.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.analysis.shares import Waterfall
from gptviz.both import Both
from gptviz.digits import fixed
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import Figure, Mode, figure, palette

ROW = 25  # pixels of a row of a grid, or a bar of a waterfall
WRITTEN_COLUMNS = 12  # of a grid: above it its cells have no room for numbers
HIGH_ROWS = 8  # of a grid: with them a cell has room for two lines
WRITTEN_HEADS = 20  # of a row: with more there is no room for their ranks
KEPT_HEIGHT = 345  # pixels of the map of a circuit's heads, whatever their number
NAMED_HEADS = 8  # of a row or a column: with more a cell has no room for a word, too
VISIBLE = 0.005  # below it two decimals are zeros: the scale and the hover say how little it is
SHORT = {"attention bias": "bias", "attention": "att", "feed-forward": "ff"}


def share_grid(
    values: Floats,
    columns: Sequence[str],
    opened: tuple[int, int] | None,
    what: str,
    mode: Mode,
    signed: bool = True,
    unchanged: Floats | None = None,
    inside: Collection[tuple[int, int]] | None = None,
) -> Figure:
    """All parts of the blocks, (L, C): a row a block, the first on top; the `opened` cell is framed.

    `what` ends a hover's sentence: "its share is". Not `signed` are values that are never below 0, NaN has no
    colour. `unchanged`, (L, C), the same of the model without its changes, stand in the hover, too. Of a
    circuit each cell has a frame, those `inside` a thick one, and the unchanged number below its own.
    """
    (rows, count) = values.shape
    colors = palette(mode)
    known = not np.isnan(values).any()

    def sentence_of(block: int, column: int) -> str:
        parts = [f"block {block} · {columns[column]}"]
        if inside is not None:
            parts.append("in the circuit" if (block, column) in inside else "not in the circuit")
        if known:
            parts.append(f"{what} {fixed(float(values[block, column]), 3)}")
        if unchanged is not None:
            parts.append(f"{fixed(float(unchanged[block, column]), 3)} {marks.UNCHANGED}")
        return f"{parts[0]}: {', '.join(parts[1:])}"

    def writes(block: int, column: int) -> str:
        digits = fixed(float(values[block, column]), 2)
        if inside is None or unchanged is None or rows > HIGH_ROWS:
            return digits
        return f"{digits}<br>({fixed(float(unchanged[block, column]), 2)})"

    limit = 0.0
    if known:
        limit = float(np.abs(values).max())
    hovers = [[sentence_of(b, i) for i in range(count)] for b in range(rows)]
    gap = 1 if inside is None else 5
    drawn = {"hovertext": hovers, "xgap": gap, "ygap": gap, "coloraxis": "coloraxis"}
    cells = marks.cells(values.astype(np.float32), "%{hovertext}", **drawn)
    traces = [cells]
    axis = (marks.signed_axis if signed else marks.share_axis)(limit or 1.0, mode, 0.97)
    largest = max(limit, 0.0 if unchanged is None else float(np.abs(unchanged).max()))
    if known and count <= WRITTEN_COLUMNS and (inside is None or largest >= VISIBLE):
        texts = [[writes(b, i) for i in range(count)] for b in range(rows)]
        traces.append(marks.in_cells(texts, values, axis, 11))
    thick = marks.line(colors.accent, 2.5)
    thin = marks.line(colors.masked, 1)
    if opened is None:
        shapes = []
    else:
        shapes = [marks.around(*opened, thick)]
    if inside is not None:
        places = np.ndindex(rows, count)
        shapes = [
            marks.around(b, i, thick if (b, i) in inside else thin, room=0.45) for b, i in places
        ]
    plain = marks.BARE | {"tickmode": "array"}
    names = [SHORT.get(name, name.removeprefix("head ")) for name in columns]
    across = {
        "side": "top",
        "tickvals": np.arange(count),
        "ticktext": names,
        "range": [-0.5, count - 0.5],
    }
    down = marks.names_down(rows) | {"ticktext": [f"block {b} " for b in range(rows)]}
    layout = {
        "coloraxis": axis | {"showscale": known},
        "xaxis": plain | across,
        "yaxis": plain | down,
        "shapes": shapes,
        "plot_bgcolor": colors.grid if inside is None else colors.paper,  # as in `maps`
    }
    height = ROW
    if rows <= HIGH_ROWS:
        height = 30 if inside is None else 34
    return figure(
        traces, layout, mode, height=marks.BAR + 34 + rows * height, t=marks.BAR + 26, r=4
    )


def kept_heads(
    inside: Collection[tuple[int, int]],
    ranks: NDArray[np.integer] | None,
    effects: Floats | None,
    looks: Sequence[Sequence[str]],
    mode: Mode,
) -> Figure:
    """Which heads a circuit has, (L, H): those are lit, the others dim. A row a block, the first on top.

    `ranks`, (L, H), say which head is the strongest (1), and stand in the cells; `effects`, (L, H), what muting
    each alone takes away. `looks`, (L, H), name where each head looks: below the rank of those that are lit.
    """
    shape = len(looks), len(looks[0])
    rows, count = shape
    colors = palette(mode)
    lit = np.zeros(shape, dtype=np.float32)
    for block, head in inside:
        lit[block, head] = 1

    def sentence_of(block: int, head: int) -> str:
        parts = ["left out"]
        if (block, head) in inside:
            parts = ["kept"]
        if ranks is not None:
            parts.append(f"number {ranks[block, head]} of {rows * count}")
        if effects is not None:
            parts.append(
                f"switching it off alone takes away {fixed(float(effects[block, head]), 3)}"
            )
        parts.append(f"by where it looks: {looks[block][head]}")
        return f"block {block} · head {head}: {', '.join(parts)}"

    def in_cell(block: int, head: int) -> str:
        parts = []
        if ranks is not None and count <= WRITTEN_HEADS:
            parts.append(str(ranks[block, head]))
        if (block, head) in inside and max(shape) <= NAMED_HEADS:
            parts.append(f'<span style="font-size: 12px">{looks[block][head]}</span>')
        return "<br>".join(parts)

    hovers = [[sentence_of(b, h) for h in range(count)] for b in range(rows)]
    scale = [(0.0, colors.panel), (1.0, colors.accent)]
    axis: dict[str, Any] = {"cmin": 0, "cmax": 1, "colorscale": scale, "showscale": False}
    drawn = {"hovertext": hovers, "xgap": 4, "ygap": 4, "coloraxis": "coloraxis"}
    traces = [marks.cells(lit, "%{hovertext}", **drawn)]
    size = 16
    if count > 8 or rows > 8:
        size = 12
    texts = [[in_cell(b, h) for h in range(count)] for b in range(rows)]
    written = marks.in_cells(texts, lit, axis, size)
    written["textfont"]["color"] = [colors.paper if is_lit else colors.quiet for is_lit in lit.flat]
    traces.append(written)
    plain = marks.BARE | {"tickmode": "array", "tickfont": {"size": 14 if size == 16 else 12}}
    across = {
        "side": "top",
        "tickvals": np.arange(count),
        "ticktext": [str(head) for head in range(count)],
        "range": [-0.5, count - 0.5],
    }
    down = marks.names_down(rows) | {"ticktext": [f"block {b} " for b in range(rows)]}
    square = "<span style='color:{}'>■</span> {}".format
    key = [square(colors.accent, "kept"), square(colors.masked, "replaced")]
    if ranks is not None:
        key.append("1: the strongest head")
    if max(shape) <= NAMED_HEADS:
        key.append("word: where it looks")
    layout = {
        "coloraxis": axis,
        "xaxis": plain | across,
        "yaxis": plain | down,
        "plot_bgcolor": colors.paper,
        "annotations": [
            marks.heading(
                "   ".join(key), 0, 1, yshift=26, font={"size": 14, "color": colors.quiet}
            )
        ],
    }
    return figure(traces, layout, mode, height=KEPT_HEIGHT, t=56, r=4)


def direct_and_total(direct: Floats, total: Floats, opened: tuple[int, int], mode: Mode) -> Figure:
    """Each head as a point: what it wrote for the word itself, and what muting it takes away, (L, H) each.

    On the dotted line both are the same; the heads that are farthest from it have their names. The opened
    head is ringed.
    """
    places = [divmod(i, direct.shape[1]) for i in range(direct.size)]
    short = [f"{b}·{h}" for b, h in places]
    hover = [
        f"block {b} · head {h} wrote %.3f; switching it off takes %.3f away" for b, h in places
    ]
    titles = ("direct share", "what switching off takes away")
    ringed = [place == opened for place in places]
    return off_the_line(direct.ravel(), total.ravel(), short, hover, titles, mode, ringed)


def off_the_line(
    x: Floats,
    y: Floats,
    short: Sequence[str],
    hover: Sequence[str],
    titles: tuple[str, str],
    mode: Mode,
    ringed: Sequence[bool] = (),
    named: int = 5,
) -> Figure:
    """Two numbers of the same things (n,) each, a point each; on the dotted line both are the same.

    The `named` points that are farthest from it have their `short` names; `hover` has two places for numbers.
    """
    colors = palette(mode)
    farthest = np.argsort(-np.abs(y - x), kind="stable")[:named]
    farthest = farthest[np.abs(y - x)[farthest] > 0.02 * max(1e-9, float(np.abs(y).max()))]
    ring = {"color": colors.ink, "width": [3 * is_ringed for is_ringed in ringed] or 0}
    names = {
        "mode": "markers+text",
        "text": [name if i in farthest else "" for i, name in enumerate(short)],
        "textposition": [
            "middle left" if a > (x.min() + x.max()) / 2 else "middle right" for a in x
        ],
        "cliponaxis": False,
    }
    hovers = marks.says(sentence % (a, b) for sentence, a, b in zip(hover, x, y, strict=True))
    marker = {"size": 10, "color": colors.output, "opacity": 0.75, "line": ring}
    points = marks.dots(x, y, marker, **names, **hovers)
    low = float(min(x.min(), y.min(), 0))
    high = float(max(x.max(), y.max(), 0))
    pad = 0.08 * ((high - low) or 1.0)
    ends = [low - pad, high + pad]
    wide = [float(min(x.min(), 0)) - pad / 2, float(max(x.max(), 0)) + pad]
    same = {"type": "line", "x0": ends[0], "y0": ends[0], "x1": ends[1], "y1": ends[1]}
    layout = {
        "shapes": [same | {"line": marks.line(colors.quiet, 1, "dot"), "layer": "below"}],
        "xaxis": {"title": {"text": titles[0]}, "range": wide},
        "yaxis": {"title": {"text": titles[1]}, "range": ends},
    }
    return figure([points], layout, mode, height=380, r=40)


def falling(falls: Waterfall, mode: Mode) -> dict[str, Any]:
    """The arguments of `bars` for a waterfall: each part begins where the last one ended."""
    colors = palette(mode)
    tints = [colors.positive if x >= 0 else colors.negative for x in falls.values.now[:-1]]
    return {
        "says": falls.says,
        "colors": [*tints, colors.ink],
        "lying": True,
        "signed": True,
        "text": Both(falls.written),
        "base": falls.base,
        "height": ROW * len(falls.names) + 60,
    }
