"""The loss of every position as a bar, with the mean and with what a uniform guess would cost."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.digits import fixed
from gptviz.figures.figure import Figure
from gptviz.figures.ghosts import CHANGED, GHOSTED, ghost_bars, ghost_stroke
from gptviz.figures.heatmaps import Floats
from gptviz.figures.marks import across, line
from gptviz.figures.next_token import loss_text, surprise_color
from gptviz.figures.theme import Mode, figure, palette

LABELLED = 40  # positions along a page; above it their numbers are written
FEWEST = 8  # places on the axis: one bar alone would be a wall


def loss_bars(
    losses: Floats,
    targets: Sequence[str],
    says: Sequence[str],
    mean: float,
    uniform: float,
    vocabulary: int,
    selected: int | None,
    mode: Mode,
    unchanged: tuple[Floats, Sequence[str]] | None = None,
) -> Figure:
    """A bar for each of n positions, (n,) losses in nats, over its target, with its sentence.

    The dashed line is `uniform`, ln of the `vocabulary`; the full one the `mean`. `selected` is outlined.
    `unchanged` are the losses of the model without edits, and their sentences: ghosts, with their mean.
    """
    colors = palette(mode)
    chosen = np.arange(len(losses)) == selected
    bars: dict[str, Any] = {
        "type": "bar",
        "x": np.arange(len(losses)),
        "y": losses,
        "marker": {
            "color": [surprise_color(float(loss), uniform, mode) for loss in losses],
            "line": {
                "color": np.where(chosen, colors.accent, colors.quiet),
                "width": np.where(chosen, 3, 0.5),
            },
        },
        "hovertext": [html.escape(sentence) for sentence in says],
        "hoverinfo": "text",
    }
    ghosts = unchanged[0] if unchanged else losses
    top = 1.12 * max(uniform, float(losses.max()), float(ghosts.max()))
    room = {"range": [-0.6, max(len(losses), FEWEST) - 0.4], "showgrid": False}
    few = len(losses) <= LABELLED
    ticks = {
        "tickvals": np.arange(len(losses)),
        "ticktext": [html.escape(target, quote=False) for target in targets],
        "tickangle": -60 if len(losses) > 8 else 0,
    }
    title = "the target: the token that came next" if few else "position"
    layout: dict[str, Any] = {
        "bargap": 0.15,
        "xaxis": room | {"title": {"text": title}} | (ticks if few else {}),
        "yaxis": {"title": {"text": "loss, in nats"}, "range": [0, top], "nticks": 6},
        "shapes": [across(uniform, line(colors.quiet, 2, "dash")), across(mean, line(colors.accent, 2.5))],
        "annotations": [
            _note(
                uniform,
                f"a uniform guess: ln {vocabulary:,} = {fixed(uniform, 2)}",
                colors.quiet,
                colors.paper,
            ),
            _note(mean, f"the mean, the cross-entropy: {loss_text(mean)[0]}", colors.accent, colors.paper),
        ],
    }
    if unchanged is None:
        return figure([bars], layout, mode, height=330)
    was = float(ghosts.mean())
    at = {"x": 0, "xanchor": "left", "yanchor": "top" if was < mean else "bottom"}
    said = _note(was, f"unchanged mean: {loss_text(was)[0]}", colors.quiet, colors.paper) | at
    layout["shapes"] = [*layout["shapes"], across(was, ghost_stroke(mode, 2.5))]
    layout["annotations"] = [*layout["annotations"], said]
    traces = [bars | {"name": CHANGED}, ghost_bars(bars["x"], ghosts, mode, unchanged[1])]
    return figure(traces, GHOSTED | layout, mode, height=350)


def _note(y: float, words: str, color: str, paper: str) -> dict[str, object]:
    """Words on a line, at the right end of the picture."""
    at = {"x": 1, "xref": "paper", "xanchor": "right", "y": y, "yanchor": "bottom"}
    return at | {"text": words, "font": {"color": color, "size": 14}, "bgcolor": paper, "opacity": 0.9}
