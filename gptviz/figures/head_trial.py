"""A head on trial: what muting it costs beside others, and its roles here and in general."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import fixed, significant, weight
from gptviz.figures.figure import Figure
from gptviz.figures.marks import heading, line, upright
from gptviz.figures.theme import Mode, figure, palette

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Cost:
    """One kind of passage and change: the loss as the model is, with the head changed so, and with each of
    `others`; nats a token. `how` says what is done: "without the head".
    """

    passage: str
    how: str
    whole: float
    without: float
    others: tuple[tuple[int, float], ...]  # head, loss


def costs(found: Sequence[Cost], block: int, head: int, mode: Mode) -> Figure:
    """A row a passage: how much the loss rises without the head (large), and without each other (grey).

    The numbers at the right are the two losses, before and without the head.
    """
    colors, n = palette(mode), len(found)
    grey = {"x": [], "y": [], "says": []}  # type: dict[str, list[Any]]
    for row, cost in enumerate(found):
        for other, loss in cost.others:
            grey["x"].append(loss - cost.whole)
            grey["y"].append(row)
            grey["says"].append(_cost_says(cost, block, other, loss))
    dots: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": "others of its block",
        "x": grey["x"],
        "y": grey["y"],
        "customdata": grey["says"],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
        "marker": {"size": 11, "color": colors.quiet, "opacity": 0.6},
    }
    own: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": f"head {head}",
        "x": [cost.without - cost.whole for cost in found],
        "y": np.arange(n),
        "customdata": [_cost_says(cost, block, head, cost.without) for cost in found],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
        "marker": {"size": 18, "color": colors.accent, "symbol": "diamond"},
    }
    reach = [0.0, *grey["x"], *own["x"]]
    room = 0.08 * ((max(reach) - min(reach)) or 1.0)
    said = [
        heading(
            f"<b>{escape(cost.passage, quote=False)}</b>: loss {fixed(cost.whole, 2)}, "
            f"{cost.how} {fixed(cost.without, 2)}",
            0,
            row - 0.24,
            yref="y",
        )
        for row, cost in enumerate(found)
    ]
    layout = {
        "xaxis": {
            "title": {"text": "how much the loss rises, in nats a token"},
            "range": [min(reach) - room, max(reach) + room],
            "fixedrange": True,
        },
        "yaxis": {"visible": False, "range": [n - 0.5, -0.65], "fixedrange": True},
        "annotations": said,
        "shapes": [upright(0, line(colors.quiet, 1))],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    return figure([dots, own], layout, mode, height=100 + 84 * n, t=34, r=16)


def _cost_says(cost: Cost, block: int, head: int, loss: float) -> str:
    rise = loss - cost.whole
    return (
        f"block {block}, head {head} on {escape(cost.passage, quote=False)}, {cost.how}:<br>"
        f"loss {significant(loss)}, {significant(abs(rise))} {'more' if rise >= 0 else 'less'}"
    )


@dataclass(frozen=True)
class Score:
    """A role: its score on this text (None where the text cannot show it), and in general (None: not yet).

    `unchanged`: on this text, by the model as it is, where `here` is of a changed one.
    """

    label: str
    here: float | None
    general: float | None
    color: str
    unchanged: float | None = None


def here_and_general(scores: Sequence[Score], mode: Mode) -> Figure:
    """A row a role: its score in general as a bar, on this text as a diamond; greyed where it cannot show."""
    colors, n = palette(mode), len(scores)
    general = [np.nan if s.general is None else s.general for s in scores]
    here = [np.nan if s.here is None else s.here for s in scores]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "name": "in general",
        "y": np.arange(n),
        "x": general,
        "marker": {"color": [s.color for s in scores], "opacity": 0.55},
        "customdata": [f"in general: {s.label}, {_score(s.general)}" for s in scores],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    dots: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": "on this text",
        "y": np.arange(n),
        "x": here,
        "cliponaxis": False,
        "marker": {"color": colors.ink, "size": 11, "symbol": "diamond"},
        "customdata": [f"on this text: {s.label}, {_score(s.here)}" for s in scores],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    ghosts: dict[str, Any] = dots | {
        "name": "unchanged",
        "x": [np.nan if s.unchanged is None else s.unchanged for s in scores],
        "marker": {"color": colors.quiet, "size": 11, "symbol": "diamond-open", "line": {"width": 2}},
        "customdata": [f"unchanged: {s.label}, {_score(s.unchanged)}" for s in scores],
    }
    drawn = [
        *([bars] if any(s.general is not None for s in scores) else []),
        *([ghosts] if any(s.unchanged is not None for s in scores) else []),
        dots,
    ]
    hidden = [
        heading("<i>this text cannot show it</i>", 1, row, yref="y", xanchor="right", yanchor="middle")
        | {"font": {"color": colors.quiet, "size": 12}, "bgcolor": colors.paper}
        for row, score in enumerate(scores)
        if score.here is None
    ]
    names = [
        f'<span style="color:{colors.quiet}">{escape(s.label, quote=False)}</span>'
        if s.here is None
        else escape(s.label, quote=False)
        for s in scores
    ]
    layout = {
        "xaxis": {"range": [0, 1.02], "fixedrange": True, "title": {"text": "share of the attention"}},
        "yaxis": {
            "range": [n - 0.4, -0.6],
            "tickvals": np.arange(n),
            "ticktext": [f"{name} " for name in names],
            "ticklabelstandoff": 8,  # a diamond at 0 is half outside
            "showgrid": False,
            "fixedrange": True,
            "ticks": "",
        },
        "annotations": hidden,
        "bargap": 0.3,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    return figure(drawn, layout, mode, height=34 * n + 96, t=34)


def _score(value: float | None) -> str:
    return "not known" if value is None else weight(value)
