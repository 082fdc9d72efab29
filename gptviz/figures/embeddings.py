"""An addition of rows: token embedding + position embedding = what block 0 is given.

Shapes: T tokens, D dimensions. Labels are token texts as the screen shows them; they are escaped
here, because Plotly reads `<` in any text as the start of a tag.
"""

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.digits import significant
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.theme import Mode, finish, palette

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
) -> go.Figure:
    """One token's three rows (3, D) under each other, and below them a few dimensions with their digits.

    `cells` are the digits of the dimensions in `window`, which holds `dimension`. Over the rows lies an
    invisible point a value (curve 1, x is the dimension), for the clicks that a heatmap does not report.
    """
    colors = palette(mode)
    size = parts.shape[1]
    strips = go.Heatmap(z=parts, ygap=5, hoverinfo="skip", coloraxis="coloraxis")
    digits = go.Heatmap(
        x=[str(d) for d in window],
        z=parts[:, window.start : window.stop],
        xgap=4,
        ygap=4,
        hoverinfo="skip",
        coloraxis="coloraxis",
        xaxis="x2",
        yaxis="y2",
    )
    written = _written(parts[:, window.start : window.stop], cells, [str(d) for d in window], limit, mode)
    fig = go.Figure([strips, _sum_points(parts, label, position), digits, written])
    names = {
        "tickvals": [0, 1, 2],
        "ticktext": SUM_NAMES,
        "autorange": "reversed",
        "ticks": "",
        "fixedrange": True,
    }
    fig.update_layout(
        coloraxis=signed_axis(limit, mode, 0.97),
        xaxis={
            "range": [-0.5, size - 0.5],
            "anchor": "y",
            "fixedrange": True,
            "showticklabels": False,
            "ticks": "",
        },
        xaxis2={
            "type": "category",
            "anchor": "y2",
            "fixedrange": True,
            "showgrid": False,
            "title": "dimension",
        },
        yaxis={**names, "domain": [0.56, 1.0], "showgrid": False},
        yaxis2={**names, "domain": [0.0, 0.44], "showgrid": False},
        clickmode="event+select",
    )
    _lens(fig, window, size, colors.quiet)
    column = dimension - window.start
    fig.add_shape(
        type="rect", x0=column - 0.5, x1=column + 0.5, y0=-0.5, y1=2.5, xref="x2", yref="y2",
        line={"color": colors.accent, "width": 2.5},
    )  # fmt: skip
    fig.add_shape(
        type="line", x0=dimension, x1=dimension, y0=-0.5, y1=2.5, line={"color": colors.accent, "width": 2}
    )
    finish(fig, mode, height=240 + BAR)
    fig.layout.margin.t = BAR
    return fig


def _sum_points(parts: Floats, label: str, position: int) -> go.Scatter:
    size = parts.shape[1]
    columns = np.tile(np.arange(size, dtype=np.int32), 3)  # dimension of each of the 3 D points
    return go.Scatter(
        x=columns,
        y=np.repeat(np.arange(3, dtype=np.int32), size),
        mode="markers",
        marker={"size": 8, "symbol": "square", "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=np.tile(parts.T, (3, 1)),  # (3D, 3): every point knows the whole addition
        meta=f"`{html.escape(label, quote=False)}` (position {position})",
        hovertemplate="%{meta}, dimension %{x}:<br>"
        "token %{customdata[0]:.4f} + position %{customdata[1]:.4f} = %{customdata[2]:.4f}<extra></extra>",
    )


def _written(
    values: Floats, cells: Sequence[tuple[str, str, str]], columns: Sequence[str], limit: float, mode: Mode
) -> go.Scatter:
    """The digits on their cells, in the ink or, on a deep colour, in the paper's."""
    colors = palette(mode)
    deep = np.abs(values) > 0.6 * limit  # (3, n)
    return go.Scatter(
        x=np.tile(columns, 3),
        y=np.repeat([0, 1, 2], len(columns)),
        mode="text",
        text=np.array(cells).T.ravel(),  # (n, 3) -> (3, n) -> (3n,): a row at a time, as x and y
        textfont={"size": 15, "color": np.where(deep, colors.paper, colors.ink).ravel()},
        hoverinfo="skip",
        xaxis="x2",
        yaxis="y2",
    )


def _lens(fig: go.Figure, window: range, size: int, color: str) -> None:
    """Two lines from the dimensions of `window` in the rows down to the same dimensions with their digits."""
    for edge, end in ((window.start, 0.0), (window.stop, 1.0)):
        fig.add_shape(
            type="line", x0=edge / size, y0=0.555, x1=end, y1=0.445, xref="paper", yref="paper",
            line={"color": color, "width": 1, "dash": "dot"},
        )  # fmt: skip


def embedding_rows(
    parts: Floats, labels: Sequence[str], lengths: Floats, limit: float, position: int, mode: Mode
) -> go.Figure:
    """Three heatmaps (3, T, D) of the whole prompt, a row a token, on one scale; beside each row its length.

    `lengths` (3, T) are the Euclidean norms. The row of `position` is framed. A zoom along the
    dimensions moves all three; values beyond the limit take the last colour, the hover tells them truly.
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
    frame = 0.5 if row_px > 6 else 0.5 + 2 / row_px  # around a thin row, not over it
    fig = go.Figure()
    axes: dict[str, dict[str, object]] = {}
    longest = float(lengths.max()) * 1.8 or 1.0  # a phone needs that room for the numbers
    for part, name in enumerate(PANEL_NAMES):
        domain = _panel(part, title_px, row_px * tokens)
        x, y, bar_x, bar_y = (axis_names(2 * part + offset, letter) for offset in (1, 2) for letter in "xy")
        fig.add_trace(_rows_trace(parts[part], name.lstrip("+= "), x[0], y[0]))
        fig.add_trace(
            _length_bars(lengths[part], shown, name.lstrip("+= "), position, bar_x[0], bar_y[0], mode)
        )
        rows = {
            "range": [tokens - 0.5, -0.5],
            "domain": domain,
            "fixedrange": True,
            "showgrid": False,
            "ticks": "",
        }
        axes[x[1]] = {
            "domain": [0, BARS - 0.02], "anchor": y[0], "range": [-0.5, size - 0.5], "showgrid": False,
            "showticklabels": part == 2, "ticks": "outside" if part == 2 else "",
        }  # fmt: skip
        if part:
            axes[x[1]]["matches"] = "x"
        # the heatmap's own axis is unlabelled: its tick texts are what the hover says for a row
        axes[y[1]] = {
            **rows, "anchor": x[0], "showticklabels": False, "tickvals": np.arange(tokens),
            "ticktext": [f"`{label}` (position {i})" for i, label in enumerate(shown)],
        }  # fmt: skip
        axes[bar_x[1]] = {
            "domain": [BARS, 1], "anchor": bar_y[0], "range": [0, longest], "fixedrange": True,
            "showticklabels": False, "showgrid": False, "ticks": "",
        }  # fmt: skip
        axes[bar_y[1]] = {**rows, **_row_labels(shown, row_px), "anchor": "free", "position": 0}
        fig.add_annotation(
            text=f"<b>{name}</b>", x=0, y=domain[1], xref="paper", yref="paper", xanchor="left",
            yanchor="bottom", showarrow=False,
        )  # fmt: skip
        fig.add_shape(
            type="rect", x0=-0.5, x1=size - 0.5, y0=position - frame, y1=position + frame,
            xref=x[0], yref=y[0], line={"color": colors.accent, "width": 2},
        )  # fmt: skip
    fig.add_annotation(
        text="length",
        x=BARS,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
    )
    axes[axis_names(5, "x")[1]]["title"] = "dimension"
    fig.update_layout(
        axes, coloraxis=signed_axis(limit, mode, 0.97), bargap=0.25 if tokens <= LABELLED_ROWS else 0
    )
    finish(fig, mode, height=height + 30)
    fig.layout.margin.t = BAR + TITLE
    return fig


def row_pixels(tokens: int) -> float:
    """The height of a token's row: tall for a sentence, two pixels for a full context of 256."""
    return max(18 if tokens <= 12 else 11 if tokens <= LABELLED_ROWS else 0, 2, min(18, 300 / tokens))


def _panel(part: int, title: float, body: float) -> list[float]:
    """Where panel `part` of three lies, as a domain of the paper counted from its foot."""
    unit = 3 * body + 2 * title
    top = 1 - part * (body + title) / unit
    return [max(0.0, top - body / unit), top]


def _rows_trace(rows: Floats, name: str, x: str, y: str) -> go.Heatmap:
    return go.Heatmap(
        z=rows,
        coloraxis="coloraxis",
        xaxis=x,
        yaxis=y,
        name=name,
        hovertemplate=f"%{{y}}, dimension %{{x}}:<br>{name} %{{z:.4f}}<extra></extra>",
    )


def _length_bars(
    lengths: Floats, labels: Sequence[str], name: str, position: int, x: str, y: str, mode: Mode
) -> go.Bar:
    colors = palette(mode)
    few = len(labels) <= LABELLED_ROWS
    return go.Bar(
        x=lengths,
        y=np.arange(len(labels)),
        orientation="h",
        xaxis=x,
        yaxis=y,
        text=[significant(float(length), 3) for length in lengths] if few else None,
        textposition="outside",
        cliponaxis=False,
        textfont={"size": max(9, min(13, row_pixels(len(labels)) - 1))},
        constraintext="none",
        marker={
            "color": [colors.accent if i == position else colors.quiet for i in range(len(labels))],
            "line": {"width": 0},
        },
        customdata=labels,
        hovertemplate=f"`%{{customdata}}` (position %{{y}}):<br>{name} has length %{{x:.4f}}<extra></extra>",
    )


def _row_labels(labels: Sequence[str], row_px: float) -> dict[str, object]:
    """Tokens while a row is tall enough for text, else every so many positions."""
    if len(labels) <= LABELLED_ROWS:
        return {
            "tickvals": np.arange(len(labels)),
            "ticktext": labels,
            "tickfont": {"size": min(14, row_px - 1)},
        }
    return {"tickmode": "linear", "tick0": 0, "dtick": 10 if len(labels) <= 128 else 32}
