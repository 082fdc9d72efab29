"""A training as curves: its losses beside the lines that mean something, its heads' scores below them.

Shapes: n points, L blocks, H heads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptviz.digits import fixed, significant
from gptviz.figures import marks
from gptviz.figures.marks import Floats
from gptviz.figures.theme import Figure, Mode, Palette, figure, palette
from gptviz.training.live.seen import Curves

BEYOND = 1.6  # times the blind guess: a loss above that leaves the picture


@dataclass(frozen=True)
class Level:
    """A loss to compare with: that of a blind guess, of a bigram, or the least that any model can reach."""

    name: str
    nats: float


def training_curves(
    runs: Sequence[Curves], levels: Sequence[Level], step: int, last: int, mode: Mode
) -> Figure:
    """Losses above, scores below, over the same steps up to `last`; `step` is marked in both.

    The first run has solid lines, and each of its heads a thin one; a second run has dashed lines.
    """
    colors = palette(mode)
    below = marks.on(2)
    traces: list[dict[str, Any]] = []
    for number, run in enumerate(runs):
        dash = "dash" if number else None
        name = marks.safe(run.name)
        hidden = {"showlegend": number == 0}
        # one line for all of it
        dashed = {"showlegend": True, "name": f"dashed: {name}"} if number else {}
        for what, losses, color, width in (
            ("training", run.train, colors.quiet, 1.5),
            ("validation", run.validation, colors.accent, 3.0),
        ):
            hover = {"hovertemplate": f"{name}, step %{{x}}: {what} loss %{{y:.3f}}<extra></extra>"}
            shown = hidden | (dashed if what == "validation" else {})
            traces.append(_curve(run, what, losses, marks.line(color, width, dash)) | shown | hover)
        for role, what, scores in (
            ("previous", "previous-token", run.previous),
            ("induction", "induction", run.induction),
        ):
            color = marks.role_colors(mode)[role]
            heads = scores.shape[2]
            flat = scores.reshape(len(scores), -1)  # (n, L, H) -> (n, L*H)
            thin = {"mode": "lines", "opacity": 0.35, "showlegend": False, "hoverinfo": "skip"}
            for i in range(flat.shape[1] if number == 0 else 0):
                traces.append(_curve(run, "", flat[:, i], marks.line(color, 1)) | below | thin)
            if flat.size:
                best = flat.argmax(axis=1)
            else:
                best = np.zeros(0, dtype=int)
            hovers = [
                f"{name}, step {at_step}: {what} {fixed(float(row[i]), 2)}, "
                f"block {i // heads}, head {i % heads}"
                for at_step, row, i in zip(run.steps, flat, best, strict=True)
            ]
            largest = flat.max(axis=1, initial=0.0)
            strong = _curve(run, f"best {what} head", largest, marks.line(color, 3, dash))
            traces.append(strong | below | hidden | marks.says(hovers))
    axis = {"range": [-0.01 * last, 1.01 * last]}
    loss = {"title": {"text": "loss, nats per token"}, "domain": [0.46, 1]}
    score = {"title": {"text": "score of a head"}, "domain": [0, 0.4]}
    mark = marks.line(colors.accent, 2, "dot")
    layout = {
        "showlegend": True,
        "legend": marks.legend(0, 1.01, **marks.STILL),
        "xaxis": axis | {"anchor": "y", "showticklabels": False},
        "xaxis2": axis | {"anchor": "y2", "matches": "x", "title": {"text": "steps of training"}},
        "yaxis": loss | {"range": list(_range(runs, levels))},
        "yaxis2": score | {"range": [-0.03, 1.05], "anchor": "x2"},
        "shapes": [
            *(marks.across(level.nats, marks.line(colors.quiet, 1.5, "dash")) for level in levels),
            marks.upright(step, mark, ("x", "y")),
            marks.upright(step, mark, ("x2", "y2")),
        ],
        "annotations": [_named(level, i, levels, colors) for i, level in enumerate(levels)],
    }
    return figure(traces, layout, mode, height=470, t=44)


def _curve(run: Curves, name: str, values: Floats, stroke: dict[str, Any]) -> dict[str, Any]:
    numbers: Any = [
        v if math.isfinite(v) else None for v in np.asarray(values, dtype=np.float64).tolist()
    ]
    marker = {"size": 4 if stroke["width"] < 3 else 6}
    return marks.dots(
        run.steps.astype(np.int32), numbers, marker, mode="lines+markers", name=name, line=stroke
    )


def _range(runs: Sequence[Curves], levels: Sequence[Level]) -> tuple[float, float]:
    """The range of losses that is shown: all, but for what is far above a blind guess."""
    blind = max(level.nats for level in levels)
    # the losses of all points of all runs, in one row
    seen = np.concatenate([np.concatenate([run.train, run.validation]) for run in runs])
    seen = seen[np.isfinite(seen)]
    high = min(float(seen.max(initial=blind)), BEYOND * blind)
    low = min([float(seen.min(initial=blind)), *(level.nats for level in levels)])
    room = 0.12 * (high - low) or 0.1
    return max(0.0, low - room), high + room


def _named(level: Level, place: int, levels: Sequence[Level], colors: Palette) -> dict[str, Any]:
    """At the line's right end: above it, but the lowest, and the lower of two that nearly are one, below."""
    is_below = any(
        0 < (other.nats - level.nats) < 0.3 or (other.nats == level.nats and i < place)
        for i, other in enumerate(levels)
    )
    is_below = is_below or level.nats == min(other.nats for other in levels)
    text = f"{marks.safe(level.name)}: {significant(level.nats, 3)}"
    placed = {"xref": "paper", "xanchor": "right", "yanchor": "top" if is_below else "bottom"}
    return marks.note(text, 0.985, level.nats, colors.quiet, 13, **placed)
