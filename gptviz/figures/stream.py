"""The residual stream as pictures: the ladder of one token, the map of all, what each write gave of the end.

Shapes: T tokens, S writes (two a block, attention and then feed-forward). Attention's writes are purple, the
feed-forward's orange, as on Anatomy; the stream that they join is grey.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import BAR, Floats, axis_names, signed_axis
from gptviz.figures.marks import across, band, frame, heading, line
from gptviz.figures.norms import LABELLED_COLUMNS, column_labels
from gptviz.figures.theme import Mode, figure, palette

PARTS = ("attention", "feed-forward")
NAMED_ROWS = 50  # rows of a map that can each be labelled


def _colors(mode: Mode) -> tuple[str, str]:
    colors = palette(mode)
    return colors.output, colors.positive


def ladder(
    sizes: Floats, writes: Floats, cosines: Floats, turns: Floats, label: str, block: int, mode: Mode
) -> Figure:
    """One token's way: at each write the stream's size and the write's beside it; below, their cosine.

    sizes (S + 1,), the others (S,). `block` is shaded. Curves: 0 the stream, 1 and 2 the writes of attention
    and feed-forward, 3 and 4 their cosines; x counts the writes from 0, and S is the end.
    """
    colors, count = palette(mode), len(writes)
    steps, shown = np.arange(count + 1), f"`{html.escape(label, quote=False)}`"
    where = [f"before the {PARTS[s % 2]} of block {s // 2}" for s in range(count)] + ["at the end"]
    stream = {
        "type": "bar",
        "x": steps - 0.2,
        "y": sizes,
        "width": 0.36,
        "marker": {"color": colors.masked, "line": {"width": 0}},
        "customdata": where,
        "hovertemplate": f"%{{customdata}} the stream of {shown} has size %{{y:.3r}}<extra></extra>",
    }
    traces: list[dict[str, Any]] = [stream]
    for row in range(2):
        for part, color in enumerate(_colors(mode)):
            own = np.arange(part, count, 2)
            known = np.stack([own // 2, writes[own], sizes[own], cosines[own], turns[own]], axis=1)
            says = (
                f"{PARTS[part]} of block %{{customdata[0]}} writes a row of size %{{customdata[1]:.3r}} "
                "to one of %{customdata[2]:.3r}:<br>cosine %{customdata[3]:.2f}, it turns the stream by "
                "%{customdata[4]:.0f}°<extra></extra>"
            )
            bar = {
                "type": "bar",
                "x": own + 0.2 if row == 0 else own.astype(np.float64),
                "y": (writes if row == 0 else cosines)[own],
                "width": 0.36 if row == 0 else 0.5,
                "name": PARTS[part],
                "marker": {"color": color, "line": {"width": 0}},
                "customdata": known,
                "hovertemplate": says,
            }
            traces.append(bar if row == 0 else bar | {"xaxis": "x2", "yaxis": "y2"})
    layers = count // 2
    ticks = {
        "range": [-0.6, count + 0.5],
        "showgrid": False,
        "tickmode": "array",
        "tickvals": [*(2 * b + 0.5 for b in range(layers)), count - 0.2],
        "ticktext": [*(str(b) for b in range(layers)), "end"],
        "tickangle": 0,
        "fixedrange": True,
    }
    edges = [
        {"type": "line", "xref": axes[0], "yref": f"{axes[1]} domain", "y0": 0, "y1": 1}
        | {"x0": x, "x1": x, "line": line(colors.grid, 1)}
        for axes in (("x", "y"), ("x2", "y2"))
        for x in np.arange(1.5, count, 2).tolist()
    ]
    chosen = [
        band(2 * block - 0.5, 2 * block + 1.5, colors.panel, axes) for axes in (("x", "y"), ("x2", "y2"))
    ]
    words = f"<span style='color:{colors.quiet}'>■ the stream</span>   " + "   ".join(
        f"<span style='color:{c}'>■ {p}</span>" for p, c in zip(PARTS, _colors(mode), strict=True)
    )
    layout = {
        "barmode": "overlay",
        "clickmode": "event+select",
        "shapes": [*chosen, *edges, across(0, line(colors.quiet, 1), ("x2", "y2"))],
        "annotations": [heading(words, 0, 1)],
        "xaxis": ticks | {"anchor": "y", "showticklabels": False},
        "yaxis": {"domain": [0.4, 1], "title": {"text": "size"}, "fixedrange": True},
        "xaxis2": ticks | {"anchor": "y2", "matches": "x", "title": {"text": "block"}},
        "yaxis2": {
            "anchor": "x2",
            "domain": [0, 0.34],
            "title": {"text": "cosine"},
            "range": [-1.05, 1.05],
            "tickvals": [-1, 0, 1],
            "ticktext": ["−1", "0", "1"],
            "fixedrange": True,
        },
    }
    for trace in traces:  # a click leaves all as it is: the page draws what is chosen
        trace |= {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
    return figure(traces, layout, mode, height=350)


def stream_maps(
    sizes: Floats,
    ratios: Floats,
    names: Sequence[str],
    labels: Sequence[str],
    row: int,
    position: int,
    mode: Mode,
) -> Figure:
    """Two heatmaps (S + 1, T) side by side, the embedding on top: the stream's size after each write, and the
    write's size in terms of the stream that it joined. Colours are logarithmic.

    sizes (S + 1, T), ratios (S, T); the embedding joins nothing. The cell of `row` and `position` is framed.
    """
    rows, tokens = sizes.shape
    if ratios.shape != (rows - 1, tokens) or (len(names), len(labels)) != sizes.shape:
        raise ValueError(
            f"{len(names)} steps and {len(labels)} tokens do not fit {sizes.shape} and {ratios.shape}"
        )
    colors = palette(mode)
    change = np.concatenate([np.full((1, tokens), np.nan), ratios])  # (S + 1, T)
    columns = [str(i) for i in range(tokens)]
    known = np.stack(
        [sizes, change, np.broadcast_to(np.arange(tokens), sizes.shape)], axis=2, dtype=np.float32
    )
    at = "after %{y} the stream of `%{x}` (position %{customdata[2]})<br>"
    logs, ratio = _log(sizes), _log(change[1:])
    common = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category", "showline": True} | {
        "mirror": True
    }
    layout: dict[str, Any] = {
        "coloraxis": _size_axis(logs, mode),
        "coloraxis2": _ratio_axis(ratio, mode),
        "shapes": [],
        "annotations": [],
    }
    traces: list[dict[str, Any]] = []
    for number, (z, title, says) in enumerate(
        (
            (logs, "stream", at + "has size %{customdata[0]:.3r}"),
            (
                np.concatenate([change[:1], ratio]),
                "write / stream",
                at + "was joined by %{customdata[1]:.3r} times its size",
            ),
        ),
        start=1,
    ):
        x, y = axis_names(number, "x"), axis_names(number, "y")
        start = 0.0 if number == 1 else 0.515
        traces.append(
            {
                "type": "heatmap",
                "z": z,
                "x": columns,
                "y": list(names),
                "customdata": known,
                "hovertemplate": f"{says}<extra></extra>",
                "hoverongaps": False,
                "coloraxis": "coloraxis" if number == 1 else "coloraxis2",
                "xaxis": x[0],
                "yaxis": y[0],
                "xgap": 1 if tokens <= LABELLED_COLUMNS else 0,
                "ygap": 1 if rows <= NAMED_ROWS else 0,
            }
        )
        layout[x[1]] = common | {
            "domain": [start, start + 0.485],
            "anchor": y[0],
            "range": [-0.5, tokens - 0.5],
            "labelalias": dict(zip(columns, (html.escape(t, quote=False) for t in labels), strict=True)),
            **column_labels(tokens),
        }
        layout[y[1]] = common | {
            "range": [rows - 0.5, -0.5],
            "anchor": x[0],
            "showticklabels": number == 1,
            "tickfont": {"size": 14 if rows <= 16 else 12},
            **({"tickmode": "linear"} if rows <= NAMED_ROWS else {}),
        }
        layout["annotations"].append(heading(f"<b>{title}</b>", start, 1))
        layout["shapes"].append(
            frame(
                (position - 0.5, position + 0.5),
                (row - 0.5, row + 0.5),
                line(colors.accent, 2.5),
                (x[0], y[0]),
            )
        )
    height = max(140 + rows * (20 if rows <= 16 else 14 if rows <= NAMED_ROWS else 8), 280)
    return figure(traces, layout, mode, height, t=BAR + 22)


def end_shares(shares: Floats, names: Sequence[str], block: int, mode: Mode) -> Figure:
    """What the embedding and each write gave of the stream at the end, (S + 1,): a bar each, in percent."""
    colors, count = palette(mode), len(shares)
    parts = _colors(mode)
    fills = [colors.quiet, *(parts[s % 2] for s in range(count - 1))]
    bars = {
        "type": "bar",
        "x": np.arange(count),
        "y": 100 * shares,
        "marker": {"color": fills, "line": {"width": 0}},
        "customdata": list(names),
        "hovertemplate": "%{customdata}: %{y:.3r} % of the stream at the end<extra></extra>",
    }
    layers = count // 2
    layout = {
        "shapes": [
            band(2 * block + 0.5, 2 * block + 2.5, colors.panel),
            across(0, line(colors.quiet, 1)),
        ],
        "xaxis": {
            "showgrid": False,
            "fixedrange": True,
            "tickmode": "array",
            "tickvals": [0, *(2 * b + 1.5 for b in range(layers))],
            "ticktext": ["emb.", *(str(b) for b in range(layers))],
            "tickangle": 0,
            "title": {"text": "block"},
        },
        "yaxis": {"title": {"text": "% of the end"}, "fixedrange": True},
        "bargap": 0.35,
    }
    return figure([bars], layout, mode, height=230)


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
    scale = palette(mode).signed
    upper = [(2 * (at - 0.5), color) for at, color in scale if at >= 0.5]
    texts = [("≤ " if logs.min() < low else "") + _plain(low), _plain((low + high) / 2), _plain(high)]
    bar = _bar(0.485, [low, (low + high) / 2, high], texts, mode)
    return {"colorscale": upper, "cmin": low, "cmax": high, "colorbar": bar}


def _ratio_axis(logs: Floats, mode: Mode) -> dict[str, Any]:
    """Paper is a write as large as its stream; what meets the embedding may be beyond the scale."""
    later = logs[1:] if len(logs) > 1 else logs
    limit = max(0.3, float(np.abs(later).max()))
    texts = [_plain(-limit), "1", ("≥ " if logs.max() > limit else "") + _plain(limit)]
    bar = _bar(1.0, [-limit, 0, limit], texts, mode)
    return {"colorscale": palette(mode).signed, "cmin": -limit, "cmax": limit, "colorbar": bar}


def _bar(right: float, values: list[float], texts: list[str], mode: Mode) -> dict[str, Any]:
    bar = signed_axis(1.0, mode, right)["colorbar"]
    assert isinstance(bar, dict)
    return bar | {"len": 0.22, "tickvals": values, "ticktext": texts}


def _plain(power: float) -> str:
    """10 to this power, in two digits that mean something."""
    return significant(10.0**power, 2)
