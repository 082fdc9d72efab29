"""An addition of rows: token embedding + position embedding = what block 0 is given.

Shapes: T tokens, D dimensions. Labels are token texts as the screen shows them; they are escaped
here, because Plotly reads `<` in any text as the start of a tag.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import UNCHANGED, ghost_bars
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.marks import Axes, frame, heading, line
from gptviz.figures.theme import Mode, figure, palette

SUM_NAMES = ("token", "+ position", "= sum")
PANEL_NAMES = ("token embedding", "+ position embedding", "= what block 0 is given")
BARS = 0.84  # where on the paper the column of lengths begins
TITLE = 22  # pixels above the first panel for its name
LABELLED_ROWS = 48  # above it a row is too thin for its token's text: positions are written instead


def embedding_sum(
    parts: Floats,
    label: str,
    position: int,
    dimension: int,
    window: range,
    cells: Sequence[tuple[str, str, str]],
    limit: float,
    mode: Mode,
) -> Figure:
    """One token's three rows (3, D) under each other, and below them a few dimensions with their digits.

    `cells` are the digits of the dimensions in `window`, which holds `dimension`. Curve 0 is the rows, with
    x the dimension and the whole addition behind every value; curve 1 is the window, a column a dimension.
    """
    colors = palette(mode)
    size, column = parts.shape[1], dimension - window.start
    names = {
        "tickvals": [0, 1, 2],
        "ticktext": SUM_NAMES,
        "autorange": "reversed",
        "ticks": "",
        "fixedrange": True,
        "showgrid": False,
    }
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "xaxis": {
            "range": [-0.5, size - 0.5],
            "anchor": "y",
            "fixedrange": True,
            "showticklabels": False,
            "ticks": "",
        },
        "xaxis2": {
            "type": "category",
            "anchor": "y2",
            "fixedrange": True,
            "showgrid": False,
            "title": {"text": "dimension"},
        },
        "yaxis": {**names, "domain": [0.56, 1.0]},
        "yaxis2": {**names, "domain": [0.0, 0.44], "anchor": "x2"},
        "shapes": [
            *_lens(window, size, colors.quiet),
            frame((column - 0.5, column + 0.5), (-0.5, 2.5), line(colors.accent, 2.5), ("x2", "y2")),
            frame((dimension, dimension), (-0.5, 2.5), line(colors.accent, 2)),
        ],
    }
    traces = [_sum_rows(parts, label, position), *_digits(parts, window, cells, limit, mode)]
    return figure(traces, layout, mode, height=240 + BAR, t=BAR)


def _sum_rows(parts: Floats, label: str, position: int) -> dict[str, Any]:
    """The three rows as colours; every value knows the whole addition, for its hover."""
    additions = np.broadcast_to(parts.T, (3, *parts.T.shape))  # (3, D, 3)
    return {
        "type": "heatmap",
        "z": parts,
        "customdata": additions,
        "ygap": 5,
        "coloraxis": "coloraxis",
        "meta": f"`{html.escape(label, quote=False)}` (position {position})",
        "hovertemplate": "%{meta}, dimension %{x}:<br>"
        "token %{customdata[0]:.4f} + position %{customdata[1]:.4f} = %{customdata[2]:.4f}<extra></extra>",
    }


def _digits(
    parts: Floats, window: range, cells: Sequence[tuple[str, str, str]], limit: float, mode: Mode
) -> list[dict[str, Any]]:
    """The window's cells, and their digits in the ink or, on a deep colour, in the paper's."""
    colors, columns = palette(mode), [str(d) for d in window]
    seen = parts[:, window.start : window.stop]  # (3, n)
    deep = np.abs(seen) > 0.6 * limit
    fills = {"type": "heatmap", "x": columns, "z": seen, "xgap": 4, "ygap": 4, "coloraxis": "coloraxis"}
    written = {
        "type": "scatter",
        "x": columns * 3,
        "y": np.repeat([0, 1, 2], len(columns)),
        "mode": "text",
        "text": [cell[part] for part in range(3) for cell in cells],  # a row at a time, as x and y
        "textfont": {"size": 15, "color": np.where(deep, colors.paper, colors.ink).ravel()},
    }
    below = {
        "xaxis": "x2",
        "yaxis": "y2",
        "hoverinfo": "skip",
    }  # they say their numbers, and a click is the rows'
    return [fills | below, written | below]


def _lens(window: range, size: int, color: str) -> list[dict[str, Any]]:
    """Two lines from the dimensions of `window` in the rows down to the same dimensions with their digits."""
    on_paper = {"type": "line", "xref": "paper", "yref": "paper", "line": line(color, 1, "dot")}
    return [
        on_paper | {"x0": edge / size, "y0": 0.555, "x1": end, "y1": 0.445}
        for edge, end in ((window.start, 0.0), (window.stop, 1.0))
    ]


def embedding_rows(
    parts: Floats,
    labels: Sequence[str],
    lengths: Floats,
    limit: float,
    position: int,
    mode: Mode,
    unchanged: Floats | None = None,
) -> Figure:
    """Three heatmaps (3, T, D) of the whole prompt, a row a token, on one scale; beside each row its length.

    `lengths` (3, T) are the Euclidean norms. The row of `position` is framed. A zoom along the
    dimensions moves all three; values beyond the limit take the last colour, the hover tells them truly.
    `unchanged`, the lengths (3, T) in the model without its changes, are ghosts.
    """
    _, tokens, size = parts.shape
    if len(labels) != tokens or lengths.shape != (3, tokens):
        raise ValueError(
            f"{tokens} rows, {len(labels)} labels and lengths of shape {lengths.shape} do not fit"
        )
    colors = palette(mode)
    shown = [html.escape(label, quote=False) for label in labels]
    row_px = row_pixels(tokens)
    title_px, height = 26, 3 * (26 + row_px * tokens) + 70
    around = 0.5 if row_px > 6 else 0.5 + 2 / row_px  # around a thin row, not over it
    longest = max(float(lengths.max()), 0.0 if unchanged is None else float(unchanged.max()))
    longest = longest * 1.8 or 1.0  # a phone needs that room for the numbers
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "bargap": 0.25 if tokens <= LABELLED_ROWS else 0,
        "shapes": [],
        "annotations": [heading("length", BARS, 1)],
    }
    row_names = [f"`{label}` (position {i})" for i, label in enumerate(shown)]
    for part, name in enumerate(PANEL_NAMES):
        domain = _panel(part, title_px, row_px * tokens)
        x, y, bar_x, bar_y = (axis_names(2 * part + offset, letter) for offset in (1, 2) for letter in "xy")
        said = name.lstrip("+= ")
        traces += [
            _rows_trace(parts[part], said, (x[0], y[0])),
            _length_bars(lengths[part], shown, said, position, (bar_x[0], bar_y[0]), mode),
        ]
        if unchanged is not None:
            traces.append(_length_ghosts(unchanged[part], labels, said, (bar_x[0], bar_y[0]), mode))
        rows = {
            "range": [tokens - 0.5, -0.5],
            "domain": domain,
            "fixedrange": True,
            "showgrid": False,
            "ticks": "",
        }
        layout[x[1]] = {
            "domain": [0, BARS - 0.02],
            "anchor": y[0],
            "range": [-0.5, size - 0.5],
            "showgrid": False,
            "showticklabels": part == 2,
            "ticks": "outside" if part == 2 else "",
        } | ({"matches": "x"} if part else {})
        # the heatmap's own axis is unlabelled: its tick texts are what the hover says for a row
        layout[y[1]] = rows | {
            "anchor": x[0],
            "showticklabels": False,
            "tickvals": np.arange(tokens),
            "ticktext": row_names,
        }
        layout[bar_x[1]] = {
            "domain": [BARS, 1],
            "anchor": bar_y[0],
            "range": [0, longest],
            "fixedrange": True,
            "showticklabels": False,
            "showgrid": False,
            "ticks": "",
        }
        layout[bar_y[1]] = rows | _row_labels(shown, row_px) | {"anchor": "free", "position": 0}
        layout["annotations"].append(heading(f"<b>{name}</b>", 0, domain[1]))
        layout["shapes"].append(
            frame(
                (-0.5, size - 0.5),
                (position - around, position + around),
                line(colors.accent, 2),
                (x[0], y[0]),
            )
        )
    layout[axis_names(5, "x")[1]]["title"] = {"text": "dimension"}
    if unchanged is not None:
        layout["barmode"] = "overlay"
    return figure(traces, layout, mode, height=height + 30, t=BAR + TITLE)


def row_pixels(tokens: int) -> float:
    """The height of a token's row: tall for a sentence, two pixels for a full context of 256."""
    return max(18 if tokens <= 12 else 11 if tokens <= LABELLED_ROWS else 0, 2, min(18, 300 / tokens))


def _panel(part: int, title: float, body: float) -> list[float]:
    """Where panel `part` of three lies, as a domain of the paper counted from its foot."""
    unit = 3 * body + 2 * title
    top = 1 - part * (body + title) / unit
    return [max(0.0, top - body / unit), top]


def _rows_trace(rows: Floats, name: str, axes: Axes) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": rows,
        "coloraxis": "coloraxis",
        "xaxis": axes[0],
        "yaxis": axes[1],
        "name": name,
        "hovertemplate": f"%{{y}}, dimension %{{x}}:<br>{name} %{{z:.4f}}<extra></extra>",
    }


def _length_bars(
    lengths: Floats, labels: Sequence[str], name: str, position: int, axes: Axes, mode: Mode
) -> dict[str, Any]:
    colors = palette(mode)
    bars: dict[str, Any] = {
        "type": "bar",
        "x": lengths,
        "y": np.arange(len(labels)),
        "orientation": "h",
        "xaxis": axes[0],
        "yaxis": axes[1],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": label_pixels(row_pixels(len(labels)))},
        "constraintext": "none",
        "marker": {
            "color": [colors.accent if i == position else colors.quiet for i in range(len(labels))],
            "line": {"width": 0},
        },
        "customdata": list(labels),
        "hovertemplate": f"`%{{customdata}}` (position %{{y}}):<br>{name} has length %{{x:.4f}}"
        "<extra></extra>",
    }
    if len(labels) <= LABELLED_ROWS:
        bars["text"] = [significant(float(length), 3) for length in lengths]
    return bars


def _length_ghosts(
    lengths: Floats, labels: Sequence[str], name: str, axes: Axes, mode: Mode
) -> dict[str, Any]:
    said = [
        f"`{label}` (position {i}): {name} has length {significant(float(length), 4)} {UNCHANGED}"
        for i, (label, length) in enumerate(zip(labels, lengths, strict=True))
    ]
    places = {"orientation": "h", "xaxis": axes[0], "yaxis": axes[1]}
    return ghost_bars(lengths, np.arange(len(lengths)), mode, said, **places)


def label_pixels(row_px: float) -> float:
    """The size of what is written in a row of that height."""
    return max(11, min(14, row_px - 1))  # smaller could not be read on a projector


def _row_labels(labels: Sequence[str], row_px: float) -> dict[str, object]:
    """Tokens while a row is tall enough for text, else every so many positions."""
    if len(labels) <= LABELLED_ROWS:
        return {
            "tickvals": np.arange(len(labels)),
            "ticktext": list(labels),
            "tickfont": {"size": label_pixels(row_px)},
        }
    return {"tickmode": "linear", "tick0": 0, "dtick": 10 if len(labels) <= 128 else 32}
