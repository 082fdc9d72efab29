"""What every written token costs, with the cache and without it, as bars that grow along the text."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from gptviz.digits import significant
from gptviz.figures.figure import Figure
from gptviz.figures.marks import line, upright
from gptviz.figures.theme import Mode, figure, palette

FEWEST = 12  # places on the axis of steps: one step's bars alone would be a wall


def cost_bars(
    steps: Sequence[int],
    tokens: Sequence[str],
    without: NDArray[np.floating],
    cached: NDArray[np.floating] | None,
    unit: str,
    chosen: int,
    mode: Mode,
) -> Figure:
    """Two bars a step, in `unit`: grey without the cache, purple with it in front. (S,) each, NaN for no bar;
    `cached` is None where there is no cache.

    `steps` are the steps' numbers from 1; `chosen` is one of them, which a line marks.
    """
    colors = palette(mode)
    last, shown = max([*steps, FEWEST]), [escape(token, quote=False) for token in tokens]

    def bars(values: NDArray[np.floating], name: str, color: str, width: float) -> dict[str, object]:
        return {
            "type": "bar",
            "name": name,
            "x": np.array(steps, dtype=np.int32),
            "y": values.astype(np.float64),
            "width": width,
            "marker": {"color": color, "line": {"width": 0}},
            "hovertext": [
                ""
                if np.isnan(value)
                else f"step {step}, {token}<br>{name}: {significant(float(value))} {unit}"
                for step, token, value in zip(steps, shown, values, strict=True)
            ],
            "hoverinfo": "text",
        }

    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": "token written"}, "showgrid": False, "range": [0.3, last + 0.7]},
        "yaxis": {"title": {"text": unit}, "nticks": 5, "rangemode": "tozero"},
        "shapes": [upright(chosen, line(colors.key, 2, "dot"))],
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
    }
    traces = [bars(without, "without the cache", colors.quiet, 0.85)]
    if cached is not None:
        traces.append(bars(cached, "with the cache", colors.output, 0.5))
    return figure(traces, layout, mode, height=270)
