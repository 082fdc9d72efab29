"""Beam search as the tree it is: a column a token, the beams that were kept, and those that were dropped."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptviz.digits import fixed
from gptviz.engine.beams import Beam, Round, ways
from gptviz.figures.marks import UNCHANGED, dots, line, note, safe, stroke
from gptviz.figures.theme import Figure, Mode, figure, palette

ROW = 34  # pixels of a beam
TALL_ROW = 44  # of one whose end has two lines


def beam_tree(
    rounds: Sequence[Round],
    name: Callable[[int], str],
    mode: Mode,
    unchanged: Mapping[tuple[int, ...], float] | None = None,
) -> Figure:
    """The kept beams of each round from the best down, below them those that were dropped, smaller.

    A line goes from a beam to the one that it went on from; the way to the best of the last round is thick.
    `unchanged` is ln p of each beam's ids in the model without its changes: a hover says it, and the ends
    have both.
    """
    colors = palette(mode)
    best = ways(rounds)[0]
    kept_count = len(rounds[-1].kept)
    dropped_count = max(len(round_.dropped) for round_ in rounds)
    traces: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    notes = []
    for number, round_ in enumerate(rounds):
        for place, beam in enumerate([*round_.kept, *round_.dropped]):
            alive = place < len(round_.kept)
            if place == best[number]:
                kind = line(colors.accent, 4)
                tint = colors.accent
                ink = colors.accent
            elif alive:
                kind = line(colors.quiet, 1.5)
                tint = colors.probability
                ink = colors.quiet
            else:
                kind = line(colors.grid, 1.2)
                tint = colors.quiet
                ink = colors.quiet
            traces.append(stroke([number, number + 1], [beam.parent if number else 0, place], kind))
            mark = {"x": number + 1, "y": place, "size": 10 if alive else 6, "color": tint}
            marks.append(mark | {"says": _sentence(beam, name, alive, unchanged)})
            text = safe(name(beam.ids[-1]))
            if beam.ended:
                text += " ■"
            if unchanged is not None and alive and number + 1 == len(rounds):
                change = f"{fixed(unchanged[beam.ids], 2)} → {fixed(beam.log_probability, 2)}"
                text += f"<br><span style='font-size:11px;color:{colors.quiet}'>{change}</span>"
            # lines go behind them
            ground = {"bgcolor": colors.paper, "opacity": 0.9, "borderpad": 0}
            size = 15 if alive else 12
            notes.append(note(text, number + 1, place, ink, size, align="left", xshift=7, **ground))
    start = {"x": 0, "y": 0, "size": 9, "color": colors.accent, "says": "the text"}
    beams = {key: [mark[key] for mark in (start, *marks)] for key in start}
    marker = {"size": beams["size"], "color": beams["color"]}
    hover = {"customdata": beams["says"], "hovertemplate": "%{customdata}<extra></extra>"}
    traces.append(dots(beams["x"], beams["y"], marker, **hover))
    plain = {"showgrid": False}
    last = len(rounds)
    layout = {
        "annotations": notes,
        "xaxis": plain
        | {
            "title": {"text": "token"},
            "range": [-0.15, last + 0.9],
            "tickvals": [*range(1, last + 1)],
        },
        "yaxis": plain
        | {"range": [kept_count + dropped_count - 0.4, -0.6], "tickvals": [*range(kept_count)]}
        | {"ticktext": [f"beam {number + 1}" for number in range(kept_count)]},
    }
    if unchanged is None:
        row = ROW
        margin = {}
    else:
        row = TALL_ROW
        margin = {"r": 60}
    return figure(traces, layout, mode, height=70 + row * (kept_count + dropped_count), **margin)


def _sentence(
    beam: Beam,
    name: Callable[[int], str],
    is_kept: bool,
    unchanged: Mapping[tuple[int, ...], float] | None,
) -> str:
    text = "".join(name(token) for token in beam.ids)
    verb = "kept" if is_kept else "dropped"
    if unchanged is None:
        old = ""
    else:
        old = f", {fixed(unchanged[beam.ids], 2)} in the {UNCHANGED} model"
    return safe(f"`{text}` was {verb}: ln p {fixed(beam.log_probability, 2)} in all{old}")
