"""The residual stream of one token as pictures: its ladder, and what each write gave of the end.

Shapes: S writes (two a block, attention and then feed-forward). Attention's writes are purple, the
feed-forward's orange, as on Anatomy; the stream that they join is grey.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import GHOSTED, UNCHANGED, ghost_bars
from gptviz.figures.heatmaps import Floats
from gptviz.figures.marks import across, band, heading, line
from gptviz.figures.theme import MARGIN, Mode, figure, palette

PARTS = ("attention", "feed-forward")
LINE = 20  # pixels of a line above a picture


def _colors(mode: Mode) -> tuple[str, str]:
    colors = palette(mode)
    return colors.output, colors.positive


def ladder(
    sizes: Floats,
    writes: Floats,
    cosines: Floats,
    turns: Floats,
    label: str,
    block: int,
    mode: Mode,
    unchanged: tuple[Floats, Floats, Floats] | None = None,
) -> Figure:
    """One token's way: at each write the stream's size and the write's beside it; below, their cosine.

    sizes (S + 1,), the others (S,). `block` is shaded. Curves: 0 the stream, 1 and 2 the writes of attention
    and feed-forward, 3 and 4 their cosines; x counts the writes from 0, and S is the end. `unchanged`, the
    sizes, writes and cosines of the model without its changes, are the ghosts 5 to 7.
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
        "showlegend": False,
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
                "showlegend": False,
                "marker": {"color": color, "line": {"width": 0}},
                "customdata": known,
                "hovertemplate": says,
            }
            traces.append(bar if row == 0 else bar | {"xaxis": "x2", "yaxis": "y2"})
    if unchanged is not None:
        traces += _ladder_ghosts(*unchanged, where, mode)
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
        # over the legend of the ghosts: a phone has no room for them side by side
        "annotations": [heading(words, 0, 1, yshift=0 if unchanged is None else LINE)],
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
    if unchanged is None:
        return figure(traces, layout, mode, height=350)
    return figure(traces, layout | GHOSTED, mode, height=350 + LINE, t=MARGIN["t"] + LINE)


def _ladder_ghosts(
    sizes: Floats, writes: Floats, cosines: Floats, where: Sequence[str], mode: Mode
) -> list[dict[str, Any]]:
    """The same bars of the unchanged model, as outlines on the same places."""
    steps = np.arange(len(sizes))
    streams = [
        f"{place} the stream has size {significant(size)} {UNCHANGED}"
        for place, size in zip(where, sizes, strict=True)
    ]
    said = [
        f"{PARTS[s % 2]} of block {s // 2} writes a row of size {significant(size)}, cosine "
        f"{fixed(cosine, 2)}, {UNCHANGED}"
        for s, (size, cosine) in enumerate(zip(writes, cosines, strict=True))
    ]
    below = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    return [
        ghost_bars(steps - 0.2, sizes, mode, streams, width=0.36),
        ghost_bars(steps[:-1] + 0.2, writes, mode, said, width=0.36, showlegend=False),
        ghost_bars(steps[:-1], cosines, mode, said, width=0.5, **below),
    ]


def end_shares(
    shares: Floats, names: Sequence[str], block: int, mode: Mode, unchanged: Floats | None = None
) -> Figure:
    """What the embedding and each write gave of the stream at the end, (S + 1,): a bar each, in percent.

    `unchanged`, the same of the model without its changes, are ghosts.
    """
    colors, count = palette(mode), len(shares)
    parts = _colors(mode)
    fills = [colors.quiet, *(parts[s % 2] for s in range(count - 1))]
    bars = {
        "type": "bar",
        "x": np.arange(count),
        "y": 100 * shares,
        "marker": {"color": fills, "line": {"width": 0}},
        "showlegend": False,
        "customdata": list(names),
        "hovertemplate": "%{customdata}: %{y:.3r} % of the stream at the end<extra></extra>",
    }
    traces = [bars]
    if unchanged is not None:
        said = [
            f"{name}: {significant(100 * share)} % of the stream at the end {UNCHANGED}"
            for name, share in zip(names, unchanged, strict=True)
        ]
        traces.append(ghost_bars(np.arange(count), 100 * unchanged, mode, said))
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
    } | ({} if unchanged is None else GHOSTED)
    return figure(traces, layout, mode, height=230)
