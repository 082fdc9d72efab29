"""Bigrams as a heatmap, and losses over the steps of a training."""

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.figure import Figure
from gptviz.figures.heatmaps import Floats
from gptviz.figures.marks import across, line
from gptviz.figures.theme import Mode, figure, palette

DEEPEST = 0.5  # the probability that has the last colour: few pairs have more
LEGEND = {"x": 1, "xanchor": "right", "y": 1, "itemclick": False, "itemdoubleclick": False}


def pair_table(
    probabilities: Floats, counts: NDArray[np.integer] | None, labels: Sequence[str], mode: Mode
) -> Figure:
    """P(next | this), (K, K): a row per character that stands there, a column per next one.

    With `counts` (K, K) a hover says how often, too.
    """
    size, shown = len(labels), [html.escape(label, quote=False) for label in labels]
    places = [str(i) for i in range(size)]
    says = "after `%{y}` comes `%{x}`: %{z:.3f}"
    cells = {
        "type": "heatmap",
        "z": probabilities.astype(np.float32),
        "x": places,
        "y": places,
        "colorscale": palette(mode).attention,
        "zmin": 0,
        "zmax": DEEPEST,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": f"{says}<extra></extra>",
    }
    if counts is not None:
        cells |= {
            "customdata": counts.astype(np.int32),
            "hovertemplate": f"{says} (%{{customdata:,}} times)<extra></extra>",
        }
    axis = {"showgrid": False, "fixedrange": True, "ticks": "", "type": "category", "tickmode": "linear"} | {
        "labelalias": dict(zip(places, shown, strict=True)),
        "tickfont": {"size": 13 if size <= 34 else 10},
        "tickangle": 0,
    }
    layout = {
        "xaxis": axis | {"title": {"text": "the next character"}, "side": "top"},
        "yaxis": axis | {"title": {"text": "after this one"}, "range": [size - 0.5, -0.5]},
    }
    return figure([cells], layout, mode, height=90 + 14 * max(size, 12), t=8)


def two_losses(
    steps: Sequence[int], own: Sequence[float], other: Sequence[float], bigram: float, last: int, mode: Mode
) -> Figure:
    """Bits a byte while an MLP learns for `last` steps: of its own text, and of the held-out one."""
    colors = palette(mode)
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": np.array(steps, dtype=np.int32),
            "y": np.array(values, dtype=np.float32),
            "name": name,
            "line": line(color, 3),
            "marker": {"size": 7},
            "hovertemplate": f"after %{{x}} steps: %{{y:.3f}} bits a byte, {name}<extra></extra>",
        }
        for name, values, color in (
            ("the text it learns from", own, colors.accent),
            ("the held-out text", other, colors.positive),
        )
    ]
    layout = {
        "showlegend": True,
        "legend": LEGEND,
        "xaxis": {"title": {"text": "steps of training"}, "range": [-0.01 * last, last * 1.01]}
        | {"fixedrange": True},
        "yaxis": {"title": {"text": "bits a byte"}, "fixedrange": True},
        "shapes": [across(bigram, line(colors.value, 2, "dash"))],
        "annotations": [
            {"text": "the bigram, held out", "x": 1, "xref": "paper", "xanchor": "right", "y": bigram}
            | {"yanchor": "bottom", "font": {"color": colors.value}}
        ],
    }
    return figure(traces, layout, mode, height=330)
