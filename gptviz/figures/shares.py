"""A difference of logits as a sum: a waterfall of the largest shares, a grid of all, what each token gave.

What raises it is orange, what lowers it blue, as everywhere. Shapes: L blocks, H heads, T tokens.
"""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gptviz.digits import fixed, significant
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import GHOSTED, UNCHANGED, ghost_bars
from gptviz.figures.heatmaps import BAR, Floats, share_axis, signed_axis
from gptviz.figures.marks import frame, line, upright
from gptviz.figures.theme import Mode, figure, palette
from gptviz.figures.token_axis import READABLE, token_ticks

ROW = 25  # pixels of a bar, or of a row of a grid
WRITTEN_COLUMNS = 12  # of a grid: above it its cells have no room for numbers


def waterfall(
    steps: pd.DataFrame,
    total: float,
    opened: tuple[int, int] | None,
    mode: Mode,
    unchanged: Floats | None = None,
) -> Figure:
    """`analysis.shares.waterfall` as bars, each from where the one before it ended, and their sum.

    The bar of the `opened` (block, head) has an edge in the accent's colour. A point's customdata is
    [what a hover says, block, head], -1 for none. `unchanged`, (n,), are the same parts' shares in the model
    without its changes: ghosts, each from where its bar starts.
    """
    colors, n = palette(mode), len(steps)
    values, starts = steps["contribution"].to_numpy(float), steps["start"].to_numpy(float)
    blocks, heads = (steps[name].fillna(-1).to_numpy(int) for name in ("block", "head"))
    says = [
        f"{label}: {'raises' if value >= 0 else 'lowers'} it by {significant(abs(value))}, to {fixed(end, 2)}"
        for label, value, end in zip(steps["label"], values, steps["end"], strict=True)
    ]
    is_open = [(b, h) == opened for b, h in zip(blocks, heads, strict=True)]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "y": np.arange(n + 1),
        "x": np.append(values, total),
        "base": [*starts.tolist(), 0.0],
        "text": [*(fixed(value, 2) for value in values), f"<b>{fixed(total, 4)}</b>"],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 13},
        "customdata": [
            *([said, int(b), int(h)] for said, b, h in zip(says, blocks, heads, strict=True)),
            [f"all parts together: {fixed(total, 4)}", -1, -1],
        ],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
        "showlegend": False,
        "unselected": {"marker": {"opacity": 1}},  # a click opens a head: it is no selection
        "marker": {
            "color": [*(colors.positive if v >= 0 else colors.negative for v in values), colors.output],
            "line": {"color": colors.accent, "width": [*(3 if one else 0 for one in is_open), 0]},
        },
    }
    ends = np.append(starts, [0.0, total])
    bars_and_ghosts = [bars]
    if unchanged is not None:
        old = np.append(unchanged, unchanged.sum())
        bars_and_ghosts.append(_waterfall_ghosts(old, np.append(starts, 0.0), bars["customdata"], mode))
        ends = np.append(ends, np.append(starts, 0.0) + old)
    low, high = float(min(ends.min(), 0)), float(ends.max())
    room = 0.12 * ((high - low) or 1.0)  # for the numbers at the bars' ends; to the left are the names
    joints = [
        {"type": "line", "x0": end, "x1": end, "y0": i + 0.3, "y1": i + 0.7, "line": line(colors.quiet, 1)}
        for i, end in enumerate(steps["end"])
    ]
    names = [html.escape(label, quote=False) for label in steps["label"]]
    layout = {
        "shapes": [*joints, upright(0, line(colors.quiet, 1))],
        "xaxis": {"range": [low - (3 * room if low < 0 else 0), high + room], "fixedrange": True},
        "yaxis": {
            "range": [n + 0.6, -0.6],
            "tickvals": np.arange(n + 1),
            "ticktext": [*names, "<b>sum</b>"],
            "fixedrange": True,
            "showgrid": False,
            "ticks": "",
        },
        "bargap": 0.25,
        "hovermode": "closest",
    }
    if unchanged is None:
        return figure(bars_and_ghosts, layout, mode, height=ROW * (n + 1) + 36, t=4, r=20)
    return figure(bars_and_ghosts, layout | GHOSTED, mode, height=ROW * (n + 1) + 60, t=28, r=20)


def _waterfall_ghosts(values: Floats, starts: Floats, known: list[Any], mode: Mode) -> dict[str, Any]:
    said = [
        f"{said.split(': ')[0]}: {fixed(float(value), 2)} {UNCHANGED}"
        for (said, _, _), value in zip(known, values, strict=True)
    ]
    still = {"customdata": known, "unselected": {"marker": {"opacity": 1}}}
    return ghost_bars(values, np.arange(len(values)), mode, said, base=starts, orientation="h", **still)


def share_grid(
    values: Floats,
    columns: Sequence[str],
    opened: tuple[int, int] | None,
    what: str,
    mode: Mode,
    signed: bool = True,
    unchanged: Floats | None = None,
) -> Figure:
    """All parts of the blocks, (L, C): a row a block, the first on top; the `opened` cell is framed.

    `what` ends a hover's sentence: "its share of the logit". Not `signed` are values that are never below 0.
    `unchanged`, (L, C), the same of the model without its changes, stand in the hover, too.
    """
    rows, count = values.shape
    limit = float(np.abs(values).max()) or 1.0
    names = [_SHORT.get(name, name.removeprefix("head ")) for name in columns]
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "customdata": [[f"block {b} · {name}" for name in columns] for b in range(rows)],
        "hovertemplate": f"%{{customdata}}: {what} %{{z:.3f}}<extra></extra>",
        "coloraxis": "coloraxis",
        "xgap": 1,
        "ygap": 1,
    }
    if unchanged is not None:
        cells["hovertext"] = [[f"{fixed(value, 3)} {UNCHANGED}" for value in row] for row in unchanged]
        cells["hovertemplate"] = f"%{{customdata}}: {what} %{{z:.3f}}, %{{hovertext}}<extra></extra>"
    if count <= WRITTEN_COLUMNS:
        written = [[fixed(value, 2) for value in row] for row in values]
        cells |= {"text": written, "texttemplate": "%{text}", "textfont": {"size": 11}}
    colors = palette(mode)
    plain = {"showgrid": False, "fixedrange": True, "ticks": "", "tickmode": "array"}
    layout = {
        "coloraxis": (signed_axis if signed else share_axis)(limit, mode, 0.97),
        "xaxis": plain
        | {"side": "top", "tickvals": np.arange(count), "ticktext": names, "range": [-0.5, count - 0.5]},
        "yaxis": plain
        | {
            "tickvals": np.arange(rows),
            "ticktext": [f"block {b} " for b in range(rows)],
            "range": [rows - 0.5, -0.5],
        },
        "shapes": [] if opened is None else [_frame(opened, line(colors.accent, 2.5))],
    }
    return figure([cells], layout, mode, height=BAR + 34 + rows * (30 if rows <= 8 else ROW), t=BAR + 26, r=4)


_SHORT = {"attention bias": "bias", "attention": "att", "feed-forward": "ff"}


def _frame(opened: tuple[int, int], stroke: dict[str, Any]) -> dict[str, Any]:
    block, head = opened
    return frame((head - 0.5, head + 0.5), (block - 0.5, block + 0.5), stroke)


def source_map(
    sources: Floats,
    labels: Sequence[str],
    block: int,
    head: int,
    position: int,
    mode: Mode,
    unchanged: Floats | None = None,
    gives: str = "gives",
) -> Figure:
    """What each token gave through each head of a block, (H, T): below the heads, above them their sum.

    `unchanged`, the same of the model without its changes, gives the sums their ghosts; `gives` is a hover's
    verb.

    Tokens after `position` are hidden from it by the causal mask, and are left out. NaN, of a head whose
    output an edit replaced, stays empty.
    """
    colors, n = palette(mode), position + 1
    seen = sources[:, :n]
    heads, together = len(seen), np.nansum(seen, axis=0)
    limit = float(np.nanmax(np.abs(seen), initial=0.0)) or 1.0
    shown = [html.escape(label, quote=False) for label in labels[:n]]
    names = [f"`{label}` (position {i})" for i, label in enumerate(shown)]
    x = np.arange(n)
    sums = {
        "type": "bar",
        "x": x,
        "y": together,
        "customdata": names,
        "hovertemplate": f"%{{customdata}} {gives} %{{y:.3f}} through all heads<extra></extra>",
        "showlegend": False,
        "marker": {"color": [colors.positive if value >= 0 else colors.negative for value in together]},
        "yaxis": "y2",
    }
    cells = {
        "type": "heatmap",
        "z": seen.astype(np.float32),
        "x": x,
        "customdata": [names] * heads,
        "hovertemplate": f"%{{customdata}} {gives} %{{z:.3f}} through head %{{y}}<extra></extra>",
        "coloraxis": "coloraxis",
        "xgap": 1 if n <= READABLE else 0,
        "ygap": 1,
    }
    totals = np.nansum(seen, axis=1)
    below, above = heads * ROW, 110
    share = below / (below + above + 20)
    plain = {"fixedrange": True, "ticks": "", "showgrid": False}
    layout = {
        "coloraxis": signed_axis(limit, mode, 0.97),
        "bargap": 0.15,
        "xaxis": plain | {"range": [-0.5, n - 0.5], "anchor": "y"} | token_ticks(shown),
        "yaxis": plain
        | {
            "domain": [0, share],
            "range": [heads - 0.5, -0.5],
            "tickvals": np.arange(heads),
            "ticktext": [f"head {h}   {fixed(total, 2)}" for h, total in enumerate(totals)],
        },
        "yaxis2": {
            "domain": [1 - above / (below + above + 20), 1],
            "anchor": "x",
            "fixedrange": True,
            "title": {"text": "together"},
        },
        "shapes": [frame((-0.5, n - 0.5), (head - 0.5, head + 0.5), line(colors.accent, 2.5))],
    }
    traces = [cells, sums]
    if unchanged is not None:
        old = np.nansum(unchanged[:, :n], axis=0)
        said = [
            f"`{label}` (position {i}) gives {fixed(float(value), 3)} through all heads {UNCHANGED}"
            for i, (label, value) in enumerate(zip(labels[:n], old, strict=True))
        ]
        traces.append(ghost_bars(x, old, mode, said, yaxis="y2"))
        layout |= {"barmode": "overlay"}
    return figure(traces, layout, mode, height=below + above + 20 + BAR + 70, t=BAR + 6)


def direct_and_total(found: pd.DataFrame, opened: tuple[int, int], mode: Mode, named: int = 5) -> Figure:
    """Each head as a point: what it wrote for the word itself, and what muting it takes away.

    `found` is `analysis.shares.direct_and_total`. On the dotted line both are the same; the `named` heads
    that are farthest from it have their names. The opened head is ringed.
    """
    colors = palette(mode)
    heads = found[found["kind"] == "head"]
    x, y = heads["direct"].to_numpy(float), heads["total"].to_numpy(float)
    ringed = (heads["block"] == opened[0]) & (heads["head"] == opened[1])
    order = np.argsort(-np.abs(y - x), kind="stable")[:named]
    far = {int(i) for i in order if abs(y[i] - x[i]) > 0.02 * max(1e-9, float(np.abs(y).max()))}
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": x,
        "y": y,
        "text": [
            f"{b}·{h}" if i in far else ""
            for i, (b, h) in enumerate(zip(heads["block"], heads["head"], strict=True))
        ],
        "textposition": "middle right",
        "customdata": heads["label"].tolist(),
        "hovertemplate": "%{customdata} wrote %{x:.3f}; muting it takes %{y:.3f} away<extra></extra>",
        "cliponaxis": False,
        "marker": {
            "size": 10,
            "color": colors.output,
            "opacity": 0.75,
            "line": {"color": colors.ink, "width": [3 if one else 0 for one in ringed]},
        },
    }
    low = float(min(x.min(), y.min(), 0))
    high = float(max(x.max(), y.max(), 0.0))
    pad = 0.08 * ((high - low) or 1.0)
    ends = [low - pad, high + pad]
    same = {"type": "line", "x0": ends[0], "y0": ends[0], "x1": ends[1], "y1": ends[1]}
    wide = [float(min(x.min(), 0)) - pad / 2, float(max(x.max(), 0)) + pad]
    layout = {
        "shapes": [same | {"line": line(colors.quiet, 1, "dot"), "layer": "below"}],
        "xaxis": {"title": {"text": "direct share"}, "range": wide, "fixedrange": True},
        "yaxis": {"title": {"text": "what muting takes away"}, "range": ends, "fixedrange": True},
        "hovermode": "closest",
    }
    return figure([points], layout, mode, height=380, r=40)
