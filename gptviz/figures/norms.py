"""Inside one LayerNorm: the distribution of one token's values, stage by stage."""

from typing import Any

import numpy as np

from gptviz.analysis.norms import Steps, histogram
from gptviz.both import Both
from gptviz.digits import significant
from gptviz.figures.marks import (
    UNCHANGED,
    axis_names,
    band,
    dots,
    ghost_curve,
    heading,
    line,
    on,
    upright,
)
from gptviz.figures.theme import Figure, Mode, figure, palette

DRAWN = ("before", "normalised", "after")  # of the four stages: see analysis/norms.py


def norm_histograms(steps: Both[Steps], dimension: int, mode: Mode) -> Figure:
    """The D values of one token before, normalised and after, each on its own axis.

    A line stands at the mean, a band of one standard deviation about it, a mark below the dimension's value.
    The unchanged model's, where they are others, are outlined in the same bins.
    """
    colors = palette(mode)
    width = 0.3
    gap = 0.05
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"bargap": 0.06, "shapes": [], "annotations": []}
    tallest = 0
    for number, stage in enumerate(DRAWN, start=1):
        values = steps.map(lambda s, stage=stage: s.stage(stage))  # type: ignore[misc]
        x = values.now
        old = values.was if values.moved else None
        counts, edges = histogram(x, also=old)
        axes, (xaxis, yaxis) = axis_names(number)
        start = (number - 1) * (width + gap)
        mean = float(x.mean())
        deviation = float(x.std())
        between = "%{customdata[0]:.3f} and %{customdata[1]:.3f}<extra></extra>"
        fill = {"color": colors.accent if stage == "after" else colors.quiet, "line": {"width": 0}}
        bars = {"type": "bar", "x": (edges[:-1] + edges[1:]) / 2, "y": counts, "marker": fill}
        # the customdata is (bins, 2): each bin's two edges
        bars |= {
            "width": np.diff(edges) * 0.94,
            "customdata": np.stack([edges[:-1], edges[1:]], axis=-1),
        }
        bars |= {"hovertemplate": f"{stage}: %{{y}} dimensions lie between {between}"}
        opacity = 1 if old is None else 0.5  # so that the outline is seen where it lies on them
        traces.append(bars | {"opacity": opacity} | on(number))
        dot = _mark(float(x[dimension]), stage, dimension, colors.positive, "triangle-up")
        traces.append(dot | on(number))
        if old is not None:
            old_counts, _ = histogram(old, also=x)
            stroke = line(colors.ghost, 2) | {"shape": "hv"}
            # (bins + 2,) each: up from the axis, and down to it again
            ends = np.concatenate([edges[:1], edges])
            heights = np.concatenate([[0], old_counts, [0]])
            traces.append(ghost_curve(ends, heights, mode, line=stroke, **on(number)))
            old_stage = f"{stage}, {UNCHANGED}"
            dot = _mark(
                float(old[dimension]), old_stage, dimension, colors.ghost, "triangle-up-open"
            )
            traces.append(dot | on(number))
            tallest = max(tallest, int(old_counts.max()))
        tallest = max(tallest, int(counts.max()))
        layout["shapes"] += [
            band(mean - deviation, mean + deviation, colors.panel, axes),
            upright(mean, line(colors.ink, 1.5), axes),
        ]
        # a mean that is zero but for rounding is written as zero: 2 × 10⁻¹⁷ would read as a discovery
        if abs(mean) < 1e-9:
            mean_text = "0"
        else:
            mean_text = significant(mean)
        words = f"<b>{stage}</b><br>mean {mean_text}<br>variance {significant(deviation**2, 4)}"
        layout["annotations"].append(heading(words, start, 1))
        layout[xaxis] = {"domain": [start, start + width], "anchor": axes[1]}
        layout[yaxis] = {"anchor": axes[0], "showticklabels": number == 1}
        layout[yaxis] |= {"matches": "y"} if number > 1 else {}
    layout["yaxis"] |= {"title": {"text": "dimensions"}, "range": [0, tallest * 1.05]}
    return figure(traces, layout, mode, height=330, t=70)


def _mark(value: float, stage: str, dimension: int, color: str, symbol: str) -> dict[str, Any]:
    """A triangle on the axis, below the chosen dimension's value."""
    says = f"dimension {dimension}, {stage}: %{{x:.4f}}<extra></extra>"
    marker = {"symbol": symbol, "size": 13, "color": color}
    return dots([value], [0], marker, cliponaxis=False, hovertemplate=says)
