"""An addition of rows: token embedding + position embedding = what block 0 is given.

Shapes: T tokens, D dimensions. Labels are token texts as the screen shows them; they are escaped
here, because Plotly reads `<` in any text as the start of a tag.
"""

from collections.abc import Sequence

import numpy as np

from gptviz.figures import marks
from gptviz.figures.marks import Drawn, Floats
from gptviz.figures.theme import Figure, Mode, figure, palette

SUM_NAMES = ("token", "+ position", "= sum")
HEIGHTS = {1: 120, 3: 240}  # of so many rows
PUT_NAMES = ("token", "position", "given")  # where a change puts something else in place of the sum


def embedding_sum(
    parts: Floats,
    label: str,
    position: int,
    dimension: int,
    window: range,
    cells: Sequence[Sequence[str]],
    limit: float,
    mode: Mode,
    adds_up: bool = True,
) -> Figure:
    """One token's three rows (3, D) under each other, and below them a few dimensions with their digits.

    `cells` are the digits of the dimensions in `window`, which holds `dimension`. Curve 0 is the rows, with
    x the dimension and the whole addition behind every value; curve 1 is the window, a column a dimension.
    With `adds_up` the first two rows are said to add up to the third. `parts` may be one row alone (1, D).
    """
    colors = palette(mode)
    count, size = parts.shape
    last = count - 0.5
    column = dimension - window.start
    names = marks.BARE | {
        "tickvals": [*range(count)],
        "ticktext": (SUM_NAMES if adds_up else PUT_NAMES)[:count],
        "autorange": "reversed",
    }
    axis = marks.signed_axis(limit, mode, 0.97)
    layout = {
        "coloraxis": axis,
        "xaxis": {"range": [-0.5, size - 0.5], "anchor": "y", "showticklabels": False},
        "xaxis2": {
            "type": "category",
            "anchor": "y2",
            "showgrid": False,
            "title": {"text": "dimension"},
        },
        "yaxis": {**names, "domain": [0.56, 1.0]},
        "yaxis2": {**names, "domain": [0.0, 0.44], "anchor": "x2"},
        "shapes": [
            *_lens(window, size, colors.quiet),
            marks.frame(
                (column - 0.5, column + 0.5),
                (-0.5, last),
                marks.line(colors.accent, 2.5),
                ("x2", "y2"),
            ),
            marks.frame((dimension, dimension), (-0.5, last), marks.line(colors.accent, 2)),
        ],
    }
    traces = [_sum_rows(parts, label, position, adds_up), *_digits(parts, window, cells, axis)]
    return figure(traces, layout, mode, height=HEIGHTS[count] + marks.BAR, t=marks.BAR)


def _sum_rows(parts: Floats, label: str, position: int, adds_up: bool) -> Drawn:
    """The rows as colours; every value of three knows the whole addition, for its hover."""
    owner = f"`{marks.safe(label)}` (position {position})"
    if len(parts) == 1:
        template = "%{meta}, dimension %{x}: %{z:.4f}"
        return marks.cells(parts, template, ygap=5, coloraxis="coloraxis", meta=owner)
    if adds_up:
        second = " +"
        third = " ="
    else:
        second = ","
        third = ", block 0 is given"
    additions = np.broadcast_to(parts.T, (3, *parts.T.shape))  # (3, D, 3)
    numbers = "token %{customdata[0]:.4f}", "position %{customdata[1]:.4f}", "%{customdata[2]:.4f}"
    template = (
        f"%{{meta}}, dimension %{{x}}:<br>{numbers[0]}{second} {numbers[1]}{third} {numbers[2]}"
    )
    return marks.cells(
        parts, template, customdata=additions, ygap=5, coloraxis="coloraxis", meta=owner
    )


def _digits(
    parts: Floats, window: range, cells: Sequence[Sequence[str]], axis: Drawn
) -> list[Drawn]:
    """The window's cells, and their digits."""
    columns = [str(d) for d in window]
    seen = parts[:, window.start : window.stop]  # (3, n) or (1, n)
    fills = {
        "type": "heatmap",
        "x": columns,
        "z": seen,
        "xgap": 4,
        "ygap": 4,
        "coloraxis": "coloraxis",
    }
    written = marks.in_cells([*zip(*cells, strict=True)], seen, axis, 15, x=columns)
    below = marks.on(2) | {"hoverinfo": "skip"}  # they say their numbers, and a click is the rows'
    return [fills | below, written | below]


def _lens(window: range, size: int, color: str) -> list[Drawn]:
    """Two lines from the dimensions of `window` in the rows down to the same dimensions with their digits."""
    on_paper = {
        "type": "line",
        "xref": "paper",
        "yref": "paper",
        "line": marks.line(color, 1, "dot"),
    }
    return [
        on_paper | {"x0": edge / size, "y0": 0.555, "x1": end, "y1": 0.445}
        for edge, end in ((window.start, 0.0), (window.stop, 1.0))
    ]


def similarity_matrix(
    similarity: Floats, positions: marks.Places, position: int, mode: Mode
) -> Figure:
    """Cosines between positions (n, n), for the positions given (n,); a cross marks the selected one."""
    template = "positions %{y} and %{x}: cosine %{z:.3f}"
    z = similarity.astype(np.float32)
    cosines = marks.cells(z, template, x=positions, y=positions, coloraxis="coloraxis")
    title = {"text": "position"}
    stroke = marks.line(palette(mode).accent, 1.5, "dot")
    square = {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"}
    layout = {
        "coloraxis": marks.signed_axis(1.0, mode, 0.97),
        "xaxis": {"title": title, "constrain": "domain", "showgrid": False},
        "yaxis": {"title": title} | square,
        "shapes": [marks.across(position, stroke), marks.upright(position, stroke)],
    }
    return figure([cosines], layout, mode, height=430, t=marks.BAR)
