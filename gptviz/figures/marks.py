"""What pictures share: lines, frames and words over them, hovers, axes, the scale of signed numbers, ghosts,
the colours of roles.

Signed numbers are blue below zero, paper at zero, orange above. A ghost is what the unchanged model gives,
beside what the changed one gives: outlined bars, a dashed curve, in the palette's `ghost`. On the screen the
two are called as they are here. Tokens on an axis stand there by their names while there is room, then by
their positions.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import ROLES
from gptviz.digits import significant
from gptviz.figures.theme import Mode, color_at, mixed, palette, text_on

Floats = NDArray[np.floating]
Places = Floats | NDArray[np.integer] | Sequence[float]

Axes = tuple[str, str]  # as traces call them: ("x2", "y2")
Drawn = dict[str, Any]  # a trace, a shape, an axis, as Plotly has it

# The axis of bars of probabilities and of other shares of 1, on every page: one length is one share, whatever
# else is drawn. Beyond 1 is room for the number at a bar's end.
SHARES: Drawn = {"range": [0, 1.18], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
BARE = {"showgrid": False}  # an axis that is a list of names, or nothing
STILL = {"itemclick": False, "itemdoubleclick": False}  # a legend that only says what is what
WHOLE = {"marker": {"opacity": 1}}
# a click leaves all as it is: the page draws what is chosen
KEPT = {"selected": WHOLE, "unselected": WHOLE}


def safe(text: str) -> str:
    """A text as Plotly reads it, which takes `<` for a tag's and shows an escaped quotation mark as it is."""
    return escape(text, quote=False)


def says(sentences: Iterable[str]) -> Drawn:
    """The hover of as many points, bars or cells; escaped already."""
    return {"hovertext": list(sentences), "hoverinfo": "text"}


def names_down(count: int) -> Drawn:
    """An axis of `count` rows, the first on top."""
    return {"range": [count - 0.5, -0.5], "tickvals": np.arange(count)}


def legend(x: int, y: float = 1, **more: Any) -> Drawn:
    """A legend in a row over the picture, at its left (`x` 0) or right end (1)."""
    ends = {"x": x, "xanchor": "right" if x else "left", "y": y, "yanchor": "bottom"}
    return {"orientation": "h"} | ends | more


def line(color: str, width: float, dash: str | None = None) -> Drawn:
    return {"color": color, "width": width} | ({"dash": dash} if dash else {})


def dots(x: Places, y: Places, marker: Mapping[str, Any], **more: Any) -> Drawn:
    """Points, (n,) each, as a trace; `more` is added to it, or replaces what it has."""
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": marker} | more


def stroke(x: Places, y: Places, line: Mapping[str, Any], **more: Any) -> Drawn:
    """A line through places, (n,) each, as a trace that says nothing; `more` as in `dots`."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": line,
        "hoverinfo": "skip",
    } | more


def bar(x: Places, y: Places, marker: Mapping[str, Any], **more: Any) -> Drawn:
    """Bars, (n,) each, as a trace; `more` as in `dots`. With `orientation="h"` their lengths are `x`."""
    return {"type": "bar", "x": x, "y": y, "marker": marker} | more


def cells(z: Floats, hover: str, **more: Any) -> Drawn:
    """Numbers (R, C) as the colours of cells, as a trace; `hover` is what each says, `more` as in `dots`."""
    return {"type": "heatmap", "z": z, "hovertemplate": f"{hover}<extra></extra>"} | more


def across(y: float, stroke: Drawn, axes: Axes = ("x", "y")) -> Drawn:
    """A line at the height y, as long as the picture is wide."""
    ends = {"xref": f"{axes[0]} domain", "x0": 0, "x1": 1, "yref": axes[1], "y0": y, "y1": y}
    return {"type": "line", "line": stroke} | ends


def upright(x: float, stroke: Drawn, axes: Axes = ("x", "y")) -> Drawn:
    """A line at x, as long as the picture is high."""
    ends = {"xref": axes[0], "x0": x, "x1": x, "yref": f"{axes[1]} domain", "y0": 0, "y1": 1}
    return {"type": "line", "line": stroke} | ends


def band(x0: float, x1: float, fill: str, axes: Axes = ("x", "y")) -> Drawn:
    """The ground between x0 and x1 in another colour, below everything."""
    ground = {"type": "rect", "fillcolor": fill, "line": {"width": 0}, "layer": "below"}
    return ground | {
        "xref": axes[0],
        "x0": x0,
        "x1": x1,
        "yref": f"{axes[1]} domain",
        "y0": 0,
        "y1": 1,
    }


def frame(
    x: tuple[float, float], y: tuple[float, float], stroke: Drawn, axes: Axes = ("x", "y")
) -> Drawn:
    """A rectangle that spans `x` and `y`, each from its first number to its second."""
    corners = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    return {"type": "rect", "xref": axes[0], "yref": axes[1], "line": stroke} | corners


def around(
    row: float, column: float, stroke: Drawn, axes: Axes = ("x", "y"), room: float = 0.5
) -> Drawn:
    """A frame around a cell of a map."""
    return frame((column - room, column + room), (row - room, row + room), stroke, axes)


def heading(text: str, x: float, y: float, **more: Any) -> Drawn:
    """Words that stand on the point (x, y) of the paper, 0 to 1, and go on to the right."""
    place = {"text": text, "x": x, "y": y, "xref": "paper", "yref": "paper"}
    return place | {"xanchor": "left", "yanchor": "bottom", "align": "left"} | more


def note(text: str, x: float, y: float, color: str, size: float, **more: Any) -> Drawn:
    """Words, escaped already, that begin at (x, y) of the axes."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xanchor": "left",
        "font": {"color": color, "size": size},
    } | more


def words(said: Mapping[str, str]) -> str:
    """A legend in a line: each name in its colour."""
    return "   ".join(f"<span style='color:{color}'>{name}</span>" for name, color in said.items())


def level_notes(
    rests: Sequence[tuple[float, str]],
    drawn: Iterable[float],
    mode: Mode,
    end: Literal["left", "right"],
) -> list[Drawn]:
    """Words on lines across, at one end of a picture of these numbers.

    They stand on their line, but below it where another line with words runs close above, or on the same height.
    """
    colors = palette(mode)
    x = 1 if end == "right" else 0
    ground = {"xref": "paper", "bgcolor": colors.paper, "opacity": 0.9, "xanchor": end}
    named = [(y, words) for y, words in rests if words]
    if not named:
        return []
    heights = [*drawn, *(y for y, _ in named)]
    close = (np.nanmax(heights) - np.nanmin(heights)) / 7  # the words' height on a projector

    def anchor(number: int) -> str:
        y = named[number][0]
        above = any(0 < other - y < close for other, _ in named)
        if above or y in [other for other, _ in named[:number]]:
            return "top"
        return "bottom"

    return [
        note(safe(words), x, y, colors.quiet, 14, yanchor=anchor(number), **ground)
        for number, (y, words) in enumerate(named)
    ]


# ---- signed numbers as colour ----

BAR = 34  # pixels at the top of a figure that the scale's bar and its three numbers take


def signed_axis(limit: float, mode: Mode, right: float) -> Drawn:
    """The shared signed scale; its bar lies along the figure's upper edge and ends at `right` of the paper.

    The figure's upper margin must be at least `BAR`.
    """
    end = significant(limit, 2)
    # a label that runs over the figure's edge would not be drawn
    right -= 0.01 * max(0, len(end) - 4)
    return {
        "colorscale": palette(mode).signed,
        "cmin": -limit,
        "cmax": limit,
        "colorbar": {
            "orientation": "h", "x": right, "xanchor": "right", "len": 0.3,
            "y": 1, "yref": "container", "yanchor": "top", "thickness": 8, "outlinewidth": 0,
            "tickvals": [-limit, 0, limit], "ticktext": [f"−{end}", "0", end],
            "ticks": "", "ticklabeloverflow": "allow", "tickfont": {"size": 12}, "ypad": 4, "xpad": 0,
        },
    }  # fmt: skip


def share_axis(limit: float, mode: Mode, right: float) -> Drawn:
    """The upper half of the signed scale, for numbers that are never below 0."""
    axis = signed_axis(limit, mode, right)
    bar = axis["colorbar"] | {"tickvals": [0, limit], "ticktext": ["0", significant(limit, 2)]}
    return axis | {"colorscale": upper_half(mode), "cmin": 0.0, "colorbar": bar}


def upper_half(mode: Mode) -> list[tuple[float, str]]:
    """The part of the signed scale that stands for numbers above 0, from paper on."""
    return [(2 * (stop - 0.5), color) for stop, color in palette(mode).signed if stop >= 0.5]


def in_cells(
    texts: Sequence[Sequence[str]], z: Floats, axis: Drawn, size: int, **more: Any
) -> Drawn:
    """Texts (R, C) in the cells of a map, black or white, whichever can be read better on the cell's colour.

    `z` (R, C) is drawn by the colour axis `axis`; `more` is added to the trace: x for the columns, y for the
    rows (else 0, 1, ...), axes.
    """
    span = axis["cmax"] - axis["cmin"] or 1.0
    shares = np.nan_to_num((np.asarray(z, dtype=np.float64) - axis["cmin"]) / span)
    rows, columns = (more.pop(name, range(n)) for name, n in zip("yx", shares.shape, strict=True))
    return {
        "type": "scatter",
        "mode": "text",
        "x": [*columns] * len(rows),
        "y": [row for row in rows for _ in columns],
        "text": [text for row in texts for text in row],
        "textfont": {
            "size": size,
            "color": [text_on(color_at(axis["colorscale"], s)) for s in shares.flat],
        },
        "hoverinfo": "skip",
    } | more


def axis_names(number: int) -> tuple[Axes, tuple[str, str]]:
    """The names of a panel's axes in traces and in the layout: ("x3", "y3"), ("xaxis3", "yaxis3").

    The first panel's have no number.
    """
    n = "" if number == 1 else str(number)
    return (f"x{n}", f"y{n}"), (f"xaxis{n}", f"yaxis{n}")


def on(number: int) -> dict[str, str]:
    """The axes of the panel of this number, for a trace: {"xaxis": "x2", "yaxis": "y2"}."""
    return dict(zip(("xaxis", "yaxis"), axis_names(number)[0], strict=True))


# ---- ghosts ----

UNCHANGED = "unchanged"
CHANGED = "changed"
DIFFERENCE = "difference"

# For the layout of a figure with ghosts, whose other traces have the `name` CHANGED (or no place in the
# legend): a legend at the top right says which are which.
GHOSTED: Drawn = {"showlegend": True, "legend": legend(1, **STILL)}


def ghost_stroke(mode: Mode) -> Drawn:
    """The dashed line of a ghost, for shapes and traces that `ghost_curve` does not make."""
    return line(palette(mode).ghost, 2, "dash")


def ghost_curve(x: Places, y: Places, mode: Mode, hover: Sequence[str] = (), **more: Any) -> Drawn:
    """The unchanged curve, (n,) each, as a Plotly trace, dashed: put it before the changed one.

    `hover` are n sentences, escaped here; without any the points say nothing. `more` is added to the trace,
    or replaces what it has.
    """
    drawn = "lines" if len(x) > 2 else "lines+markers"  # one point alone would not be seen
    return stroke(x, y, ghost_stroke(mode), mode=drawn) | _ghost(hover) | more


def ghost_bars(x: Places, y: Places, mode: Mode, hover: Sequence[str] = (), **more: Any) -> Drawn:
    """The unchanged bars, (n,) each, as outlines: put them after the changed ones, and use `GHOSTED`.

    `orientation="h"` among `more` for bars that lie, whose lengths are `x`. The rest as in `ghost_curve`.
    """
    marker = {"color": "rgba(0,0,0,0)", "line": line(palette(mode).ghost, 2)}
    return bar(x, y, marker) | _ghost(hover) | more


def _ghost(hover: Sequence[str]) -> Drawn:
    return {"name": UNCHANGED} | (says(map(safe, hover)) if hover else {"hoverinfo": "skip"})


# ---- tokens on an axis ----

READABLE = 40  # tokens along half a page; above it positions are written


def token_ticks(
    shown: Sequence[str],
    most: int = READABLE,
    positions: Sequence[int] | None = None,
    title: str = "position",
    places: int = 0,
) -> Drawn:
    """Ticks of an axis whose places are 0, 1, ...; `shown` are the tokens as the screen shows them.

    `positions` are the tokens' own numbers, where they are not 0, 1, ...; `title` says what they count. The
    axis has room for at least `places` tokens.
    """
    n = len(shown)
    if n <= most:
        turned = max(n, places) > 5 and max(map(len, shown)) > 2
        return {
            "tickvals": np.arange(n),
            "ticktext": [*map(safe, shown)],
            "tickangle": -60 if turned else 0,
        }
    if n <= 128:
        step = 10
    elif n <= 512:
        step = 32
    else:
        step = 128
    marked = np.arange(0, n, step)
    if positions is None:
        numbers = marked.tolist()
    else:
        numbers = [positions[i] for i in marked.tolist()]
    named = {"ticktext": [str(number) for number in numbers], "title": {"text": title}}
    return {"tickvals": marked, "tickangle": 0} | named


def token_categories(
    shown: Sequence[str], most: int = READABLE, positions: Sequence[int] | None = None
) -> Drawn:
    """The same of an axis whose places are the categories "0", "1", ...: a hover then says the token."""
    axis = {
        "type": "category",
        "labelalias": {str(i): safe(token) for i, token in enumerate(shown)},
    }
    ticks = token_ticks(shown, most, positions)
    if len(shown) <= most:
        return axis | {"tickangle": ticks["tickangle"]}
    return axis | ticks | {"tickvals": [str(i) for i in ticks["tickvals"].tolist()]}


def window(position: int, n_tokens: int, size: int) -> slice:
    """The tokens of a long text that a picture holds: all, or `size` of them around a position."""
    start = max(0, min(position - size // 2, n_tokens - size))
    return slice(start, min(n_tokens, start + size))


# ---- roles of heads ----


# What heads look for, each with the roles that do: a family has one colour, a role its own word and shape.
FAMILIES = {
    "repeats": ("induction", "copies"),
    "neighbours": ("previous", "itself", "nearby"),
    "certain tokens": ("marks", "favourite"),
}
FAMILY_COLORS = (0, 2, 1)  # of the palette's heads: blue, green, orange


def family_colors(mode: Mode) -> dict[str, str]:
    """The colour of each of the `FAMILIES`."""
    colors = palette(mode).heads
    chosen = [colors[place] for place in FAMILY_COLORS]
    return dict(zip(FAMILIES, chosen, strict=True))


def role_colors(mode: Mode) -> dict[str, str]:
    """A colour for each role; those that claim nothing are grey, a head at rest the darker one."""
    colors = palette(mode)
    faint = mixed(colors.paper, colors.quiet, 0.5)
    quiet_colors = {name: colors.quiet if name == "first" else faint for name in ROLES}
    families = family_colors(mode)
    loud = {role: families[family] for family, roles in FAMILIES.items() for role in roles}
    return quiet_colors | loud
