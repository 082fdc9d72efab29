"""Maps: a number for each row and token as colour, one map beside the other.

Of a changed run a map shows what the change did, the changed run or the unchanged one. Shapes: R rows, T
tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures import marks
from gptviz.figures.marks import Axes, Drawn, Floats, token_categories
from gptviz.figures.theme import Figure, Mode, figure, palette, rgb

# signed: blue below 0, orange above. log: its logarithm, with 1 in the middle. size: the logarithm of what is
# above 0, from the least to the largest. share: from 0 up. weight: attention, from 0 to 1 or more; probability: as that
Scale = Literal["signed", "log", "size", "share", "weight", "probability"]

NAMED_ROWS = 50  # rows of a map that can each be labelled
TALLEST = 640  # pixels of a map whose rows cannot
GAP = 0.03  # of the page, between two maps
TINT = 0.16  # how much of the accent lies over tinted cells
LARGE = 168  # pixels that the rows of a large map share, or more where they are many: all in a first screen
LABEL_LINE = 19  # pixels of a line of the tokens' names, or of a key
LABELS_ACROSS = 105  # characters of names that have room beside each other, over a large map


@dataclass(frozen=True)
class Map:
    """One map: `title` above it, `cells` (R, T), NaN where there is no number; a hover calls them `unit`."""

    title: str
    cells: Both[Floats]
    scale: Scale = "signed"
    unit: str = ""
    ends: tuple[float, float] | None = None  # of the scale, where a few cells would take all of it
    framed: Sequence[tuple[int, int]] = ()  # (row, column)
    tint: NDArray[np.bool_] | None = None  # (R, T): which cells stand out as a ground
    color: str | None = None  # of the title
    written: bool = False  # whether the numbers stand in the cells, too
    texts: Sequence[Sequence[str]] | None = None  # (R, T): what stands in the cells instead
    errors: Floats | None = None  # (R, T): standard errors of the changed run's cells, for a hover
    key: Sequence[str] = ()  # lines above it that say what is what, as the figure's words

    @property
    def is_log(self) -> bool:
        return self.scale in ("log", "size")

    def drawn(self, shown: str) -> Floats:
        """The numbers behind the colours: logarithms of "log" and "size"; or changed minus unchanged.

        What is no number (the logarithm of 0) is drawn as the least or the largest that there is.
        """
        old, new = (
            np.asarray(cells, dtype=np.float64) for cells in (self.cells.all[0], self.cells.now)
        )
        gaps = np.isnan(new)
        same = new == old
        if self.is_log:
            with np.errstate(divide="ignore"):
                old = np.log10(old)
                new = np.log10(new)
        if self.cells.was is not None and shown == marks.DIFFERENCE:
            with np.errstate(invalid="ignore"):
                z = np.where(same, 0.0, new - old)
        elif shown == marks.UNCHANGED:
            z = old
        else:
            z = new
        low, high = _finite_range(z)
        if shown == marks.DIFFERENCE or self.scale == "log":  # as deep a blue as any
            high = max(-low, high) or 1.0  # where all that has moved is without end
            low = -high
        return np.where(gaps, np.nan, np.nan_to_num(z, nan=0.0, posinf=high, neginf=low))


def maps(
    panels: Sequence[Map],
    rows: Sequence[str],
    labels: Sequence[str],
    at: tuple[int | None, int | None] | None,
    mode: Mode,
    shown: str = marks.CHANGED,
    joint: bool = False,
    positions: Sequence[int] | None = None,
    place: str = "at `%{x}` (position %{customdata[0]})",
    large: bool = False,
) -> Figure:
    """Maps side by side, the first row on top; the cell `at` (row, position) is framed in each: all of a row
    where there is no position, all of a position where there is no row.

    `shown` is DIFFERENCE, CHANGED or UNCHANGED, where the panels have both runs; with `joint` all have one
    scale. `positions` are the tokens' own, where they do not follow each other. ValueError where `rows` and
    `labels` do not fit the cells. `place` is what a hover says of a column. A `large` map is the picture of its
    page: high rows, and its tokens on top, as far as they have room.
    """
    for panel in panels:
        if np.shape(panel.cells.now) != (len(rows), len(labels)):
            raise ValueError(
                f"{len(rows)} rows and {len(labels)} tokens do not fit {np.shape(panel.cells.now)} "
                f"({panel.title})"
            )
    n = len(panels)
    columns = [str(i) for i in range(len(labels))]
    drawn = [panel.drawn(shown) for panel in panels]
    layout: Drawn = {"shapes": [], "annotations": []}
    traces = []
    numbers = []
    width = (1 - GAP * (n - 1)) / n
    for number, (panel, z) in enumerate(zip(panels, drawn, strict=True), start=1):
        axes, (xaxis, yaxis) = marks.axis_names(number)
        start = (number - 1) * (width + GAP)
        if joint or number == 1:
            coloraxis = "coloraxis"
        else:
            coloraxis = f"coloraxis{number}"
        if not joint or number == 1:
            right = (1.0 if joint else start + width) - 0.015
            if joint:
                same_scale = drawn
                length = 0.35
            else:
                same_scale = [z]
                length = 0.2
            layout[coloraxis] = _axis(panel, same_scale, shown, mode, right, length)
        places: Drawn = {"x": columns, "y": list(rows)} | marks.on(number)
        gaps = {
            "xgap": 1 if len(labels) <= 80 / n else 0,
            "ygap": 1 if len(rows) <= NAMED_ROWS else 0,
        }
        behind: Drawn = {
            "customdata": _behind(panel, positions),
            "hoverongaps": False,
            "coloraxis": coloraxis,
        }
        on_top = large and _have_room(labels)
        says = _says(panel, place)
        if on_top:  # the axis has some names in two lines, a hover has them in one
            says = says.replace("%{x}", "%{text}")
            behind["text"] = [[*map(marks.safe, labels)]] * len(rows)
        traces.append(marks.cells(z.astype(np.float32), says, **behind, **places, **gaps))
        texts = panel.texts
        if panel.written:
            texts = [
                ["" if value != value else fixed(value, 2) for value in row] for row in z.tolist()
            ]
        if texts is not None:
            written_size = 15 if large else 12
            numbers.append(marks.in_cells(texts, z, layout[coloraxis], written_size, **places))
        edge = {"showgrid": False, "showline": True, "mirror": True}
        domain = {"domain": [start, start + width], "anchor": axes[1]}
        room = {"range": [-0.5, len(labels) - 0.5]}
        layout[xaxis] = token_categories(labels, 80 // n, positions) | room | edge | domain
        if len(labels) <= 80 // n and max(map(len, labels), default=0) == 1:
            layout[xaxis] |= {
                "tickmode": "linear",
                "tickfont": {"size": 12},
            }  # there is room for each
        if on_top:
            alias = {str(i): _in_two_lines(label) for i, label in enumerate(labels)}
            layout[xaxis] |= {"side": "top", "tickangle": 0, "labelalias": alias}
            layout[xaxis] |= {"tickfont": {"size": 14}}
        layout[yaxis] = edge | {
            "type": "category",
            "range": [len(rows) - 0.5, -0.5],
            "anchor": axes[0],
            "showticklabels": number == 1,
            "tickfont": {"size": 14 if len(rows) <= 16 else 12},
            **({"tickmode": "linear"} if len(rows) <= NAMED_ROWS else {}),
        }
        if panel.color is None:
            ink = {}
        else:
            ink = {"font": {"color": panel.color}}
        layout["annotations"].append(marks.heading(f"<b>{panel.title}</b>", start, 1, **ink))
        if panel.key:
            names_room = 4
            if on_top:
                names_room += 2 * LABEL_LINE
            words = "<br>".join(panel.key)
            font = {"size": 14, "color": palette(mode).quiet}
            layout["annotations"].append(
                marks.heading(words, start, 1, yshift=names_room, font=font)
            )
        if panel.tint is not None:
            layout["shapes"] += _tinted(panel.tint, mode, axes)
        for row, column in (*panel.framed, *([] if at is None else [at])):
            high, wide = (
                (-0.5, count - 0.5) if i is None else (i - 0.5, i + 0.5)
                for i, count in ((row, len(rows)), (column, len(labels)))
            )
            layout["shapes"].append(
                marks.frame(wide, high, marks.line(palette(mode).accent, 2.5), axes)
            )
    if len(rows) <= 16:
        row_height = 20.0
    elif len(rows) <= NAMED_ROWS:
        row_height = 14.0
    else:
        row_height = min(8, TALLEST / len(rows))
    title_room = 22 + 20 * max(panel.title.count("<br>") for panel in panels)
    key_room = max(0, LABEL_LINE * max(len(panel.key) for panel in panels) - marks.BAR)
    if large:
        row_height = max(row_height, LARGE / len(rows))
        title_room = key_room + 8
        names_below = 110
        if _have_room(labels):
            title_room += 2 * LABEL_LINE
            names_below = 4
        height = marks.BAR + title_room + len(rows) * row_height + names_below
    else:
        height = max(140 + len(rows) * row_height, 280)
    layout["plot_bgcolor"] = palette(mode).grid  # between the cells, so that one near 0 stands out
    return figure(traces + numbers, layout, mode, height, t=marks.BAR + title_room)


def _have_room(labels: Sequence[str]) -> bool:
    """Whether these names, two of a place in two lines, can stand beside each other over a large map."""
    longest = max((len(line) for label in labels for line in label.split(" | ")), default=0)
    return len(labels) * (longest + 1) <= LABELS_ACROSS


def _in_two_lines(label: str) -> str:
    """A name as Plotly reads it; of two of one place, one below the other."""
    return marks.safe(label).replace(" | ", "<br>")


def _behind(panel: Map, positions: Sequence[int] | None) -> Floats:
    """The data of a hover on each cell, (R, T, 2 to 4): its position, its number in each run, its error if known."""
    cells = [np.asarray(run) for run in panel.cells.all]
    if panel.errors is not None:
        cells.append(np.asarray(panel.errors))
    if positions is None:
        column_positions = np.arange(cells[0].shape[1])
    else:
        column_positions = np.asarray(positions)
    # (R, T) each -> (R, T, 2 to 4)
    return np.stack(
        [np.broadcast_to(column_positions, cells[0].shape), *cells], axis=2, dtype=np.float32
    )


def _says(panel: Map, place: str) -> str:
    if panel.cells.was is None:
        words = [""]
    else:
        words = [f" {marks.UNCHANGED}", f" {marks.CHANGED}"]
    numbers = ", ".join(f"%{{customdata[{i}]:.3r}}{word}" for i, word in enumerate(words, start=1))
    if panel.errors is not None:
        numbers += f" ± %{{customdata[{len(words) + 1}]:.2r}}"
    unit = panel.unit or panel.title
    return f"%{{y}} {place}:<br>{unit} {numbers}"


def _tinted(cells: NDArray[np.bool_], mode: Mode, axes: Axes) -> list[Drawn]:
    """A tint over these cells: neighbouring rows that begin and end alike are one rectangle."""
    runs: list[tuple[int, int, int, int]] = []  # row from, to, column from, to
    for row, marked in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.r_[False, marked, False].astype(int)))
        for start, stop in edges.reshape(-1, 2).tolist():  # (2 n,) -> (n, 2)
            above = next((run for run in runs if run[1:] == (row, start, stop)), None)
            if above is not None:
                runs.remove(above)
            runs.append((row if above is None else above[0], row + 1, start, stop))
    color = palette(mode).accent
    ground = {"fillcolor": f"rgba({', '.join(map(str, rgb(color)))}, {TINT})"}
    return [
        marks.frame((c0 - 0.5, c1 - 0.5), (r0 - 0.5, r1 - 0.5), marks.line(color, 1, "dot"), axes)
        | ground
        for r0, r1, c0, c1 in runs
    ]


def _finite_range(values: Floats) -> tuple[float, float]:
    """The smallest and the largest number that is neither NaN nor infinite; 0 and 0 if there is none."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 0.0
    return float(finite.min()), float(finite.max())


def _axis(
    panel: Map, drawn: Sequence[Floats], shown: str, mode: Mode, right: float, length: float
) -> Drawn:
    """The colours of these numbers, and the bar that says which is which."""
    low, high = _finite_range(np.concatenate([z.ravel() for z in drawn]))
    differs = panel.cells.was is not None and shown == marks.DIFFERENCE
    under = over = ""
    if panel.ends is not None and not differs:
        if panel.is_log:
            first, last = np.log10(panel.ends)
        else:
            first, last = panel.ends
        under = "≤ " if low < first else ""
        over = "≥ " if high > last else ""
        low = float(first)
        high = float(last)
    limit = max(abs(low), abs(high))
    colors = palette(mode).signed
    if differs and panel.is_log:
        limit = max(limit, 0.05)
        end = significant(10.0**limit, 2)
        values = [-limit, 0, limit]
        texts = [f"÷ {end}", "as it was", f"× {end}"]
    elif differs or panel.scale == "signed":
        limit = limit or 1.0
        end = significant(limit, 2)
        values = [-limit, 0, limit]
        texts = [f"−{end}", "0", end]
    elif panel.is_log:
        if panel.scale == "log":
            low = -max(limit, 0.3)
            high = max(limit, 0.3)
        else:
            high = max(high, low + 0.1)
            colors = marks.upper_half(mode)
        values = [low, (low + high) / 2, high]
        texts = [significant(10.0**power, 2) for power in values]
    else:
        of_one = panel.scale in ("weight", "probability")
        if of_one and panel.ends is None:
            top = max(1.0, high)
        else:
            top = high or 1.0
        values = [0.0, top]
        texts = ["0", significant(top, 2)]
        under = ""
        if panel.scale == "weight":
            colors = palette(mode).attention
        elif panel.scale == "probability":
            colors = palette(mode).probabilities
        else:
            colors = marks.upper_half(mode)
    texts[0] = under + texts[0]
    texts[-1] = over + texts[-1]
    axis = marks.signed_axis(1.0, mode, right)
    bar = axis["colorbar"] | {"len": length, "tickvals": values, "ticktext": texts}
    return axis | {"cmin": values[0], "cmax": values[-1], "colorscale": colors, "colorbar": bar}
