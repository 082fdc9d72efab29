"""Beam search as the tree it is: a column a token, the beams that were kept, and those that were dropped."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from gptviz.digits import fixed
from gptviz.engine.beams import Beam, Round, ways
from gptviz.figures.figure import Figure
from gptviz.figures.marks import UNCHANGED, line
from gptviz.figures.theme import Mode, figure, palette

ROW, TALL_ROW = 34, 44  # pixels of a beam; of one whose end has two lines


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
    kept, dropped = len(rounds[-1].kept), max(len(found.dropped) for found in rounds)
    lines = []
    for number, found in enumerate(rounds):
        for place, beam in enumerate([*found.kept, *found.dropped]):
            on_the_way = place == best[number]
            x, y = [number, number + 1], [beam.parent if number else 0, place]
            stroke = line(colors.accent, 4) if on_the_way else line(colors.quiet, 1.5)
            if place >= len(found.kept):
                stroke = line(colors.grid, 1.2)
            lines.append(
                {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": stroke, "hoverinfo": "skip"}
            )
    marks, notes = [], []
    for alive in (False, True):
        beams = [
            (number + 1, place, beam, alive and place == best[number])
            for number, found in enumerate(rounds)
            for place, beam in enumerate([*found.kept, *found.dropped])
            if (place < len(found.kept)) == alive
        ]
        tints = [colors.accent if way else colors.output if alive else colors.quiet for *_, way in beams]
        marks.append(
            {
                "type": "scatter",
                "x": [number for number, _, _, _ in beams],
                "y": [place for _, place, _, _ in beams],
                "mode": "markers",
                "marker": {"size": 10 if alive else 6, "color": tints},
                "customdata": [_sentence(beam, name, alive, unchanged) for _, _, beam, _ in beams],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
        for number, place, beam, way in beams:  # on paper of their own: lines go behind them
            font = {"size": 15 if alive else 12, "color": colors.ink if alive else colors.quiet}
            note: dict[str, Any] = {
                "x": number,
                "y": place,
                "text": escape(_last(beam, name)),
                "align": "left",
                "xanchor": "left",
                "xshift": 7,
            }
            notes.append(note | {"font": font | ({"color": colors.accent} if way else {}), "borderpad": 0})
            notes[-1] |= {"bgcolor": colors.paper, "opacity": 0.9}
            if unchanged is not None and alive and number == len(rounds):
                both = f"{fixed(unchanged[beam.ids], 2)} → {fixed(beam.log_probability, 2)}"
                notes[-1]["text"] += f"<br><span style='font-size:11px;color:{colors.quiet}'>{both}</span>"
    start = {"type": "scatter", "x": [0], "y": [0], "mode": "markers", "hoverinfo": "skip"}
    layout = {
        "annotations": notes,
        "xaxis": {
            "title": {"text": "token"},
            "range": [-0.15, len(rounds) + 0.9],
            "tickvals": list(range(1, len(rounds) + 1)),
            "showgrid": False,
        },
        "yaxis": {
            "range": [kept + dropped - 0.4, -0.6],
            "tickvals": list(range(kept)),
            "ticktext": [f"beam {number + 1}" for number in range(kept)],
            "showgrid": False,
        },
    }
    marker = {"marker": {"size": 9, "color": colors.accent}}
    traces: list[dict[str, Any]] = [*lines, start | marker, *marks]
    if unchanged is None:
        return figure(traces, layout, mode, height=70 + ROW * (kept + dropped))
    return figure(traces, layout, mode, height=70 + TALL_ROW * (kept + dropped), r=60)


def _last(beam: Beam, name: Callable[[int], str]) -> str:
    return f"{name(beam.ids[-1])} ■" if beam.ended else name(beam.ids[-1])


def _sentence(
    beam: Beam, name: Callable[[int], str], kept: bool, unchanged: Mapping[tuple[int, ...], float] | None
) -> str:
    text = "".join(name(token) for token in beam.ids)
    what = "kept" if kept else "dropped"
    old = "" if unchanged is None else f", {fixed(unchanged[beam.ids], 2)} in the {UNCHANGED} model"
    return escape(f"`{text}` was {what}: ln p {fixed(beam.log_probability, 2)} in all{old}")
