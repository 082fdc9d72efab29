"""A chart that was written for Plotly, as marks: bars, lines, points and maps, with axes, scales and notes.

What our figures use of Plotly is drawn, and nothing else. A kind of trace, a symbol or a path that is not
known raises ValueError; any other property that is not read here is left out: what only a pointer needs
("selected", "fixedrange"), and what is drawn alike for all ("ticks", a legend's place).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.figures.still.canvas import (
    ASCENT,
    LINE,
    WIDTH,
    Canvas,
    Curve,
    Disc,
    Line,
    Pixels,
    Rectangle,
    text_width,
)
from gptviz.figures.still.hover import Hover
from gptviz.figures.still.values import (
    Axis,
    Written,
    colors_of,
    each,
    grid,
    is_bold,
    paint,
    plain,
    runs,
    values,
)

SHAPES = 3000  # cells of a map up to which each is a rectangle of its own; more are one picture
LEGEND = 13.0
TRACES = ("heatmap", "bar", "scatter")  # in the order in which they are drawn


def chart(figure: Written, width: float = WIDTH) -> tuple[Canvas, Hover]:
    """The figure (`Figure.to_dict()`, or the same from JSON) `width` pixels wide, and what its parts say.

    Raises ValueError for a kind of trace that is not drawn.
    """
    return _Chart(figure, width).drawn()


class _Chart:
    def __init__(self, figure: Written, width: float):
        self.layout = figure["layout"]
        traces = figure["data"]
        if self.layout.get("barmode") == "stack":
            traces = _stacked(traces)
        self.traces = sorted(traces, key=_order)
        for trace in self.traces:
            if trace["type"] not in TRACES:
                raise ValueError(
                    f"a {trace['type']} cannot be drawn still; there are {', '.join(TRACES)}"
                )
        self.ink = self.layout["font"]["color"]
        self.paper = self.layout["paper_bgcolor"]
        self.canvas = Canvas(width, float(self.layout.get("height", 360)), self.paper)
        self.hover = Hover()
        self.axes = self._axes()

    def drawn(self) -> tuple[Canvas, Hover]:
        self._set_ranges()
        self._set_pixels()
        self._draw_grid()
        self._draw_shapes(below=True)
        for trace in self.traces:
            x, y = self._axes_of(trace)
            match trace["type"]:
                case "heatmap":
                    self._draw_map(trace, x, y)
                case "bar":
                    self._draw_bars(trace, x, y)
                case "scatter":
                    self._draw_points(trace, x, y)
        self._draw_shapes(below=False)
        self._draw_labels()
        self._draw_notes()
        self._draw_scales()
        self._draw_legend()
        return self.canvas, self.hover

    # ---- axes ----

    def _axes(self) -> dict[str, Axis]:
        """The axes by their short names: "x", "y2"."""
        named = {"x", "y"} | {trace.get(f"{xy}axis", xy) for trace in self.traces for xy in "xy"}
        return {
            name: Axis(name[0] == "x", self.layout.get(f"{name[0]}axis{name[1:]}", {}))
            for name in named
        }

    def _axes_of(self, trace: Written) -> tuple[Axis, Axis]:
        return self.axes[trace.get("xaxis", "x")], self.axes[trace.get("yaxis", "y")]

    def _set_ranges(self) -> None:
        for name, axis in self.axes.items():
            axis.categories = self._categories(name, axis)
            low, high = axis.written.get("range", (None, None))
            if low is None or high is None:
                span = self._span(name, axis)
                if low is None:
                    low = span[0]
                if high is None:
                    high = span[1]
            if axis.written.get("autorange") == "reversed":
                low, high = high, low
            axis.low = float(low)
            axis.high = float(high)
        for axis in self.axes.values():
            other = axis.written.get("matches")
            if other:
                axis.low = self.axes[other].low
                axis.high = self.axes[other].high

    def _categories(self, name: str, axis: Axis) -> list[str]:
        categories: dict[str, None] = {}
        for trace in self.traces:
            if trace.get(f"{name[0]}axis", name[0]) == name and name[0] in trace:
                categories |= {
                    value: None for value in values(trace[name[0]]) if isinstance(value, str)
                }
        return list(categories)

    def _span(self, name: str, axis: Axis) -> tuple[float, float]:
        """The lowest and highest value of an axis without a written range, with room around its marks."""
        lows: list[float] = []
        highs: list[float] = []
        for trace in self.traces:
            xy = name[0]
            if trace.get(f"{xy}axis", xy) != name:
                continue
            if trace["type"] == "heatmap":
                rows, columns = grid(trace["z"]).shape
                if xy == "x":
                    count = columns
                else:
                    count = rows
                places = [axis.place(value) for value in _places(trace, xy, count)]
                lows.append(min(places) - 0.5)
                highs.append(max(places) + 0.5)
                continue
            places = [axis.place(value) for value in values(trace[xy])]
            places = [place for place in places if math.isfinite(place)]
            if not places:
                continue
            pad = 0.0
            if trace["type"] == "bar":
                lying = trace.get("orientation") == "h"
                if lying == (xy == "x"):  # along its bars
                    base = each(trace.get("base"), len(places), 0.0)
                    ends = [start + place for start, place in zip(base, places, strict=True)]
                    room = 0.05 * (max([*ends, *base]) - min([*ends, *base]))
                    lows.append(min([*ends, *base]) - room * (min(ends) < 0))
                    highs.append(max([*ends, *base]) + room)
                    continue
                pad = 0.5
            elif "markers" in trace.get("mode", "") or not axis.horizontal:
                pad = 0.06 * ((max(places) - min(places)) or 1.0)
            lows.append(min(places) - pad)
            highs.append(max(places) + pad)
        return min(lows, default=0.0), max(highs, default=1.0)

    def _set_pixels(self) -> None:
        """Room for labels around the plot; then where each axis begins and ends."""
        margin = self.layout["margin"]
        left = float(margin["l"])
        right = self.canvas.width - float(margin["r"])
        top = float(margin["t"])
        bottom = self.canvas.height - float(margin["b"])
        legend_rows = len(self._legend_rows(right - left))
        top = max(top, legend_rows * LEGEND * 1.6 + 4)
        for axis in self.axes.values():
            self._spread(axis, left, right, top, bottom)
        for axis in self.axes.values():
            low, _ = axis.domain
            room = self._room_of_labels(axis)
            if not axis.horizontal:
                left = max(left, (room - low * right) / max(0.2, 1 - low))
            elif axis.written.get("side") == "top":
                top = max(top, room)
            elif self._other(axis).domain[0] == 0.0:
                bottom = min(bottom, self.canvas.height - room)
        outer = [text_width(plain(tick), axis.size) / 2 for axis, tick in self._last_ticks()]
        right = min(right, self.canvas.width - max(outer, default=0.0) - 2)
        for axis in self.axes.values():
            self._spread(axis, left, right, top, bottom)
        self.box = left, top, right, bottom
        for axis in self.axes.values():
            if axis.written.get("scaleanchor"):
                self._squared(axis, self.axes[axis.written["scaleanchor"]])

    def _last_ticks(self) -> list[tuple[Axis, str]]:
        ticks = []
        for axis in self.axes.values():
            if (
                axis.horizontal
                and axis.labelled
                and axis.domain[1] == 1.0
                and not self._angle(axis)
            ):
                ticks += [(axis, text) for _, text in axis.ticks()[-1:]]
        return ticks

    def _spread(self, axis: Axis, left: float, right: float, top: float, bottom: float) -> None:
        low, high = axis.domain
        if axis.horizontal:
            axis.start = left + low * (right - left)
            axis.end = left + high * (right - left)
        else:
            axis.start = bottom - low * (bottom - top)
            axis.end = bottom - high * (bottom - top)

    def _squared(self, y: Axis, x: Axis) -> None:
        """Make a unit of two axes equally long, by taking room from the longer one."""
        units = [abs(axis.high - axis.low) or 1.0 for axis in (x, y)]
        sides = [abs(axis.end - axis.start) for axis in (x, y)]
        unit = min(sides[0] / units[0], sides[1] / units[1])
        for axis, count, side in zip((x, y), units, sides, strict=True):
            spare = side - unit * count
            toward = axis.written.get("constraintoward", "center" if axis.horizontal else "middle")
            before = {"left": 0.0, "top": 0.0, "right": spare, "bottom": spare}.get(
                toward, spare / 2
            )
            first, last = sorted((axis.start, axis.end))
            ends = first + before, last - (spare - before)
            if axis.start < axis.end:
                axis.start, axis.end = ends
            else:
                axis.start, axis.end = ends[::-1]

    def _angle(self, axis: Axis) -> float:
        return float(axis.written.get("tickangle") or 0.0)

    def _room_of_labels(self, axis: Axis) -> float:
        """Pixels that an axis needs for its labels and its title."""
        if not axis.shown:
            return 0.0
        room = 0.0
        if axis.labelled:
            ticks = [plain(text) for _, text in axis.ticks()]
        else:
            ticks = []
        if ticks:
            widest = max(text_width(line, axis.size) for text in ticks for line in text.split("\n"))
            if not axis.horizontal:
                room += widest + 8 + float(axis.written.get("ticklabelstandoff", 0))
            elif self._angle(axis):
                room += widest * abs(math.sin(math.radians(self._angle(axis)))) + axis.size + 6
            else:
                room += max(text.count("\n") + 1 for text in ticks) * axis.size * LINE + 8
        if axis.title:
            room += 22
        return room

    # ---- what lies behind and above ----

    def _draw_grid(self) -> None:
        for axis in self.axes.values():
            other = self._other(axis)
            if not axis.shown:
                continue
            if axis.written.get("showgrid", True):
                for place, _ in axis.ticks():
                    pixel = axis.pixel(place)
                    ends = [(pixel, other.start), (pixel, other.end)]
                    if not axis.horizontal:
                        ends = [(y, x) for x, y in ends]
                    self.canvas.add(
                        Line(tuple(ends), axis.written.get("gridcolor", "#dddddd"), 1.0)
                    )
            if axis.written.get("showline"):
                box = self._frame(axis, other)
                self.canvas.add(Rectangle(*box, stroke=axis.written.get("linecolor", "#dddddd")))

    def _other(self, axis: Axis) -> Axis:
        name = axis.written.get("anchor") or ("y" if axis.horizontal else "x")
        return self.axes.get(name) or self.axes["y" if axis.horizontal else "x"]

    def _frame(self, axis: Axis, other: Axis) -> tuple[float, float, float, float]:
        if axis.horizontal:
            x = axis
            y = other
        else:
            x = other
            y = axis
        left, right = sorted((x.start, x.end))
        top, bottom = sorted((y.start, y.end))
        return left, top, right - left, bottom - top

    def _draw_labels(self) -> None:
        for axis in self.axes.values():
            if not axis.shown:
                continue
            other = self._other(axis)
            size = axis.size
            color = axis.written.get("tickfont", {}).get("color", self.ink)
            if axis.labelled:
                for place, text in axis.ticks():
                    self._draw_tick(axis, axis.pixel(place), plain(text), size, color, other)
            if not axis.title:
                continue
            middle = (axis.start + axis.end) / 2
            room = self._room_of_labels(axis)
            if axis.horizontal:
                top = axis.written.get("side") == "top"
                edge = max(other.start, other.end) + room - 8
                if top:
                    edge = min(other.start, other.end) - room + 12
                self.canvas.write(middle, edge, axis.title, 14, self.ink, anchor="middle")
            else:
                x = max(12.0, min(other.start, other.end) - room + 14)
                self.canvas.write(x, middle, axis.title, 14, self.ink, anchor="middle", turn=-90.0)

    def _draw_tick(
        self, axis: Axis, pixel: float, text: str, size: float, color: str, other: Axis
    ) -> None:
        if not axis.horizontal:
            x = min(other.start, other.end) - 6 - float(axis.written.get("ticklabelstandoff", 0))
            lines = text.split("\n")
            first = pixel + ASCENT * size - (len(lines) - 1) * LINE * size / 2
            self.canvas.write(x, first, text, size, color, anchor="end")
            return
        above = axis.written.get("side") == "top"
        if above:
            edge = min(other.start, other.end) - 6
        else:
            edge = max(other.start, other.end) + size + 4
        angle = self._angle(axis)
        if not angle:
            self.canvas.write(pixel, edge, text, size, color, anchor="middle")
        elif above:
            self.canvas.write(pixel, edge, text, size, color, turn=angle)
        else:
            self.canvas.write(
                pixel + size / 2, edge - 2, text, size, color, anchor="end", turn=angle
            )

    def _draw_shapes(self, below: bool) -> None:
        for shape in self.layout.get("shapes", ()):
            if (shape.get("layer", "above") == "below") != below:
                continue
            line = shape.get("line", {})
            color, opacity = paint(line.get("color"))
            opacity *= shape.get("opacity", 1.0)
            width = float(line.get("width", 2))
            dash = line.get("dash", "solid")
            if shape["type"] == "path":
                self._draw_path(shape["path"], color or self.ink, width, dash, opacity)
                continue
            (x0, x1), (y0, y1) = (
                [self._ref(shape.get(f"{xy}ref", xy), xy, shape[f"{xy}{end}"]) for end in "01"]
                for xy in "xy"
            )
            if shape["type"] == "line":
                self.canvas.add(Line(((x0, y0), (x1, y1)), color, width, dash, opacity))
                continue
            left, right = sorted((x0, x1))
            top, bottom = sorted((y0, y1))
            fill, fill_opacity = paint(shape.get("fillcolor"))
            box = left, top, right - left, bottom - top
            self.canvas.add(Rectangle(*box, fill, color, width, opacity * fill_opacity, dash))

    def _draw_path(self, path: str, color: str, width: float, dash: str, opacity: float) -> None:
        """A curve "M 9 2 C 9.35 3.5 12.35 3.5 12 5", in places of the axes."""
        numbers = [float(part) for part in path.replace(",", " ").split() if part not in ("M", "C")]
        x = self.axes["x"]
        y = self.axes["y"]
        points = [
            (x.pixel(a), y.pixel(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        if len(points) != 4 or "C" not in path:
            raise ValueError(f"the path {path!r} cannot be drawn still: it is no single curve")
        self.canvas.add(
            Curve((points[0], points[1], points[2], points[3]), color, width, dash, opacity)
        )

    def _ref(self, ref: str, xy: str, value: Any, of_note: bool = False) -> float:
        """The pixel of a shape's or a note's place: on an axis, of an axis' domain, or of the whole plot.

        On a log axis a shape's place is a value, and a note's the logarithm of one: so it is in Plotly.
        """
        left, top, right, bottom = self.box
        if ref == "paper":
            if xy == "x":
                return left + value * (right - left)
            return bottom - value * (bottom - top)
        axis = self.axes[ref.removesuffix(" domain")]
        if ref.endswith(" domain"):
            return axis.start + value * (axis.end - axis.start)
        if of_note and axis.is_log:
            return axis.pixel(value)
        return axis.at(value)

    def _draw_notes(self) -> None:
        for note in self.layout.get("annotations", ()):
            x = self._ref(note.get("xref", "x"), "x", note["x"], of_note=True)
            y = self._ref(note.get("yref", "y"), "y", note["y"], of_note=True)
            x += note.get("xshift", 0)
            y -= note.get("yshift", 0)
            font = note.get("font", {})
            size = float(font.get("size", 14))
            lines = [line for line in str(note["text"]).replace("<br/>", "<br>").split("<br>")]
            anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", "center"), "middle")
            high = len(lines) * LINE * size
            first = {"bottom": y - high, "top": y}.get(
                note.get("yanchor", "middle"), y - high / 2
            ) + size
            widest = max(text_width(plain(line), size) for line in lines)
            if note.get("bgcolor"):
                left = {"start": x, "end": x - widest}.get(anchor, x - widest / 2)
                self.canvas.add(
                    Rectangle(left - 2, first - size, widest + 4, high, note["bgcolor"])
                )
            for number, line in enumerate(lines):
                baseline = first + number * LINE * size
                pieces = runs(line, font.get("color", self.ink))
                opacity = float(note.get("opacity", 1.0))
                if len(pieces) > 1:
                    self._write_runs(pieces, x, baseline, size, opacity)
                elif pieces:
                    text, color = pieces[0]
                    look: dict[str, Any] = {"bold": is_bold(line), "opacity": opacity}
                    self.canvas.write(x, baseline, text, size, color, anchor=anchor, **look)

    def _write_runs(
        self, pieces: list[tuple[str, str]], x: float, y: float, size: float, opacity: float
    ) -> None:
        """Pieces of a line in their colours; such a line begins at its place."""
        for text, color in pieces:
            self.canvas.write(x, y, text, size, color, opacity=opacity)
            x += text_width(text, size)

    # ---- maps ----

    def _draw_map(self, trace: Written, x: Axis, y: Axis) -> None:
        z = grid(trace["z"])
        rows, columns = z.shape
        scale, low, high = self._scale(trace, z)
        colors = colors_of(z, scale, low, high)
        xs = [x.at(value) for value in _places(trace, "x", columns)]
        ys = [y.at(value) for value in _places(trace, "y", rows)]
        wide = abs(x.pixel(1) - x.pixel(0))
        high_cell = abs(y.pixel(1) - y.pixel(0))
        gaps = (
            min(float(trace.get("xgap", 0)), wide / 3),
            min(float(trace.get("ygap", 0)), high_cell / 3),
        )
        seen = np.isfinite(z)
        box = min(xs) - wide / 2, min(ys) - high_cell / 2, wide * columns, high_cell * rows
        if rows * columns <= SHAPES:
            for row, column in np.argwhere(seen):
                place = xs[column] - wide / 2 + gaps[0] / 2, ys[row] - high_cell / 2 + gaps[1] / 2
                color = f"#{colors[row, column].tobytes().hex()}"
                self.canvas.add(Rectangle(*place, wide - gaps[0], high_cell - gaps[1], color))
        else:
            paper, _ = paint(self.paper)
            colors[~seen] = list(bytes.fromhex(str(paper)[1:]))
            if xs[0] <= xs[-1]:
                across = colors
            else:
                across = colors[:, ::-1]
            self.canvas.add(Pixels(*box, across if ys[0] <= ys[-1] else across[::-1]))
        if trace.get("text") is not None and trace.get("texttemplate"):
            self._write_cells(trace, xs, ys)
        self.hover.cells(trace, x, y, box, z)

    def _write_cells(self, trace: Written, xs: list[float], ys: list[float]) -> None:
        font = trace.get("textfont", {})
        size = float(font.get("size", 12))
        for y, texts in zip(ys, trace["text"], strict=True):
            for x, text in zip(xs, texts, strict=True):
                lines = plain(text).split("\n")
                first = y + ASCENT * size - (len(lines) - 1) * LINE * size / 2
                self.canvas.write(
                    x, first, plain(text), size, font.get("color", self.ink), anchor="middle"
                )

    def _scale(self, trace: Written, z: Any) -> tuple[Sequence[Sequence[Any]], float, float]:
        """A map's colours, and the numbers at their ends."""
        if "coloraxis" in trace:
            scale = self.layout[trace["coloraxis"]]
        else:
            scale = trace
        lowest = scale.get("cmin", scale.get("zmin"))
        highest = scale.get("cmax", scale.get("zmax"))
        if lowest is None:
            low = float(np.nanmin(z))
        else:
            low = float(lowest)
        if highest is None:
            high = float(np.nanmax(z))
        else:
            high = float(highest)
        return scale["colorscale"], low, high

    def _draw_scales(self) -> None:
        """The strips of colours with their numbers, at the top of the picture."""
        left, _, right, _ = self.box
        for name, axis in self.layout.items():
            bar = None
            if name.startswith("coloraxis"):
                bar = axis.get("colorbar")
            if bar is None or axis.get("showscale") is False:
                continue
            wide = bar["len"] * (right - left)
            end = left + bar["x"] * (right - left)
            if bar.get("xanchor") == "right":
                start = end - wide
            else:
                start = end
            strip = colors_of(np.linspace(0, 1, 128)[None], axis["colorscale"], 0, 1)
            self.canvas.add(Pixels(start, 6, wide, 8, strip))
            low = axis["cmin"]
            high = axis["cmax"]
            size = float(bar.get("tickfont", {}).get("size", 12))
            for tick, text in zip(values(bar["tickvals"]), bar["ticktext"], strict=True):
                x = start + (tick - low) / ((high - low) or 1.0) * wide
                self.canvas.write(x, 16 + size, plain(text), size, self.ink, anchor="middle")

    # ---- bars ----

    def _draw_bars(self, trace: Written, x: Axis, y: Axis) -> None:
        lying = trace.get("orientation") == "h"
        along, across = (x, y) if lying else (y, x)
        lengths = values(trace["x" if lying else "y"])
        places = [across.place(value) for value in values(trace["y" if lying else "x"])]
        count = len(lengths)
        widths = each(trace.get("width"), count, 1 - self.layout.get("bargap", 0.2))
        base = each(trace.get("base"), count, 0.0)
        marker = trace.get("marker", {})
        fills = each(marker.get("color"), count)
        edge = marker.get("line", {})
        edges = each(edge.get("color"), count)
        edge_widths = each(edge.get("width"), count, 0.0)
        texts = each(trace.get("text"), count, "")
        says = self.hover.sentences(trace, count)
        for i in range(count):
            if lengths[i] is None or not math.isfinite(lengths[i]) or not math.isfinite(places[i]):
                continue
            if not along.is_log or base[i] > 0:
                first = along.at(base[i])
            else:
                first = along.start
            last = along.at(base[i] + lengths[i])
            first_side = across.pixel(places[i] - widths[i] / 2)
            second_side = across.pixel(places[i] + widths[i] / 2)
            near, far = sorted((first, last))
            low, high = sorted((first_side, second_side))
            if lying:
                box = (near, low, far - near, high - low)
            else:
                box = (low, near, high - low, far - near)
            fill, fill_opacity = paint(fills[i])
            color, _ = paint(edges[i])
            opacity = float(trace.get("opacity", 1.0)) * (fill_opacity if fill else 1.0)
            self.canvas.add(Rectangle(*box, fill, color, float(edge_widths[i]), opacity))
            self._draw_error(trace, i, lying, along, base[i] + lengths[i], (low + high) / 2)
            self._write_bar(trace, i, str(texts[i]), box, last >= first)
            self.hover.box(box, says[i])

    def _draw_error(
        self, trace: Written, i: int, lying: bool, along: Axis, end: float, middle: float
    ) -> None:
        """Draw the whisker of bar i, one error to each side of its end."""
        error = trace.get("error_x" if lying else "error_y")
        if error is None:
            return
        size = float(values(error["array"])[i])
        cap = float(error["width"])
        first = along.at(end - size)
        last = along.at(end + size)
        pieces = [((first, middle), (last, middle))]
        pieces += [((place, middle - cap), (place, middle + cap)) for place in (first, last)]
        for piece in pieces:
            points = piece if lying else tuple((x, y) for y, x in piece)
            self.canvas.add(Line(points, error["color"], float(error["thickness"])))

    def _write_bar(
        self, trace: Written, i: int, text: str, box: tuple[float, ...], forward: bool
    ) -> None:
        if not text:
            return
        left, top, wide, high = box
        size = float(trace.get("textfont", {}).get("size", 13))
        lines = plain(text).split("\n")
        first = top + high / 2 + ASCENT * size - (len(lines) - 1) * LINE * size / 2
        if trace.get("textposition") == "outside":
            if forward:
                x = left + wide + 5
            else:
                x = left - 5
            self.canvas.write(
                x, first, plain(text), size, self.ink, anchor="start" if forward else "end"
            )
            return
        smallest = self.layout.get("uniformtext", {}).get("minsize", 9)
        widest = max(text_width(line, 1.0) for line in lines)
        size = min(size, (wide - 4) / max(widest, 0.1), (high - 2) / (LINE * len(lines)))
        if size < smallest:
            return
        first = top + high / 2 + ASCENT * size - (len(lines) - 1) * LINE * size / 2
        color = each(trace.get("insidetextfont", {}).get("color"), i + 1, self.ink)[i]
        self.canvas.write(left + wide / 2, first, plain(text), size, color, anchor="middle")

    # ---- lines and points ----

    def _draw_points(self, trace: Written, x: Axis, y: Axis) -> None:
        xs = [x.at(value) for value in values(trace["x"])]
        ys = [y.at(value) for value in values(trace["y"])]
        mode = trace.get("mode", "lines")
        opacity = float(trace.get("opacity", 1.0))
        if "lines" in mode:
            line = trace.get("line", {})
            for points in _unbroken(xs, ys):
                color = line.get("color", self.ink)
                width = float(line.get("width", 2))
                self.canvas.add(
                    Line(tuple(points), color, width, line.get("dash", "solid"), opacity)
                )
        if "markers" in mode:
            self._draw_markers(trace, xs, ys, opacity)
        if "text" in mode:
            self._write_points(trace, xs, ys)
        says = self.hover.sentences(trace, len(xs))
        for at_x, at_y, sentence in zip(xs, ys, says, strict=True):
            if math.isfinite(at_x) and math.isfinite(at_y):
                self.hover.point(at_x, at_y, sentence)

    def _draw_markers(
        self, trace: Written, xs: list[float], ys: list[float], opacity: float
    ) -> None:
        count = len(xs)
        marker = trace.get("marker", {})
        sizes = each(marker.get("size"), count, 6)
        symbols = each(marker.get("symbol"), count, "circle")
        fills = self._marker_colors(trace, marker, count)
        opacities = each(marker.get("opacity"), count, 1.0)
        edge = marker.get("line", {})
        edges = each(edge.get("color"), count)
        edge_widths = each(edge.get("width"), count, 0.0)
        for i in range(count):
            if not math.isfinite(xs[i]) or not math.isfinite(ys[i]) or not opacity * opacities[i]:
                continue
            fill, _ = paint(fills[i])
            stroke = edges[i]
            width = float(edge_widths[i])
            symbol = symbols[i]
            if symbol.endswith("-open"):
                stroke = stroke or fill
                width = width or 1.5
                fill = self.paper
            draw_symbol(
                self.canvas,
                symbol.removesuffix("-open"),
                (xs[i], ys[i]),
                sizes[i] / 2,
                fill,
                stroke,
                width,
                opacity * opacities[i],
            )

    def _marker_colors(self, trace: Written, marker: Written, count: int) -> list[Any]:
        default = trace.get("line", {}).get("color", self.ink)
        colors = each(marker.get("color"), count, default)
        if "colorscale" not in marker:
            return colors
        shares = np.asarray(colors, dtype=np.float64)[None]
        drawn = colors_of(shares, marker["colorscale"], marker["cmin"], marker["cmax"])[0]
        return [f"#{color.tobytes().hex()}" for color in drawn]

    def _write_points(self, trace: Written, xs: list[float], ys: list[float]) -> None:
        count = len(xs)
        font = trace.get("textfont", {})
        size = float(font.get("size", 13))
        colors = each(font.get("color"), count, self.ink)
        texts = each(trace.get("text"), count, "")
        places = each(trace.get("textposition"), count, "middle center")
        radii = each(trace.get("marker", {}).get("size"), count, 0)
        for i in range(count):
            if not texts[i] or not math.isfinite(xs[i]) or not math.isfinite(ys[i]):
                continue
            vertical, horizontal = places[i].split(" ")
            beside = radii[i] / 2 + 3
            anchor = {"left": "end", "right": "start"}.get(horizontal, "middle")
            x = xs[i] + {"left": -beside, "right": beside}.get(horizontal, 0.0)
            up = {"top": -beside - 2, "bottom": beside + size}.get(vertical, ASCENT * size)
            self.canvas.write(x, ys[i] + up, plain(texts[i]), size, colors[i], anchor=anchor)

    # ---- the legend ----

    def _legend_rows(self, room: float) -> list[list[Written]]:
        if not self.layout.get("showlegend"):
            return []
        named: dict[str, Written] = {}
        for trace in self.traces:
            if trace.get("name") and trace.get("showlegend", True):
                named.setdefault(trace["name"], trace)
        rows: list[list[Written]] = [[]]
        used = 0.0
        for trace in named.values():
            wide = 44 + text_width(plain(trace["name"]), LEGEND)
            if used + wide > room and rows[-1]:
                rows.append([])
                used = 0.0
            rows[-1].append(trace)
            used += wide
        return [row for row in rows if row]

    def _draw_legend(self) -> None:
        left, top, right, _ = self.box
        rows = self._legend_rows(right - left)
        for number, row in enumerate(rows):
            y = top - 8 - (len(rows) - 1 - number) * LEGEND * 1.6
            wide = sum(44 + text_width(plain(trace["name"]), LEGEND) for trace in row)
            if self.layout.get("legend", {}).get("x") == 1:
                x = right - wide
            else:
                x = left
            for trace in row:
                self._draw_sample(trace, x, y - 4)
                self.canvas.write(x + 32, y, plain(trace["name"]), LEGEND, self.ink)
                x += 44 + text_width(plain(trace["name"]), LEGEND)

    def _draw_sample(self, trace: Written, x: float, y: float) -> None:
        """Draw the bar, line or marker that stands before a name in the legend."""
        marker = trace.get("marker", {})
        if trace["type"] == "bar":
            fill, _ = paint(each(marker.get("color"), 1, self.ink)[0])
            edge = marker.get("line", {})
            color, _ = paint(each(edge.get("color"), 1)[0])
            width = float(each(edge.get("width"), 1, 0.0)[0])
            self.canvas.add(Rectangle(x + 8, y - 5, 16, 10, fill, color, width))
            return
        if "lines" in trace.get("mode", "lines"):
            line = trace.get("line", {})
            look = (
                line.get("color", self.ink),
                float(line.get("width", 2)),
                line.get("dash", "solid"),
            )
            self.canvas.add(Line(((x + 2, y), (x + 28, y)), *look))
        if "markers" in trace.get("mode", ""):
            sample = {"mode": "markers", "line": trace.get("line", {}), "marker": _first(marker)}
            self._draw_markers(sample, [x + 15], [y], 1.0)


def _order(trace: Written) -> tuple[int, int]:
    kind = trace["type"]
    return (TRACES.index(kind) if kind in TRACES else 0, trace.get("zorder", 0))


def _places(trace: Written, xy: str, count: int) -> list[Any]:
    if trace.get(xy) is not None:
        return values(trace[xy])
    return list(range(count))


def _first(marker: Written) -> dict[str, Any]:
    """A marker as it is for the first of its points."""
    first = {
        key: _first_of(value) for key, value in marker.items() if key not in ("line", "colorscale")
    }
    first["line"] = {key: _first_of(value) for key, value in marker.get("line", {}).items()}
    first["size"] = min(12, first.get("size", 8))
    return first


def _first_of(value: Any) -> Any:
    if isinstance(value, list) and value:
        return value[0]
    return value


def _stacked(traces: Sequence[Written]) -> list[Written]:
    """The traces with each bar standing on those of the traces before it, at the same place."""
    ends: dict[Any, float] = {}
    stacked: list[Written] = []
    for trace in traces:
        if trace["type"] != "bar":
            stacked.append(trace)
            continue
        lying = trace.get("orientation") == "h"
        places = values(trace["y" if lying else "x"])
        lengths = values(trace["x" if lying else "y"])
        # what is below 0 goes down from 0, beside what goes up
        keys = [(place, length < 0) for place, length in zip(places, lengths, strict=True)]
        base = [ends.get(key, 0.0) for key in keys]
        for key, length in zip(keys, lengths, strict=True):
            ends[key] = ends.get(key, 0.0) + length
        stacked.append({**trace, "base": base})
    return stacked


def _unbroken(xs: list[float], ys: list[float]) -> list[list[tuple[float, float]]]:
    """The pieces of a line between its gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        if math.isfinite(x) and math.isfinite(y):
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


# the corners of a symbol in its radii, from its middle
_CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
    "triangle-up": ((0.0, -1.1), (1.1, 0.85), (-1.1, 0.85)),
    "triangle-down": ((0.0, 1.1), (1.1, -0.85), (-1.1, -0.85)),
    "triangle-left": ((-1.1, 0.0), (0.85, -1.1), (0.85, 1.1)),
    "triangle-right": ((1.1, 0.0), (-0.85, -1.1), (-0.85, 1.1)),
    "arrow": ((0.0, -1.0), (0.8, 1.0), (-0.8, 1.0)),
    "pentagon": ((0.0, -1.1), (1.05, -0.34), (0.65, 0.9), (-0.65, 0.9), (-1.05, -0.34)),
    "hexagon": (
        (0.95, -0.55),
        (0.95, 0.55),
        (0.0, 1.1),
        (-0.95, 0.55),
        (-0.95, -0.55),
        (0.0, -1.1),
    ),
    "star": tuple(
        (
            math.sin(math.pi * i / 5) * (1.3, 0.55)[i % 2],
            -math.cos(math.pi * i / 5) * (1.3, 0.55)[i % 2],
        )
        for i in range(10)
    ),
    "hexagram": tuple(
        (
            math.sin(math.pi * i / 6) * (1.3, 0.75)[i % 2],
            -math.cos(math.pi * i / 6) * (1.3, 0.75)[i % 2],
        )
        for i in range(12)
    ),
    "cross": (
        *((-0.35, -1.0), (0.35, -1.0), (0.35, -0.35), (1.0, -0.35), (1.0, 0.35), (0.35, 0.35)),
        *((0.35, 1.0), (-0.35, 1.0), (-0.35, 0.35), (-1.0, 0.35), (-1.0, -0.35), (-0.35, -0.35)),
    ),
}
_CORNERS["x"] = tuple(((x - y) * 0.75, (x + y) * 0.75) for x, y in _CORNERS["cross"])
_STROKES = {
    "line-ns": (((0.0, -1.0), (0.0, 1.0)),),
    "line-ew": (((-1.0, 0.0), (1.0, 0.0)),),
}


def draw_symbol(
    canvas: Canvas,
    symbol: str,
    at: tuple[float, float],
    radius: float,
    fill: str | None,
    stroke: str | None,
    width: float,
    opacity: float,
) -> None:
    """Draw a point's symbol, by Plotly's name for it. ValueError for one that is not known."""
    x, y = at
    if symbol == "circle":
        canvas.add(Disc(x, y, radius, fill, stroke, width, opacity))
        return
    if symbol in _STROKES:
        for ends in _STROKES[symbol]:
            points = tuple((x + a * radius, y + b * radius) for a, b in ends)
            canvas.add(Line(points, stroke or fill, width or 2.0, "solid", opacity))
        return
    if symbol not in _CORNERS:
        known = ", ".join(("circle", *_STROKES, *_CORNERS))
        raise ValueError(f"the symbol {symbol!r} cannot be drawn still; there are {known}")
    corners = tuple((x + a * radius, y + b * radius) for a, b in _CORNERS[symbol])
    canvas.add(Line(corners, stroke if width else None, width, "solid", opacity, fill or "none"))
