"""The residual stream of all tokens as maps: its size and its writes; and how far a change moved them.

Shapes: T tokens, S writes (two a block, attention and then feed-forward); rows are the embedding, then every
write.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis, upper_half
from gptviz.figures.marks import frame, heading, line
from gptviz.figures.theme import Mode, figure, palette
from gptviz.figures.token_axis import READABLE, token_categories

NAMED_ROWS = 50  # rows of a map that can each be labelled
RIGHT = 0.97  # of the paper: where a scale ends, whose last number needs room


@dataclass(frozen=True)
class Table:
    """What the maps are of: the steps, S + 1, the tokens' labels, T, and which cell of them is framed."""

    names: Sequence[str]
    labels: Sequence[str]
    row: int
    position: int


def stream_maps(
    sizes: Floats,
    ratios: Floats,
    table: Table,
    mode: Mode,
) -> Figure:
    """Two heatmaps (S + 1, T) side by side, the embedding on top: the stream's size after each write, and the
    write's size in terms of the stream that it joined. Colours are logarithmic.

    sizes (S + 1, T), ratios (S, T); the embedding joins nothing.
    """
    rows, tokens = sizes.shape
    steps, labels = len(table.names), len(table.labels)
    if ratios.shape != (rows - 1, tokens) or (steps, labels) != sizes.shape:
        raise ValueError(f"{steps} steps and {labels} tokens do not fit {sizes.shape} and {ratios.shape}")
    change = np.concatenate([np.full((1, tokens), np.nan), ratios])  # (S + 1, T)
    logs, ratio = _log(sizes), _log(change[1:])
    at = "after %{y} the stream of `%{x}` (position %{customdata[2]})<br>"
    panels = (
        Panel("stream", logs, at + "has size %{customdata[0]:.3r}", _size_axis(logs, mode)),
        Panel(
            "write / stream",
            np.concatenate([change[:1], ratio]),
            at + "was joined by %{customdata[1]:.3r} times its size",
            _ratio_axis(ratio, mode),
        ),
    )
    return two_maps(panels, (sizes, change), table, mode)


def stream_changes(
    distances: Floats,
    angles: Floats,
    writes: Floats,
    unchanged: Floats,
    table: Table,
    mode: Mode,
) -> Figure:
    """Two heatmaps (S + 1, T): how far a changed run's stream is from the unchanged one's, in terms of its
    size; and how many times as large each write is, on a logarithmic scale.

    `distances` and `angles` (S + 1, T) are `analysis.stream.apart`'s; `writes` and `unchanged` (S, T) the
    writes' sizes in both runs.
    """
    empty = np.full((1, distances.shape[1]), np.nan)
    new, old = (np.concatenate([empty, sizes]) for sizes in (writes, unchanged))  # (S + 1, T)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(new == old, 0.0, np.log10(new) - np.log10(old))
    fine = times[np.isfinite(times)]
    limit = max(0.3, float(np.abs(fine).max(initial=0.0)))
    z = np.concatenate([empty, np.clip(times[1:], -limit, limit)])  # what was muted is as deep a blue
    far = float(distances[np.isfinite(distances)].max(initial=0.0))
    at = "after %{y} the stream of `%{x}` (position %{customdata[4]})<br>"
    panels = (
        Panel(
            f"stream: how far<br>from {UNCHANGED}",
            np.nan_to_num(distances, posinf=far),
            at + "has moved by %{customdata[0]:.3r} times its size, %{customdata[1]:.3r}°",
            _distance_axis(far, mode),
        ),
        Panel(
            "write: how many<br>times as large",
            z,
            "%{y} writes to `%{x}` (position %{customdata[4]})<br>"
            f"a row of size %{{customdata[2]:.3r}} {UNCHANGED}, %{{customdata[3]:.3r}} {CHANGED}",
            _times_axis(limit, mode),
        ),
    )
    return two_maps(panels, (distances, angles, old, new), table, mode)


@dataclass(frozen=True)
class Panel:
    """A map: its heading, its colours (S + 1, T), what a hover says, and the scale of its colours."""

    title: str
    z: Floats
    says: str
    axis: dict[str, Any]


def two_maps(
    panels: tuple[Panel, Panel],
    known: Sequence[Floats],
    table: Table,
    mode: Mode,
) -> Figure:
    """Two heatmaps side by side, a row a step and a column a token; one cell framed.

    `known`, (S + 1, T) each, are what a hover can say: customdata[0], [1] ..., and last the position.
    """
    rows, tokens = panels[0].z.shape
    colors, columns = palette(mode), [str(i) for i in range(tokens)]
    behind = np.stack([*known, np.broadcast_to(np.arange(tokens), (rows, tokens))], axis=2, dtype=np.float32)
    common = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category", "showline": True} | {
        "mirror": True
    }
    layout: dict[str, Any] = {
        "coloraxis": panels[0].axis,
        "coloraxis2": panels[1].axis,
        "shapes": [],
        "annotations": [],
    }
    traces: list[dict[str, Any]] = []
    for number, panel in enumerate(panels, start=1):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        start = 0.0 if number == 1 else 0.515
        traces.append(
            {
                "type": "heatmap",
                "z": panel.z,
                "x": columns,
                "y": list(table.names),
                "customdata": behind,
                "hovertemplate": f"{panel.says}<extra></extra>",
                "hoverongaps": False,
                "coloraxis": "coloraxis" if number == 1 else "coloraxis2",
                "xaxis": x[0],
                "yaxis": y[0],
                "xgap": 1 if tokens <= READABLE else 0,
                "ygap": 1 if rows <= NAMED_ROWS else 0,
            }
        )
        layout[x[1]] = common | {
            "domain": [start, start + 0.485],
            "anchor": y[0],
            "range": [-0.5, tokens - 0.5],
            **token_categories([html.escape(t, quote=False) for t in table.labels]),
        }
        layout[y[1]] = common | {
            "range": [rows - 0.5, -0.5],
            "anchor": x[0],
            "showticklabels": number == 1,
            "tickfont": {"size": 14 if rows <= 16 else 12},
            **({"tickmode": "linear"} if rows <= NAMED_ROWS else {}),
        }
        layout["annotations"].append(heading(f"<b>{panel.title}</b>", start, 1))
        layout["shapes"].append(
            frame(
                (table.position - 0.5, table.position + 0.5),
                (table.row - 0.5, table.row + 0.5),
                line(colors.accent, 2.5),
                (x[0], y[0]),
            )
        )
    height = max(140 + rows * (20 if rows <= 16 else 14 if rows <= NAMED_ROWS else 8), 280)
    heads = 22 + 20 * max(panel.title.count("<br>") for panel in panels)  # a line each, above the maps
    return figure(traces, layout, mode, height, t=BAR + heads)


def _log(values: Floats) -> Floats:
    """log10; zeros stand with the least above 0, what is infinite with the largest that is not."""
    fine = values[np.isfinite(values) & (values > 0)]
    least, most = (float(fine.min()), float(fine.max())) if fine.size else (1.0, 1.0)
    return np.log10(np.clip(np.nan_to_num(values, nan=1.0, posinf=most), least, most))


def _size_axis(logs: Floats, mode: Mode) -> dict[str, Any]:
    """Sizes are above 0: the half of the signed scale that stands for that, from the least to the largest.

    The scale begins with what the first write made: an embedding may be a hundredth of all that follows, and
    would take the whole scale for itself.
    """
    later = logs[1:] if len(logs) > 1 else logs
    low, high = float(later.min()), float(logs.max())
    high = max(high, low + 0.1)
    texts = [("≤ " if logs.min() < low else "") + _plain(low), _plain((low + high) / 2), _plain(high)]
    bar = _bar(0.485, [low, (low + high) / 2, high], texts, mode)
    return {"colorscale": upper_half(mode), "cmin": low, "cmax": high, "colorbar": bar}


def _ratio_axis(logs: Floats, mode: Mode) -> dict[str, Any]:
    """Paper is a write as large as its stream; what meets the embedding may be beyond the scale."""
    later = logs[1:] if len(logs) > 1 else logs
    limit = max(0.3, float(np.abs(later).max()))
    texts = [_plain(-limit), "1", ("≥ " if logs.max() > limit else "") + _plain(limit)]
    bar = _bar(RIGHT, [-limit, 0, limit], texts, mode)
    return {"colorscale": palette(mode).signed, "cmin": -limit, "cmax": limit, "colorbar": bar}


def _distance_axis(far: float, mode: Mode) -> dict[str, Any]:
    """Paper is where nothing has moved."""
    end = far or 1.0
    texts = ["0", f"{significant(100 * end, 2)} %"]
    return {
        "colorscale": upper_half(mode),
        "cmin": 0.0,
        "cmax": end,
        "colorbar": _bar(0.485, [0, end], texts, mode),
    }


def _times_axis(limit: float, mode: Mode) -> dict[str, Any]:
    """Paper is a write as large as it was."""
    end = _plain(limit)
    bar = _bar(RIGHT, [-limit, 0, limit], [f"÷ {end}", "1", f"× {end}"], mode)
    return {"colorscale": palette(mode).signed, "cmin": -limit, "cmax": limit, "colorbar": bar}


def _bar(right: float, values: list[float], texts: list[str], mode: Mode) -> dict[str, Any]:
    bar = signed_axis(1.0, mode, right)["colorbar"]
    assert isinstance(bar, dict)
    return bar | {"len": 0.22, "tickvals": values, "ticktext": texts}


def _plain(power: float) -> str:
    """10 to this power, in two digits that mean something."""
    return significant(10.0**power, 2)
