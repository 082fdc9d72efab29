"""Beam search drawn: a point a beam where it stands, a line to where it came from, the best way marked."""

import pytest

from gptviz.engine.beams import beam_search
from gptviz.figures.beams import beam_tree
from gptviz.figures.theme import palette


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_points_and_lines_are_the_beams(lm, mode):
    rounds = beam_search(lm, [5, 300, 77], 3, 4)
    drawn = beam_tree(rounds, str, mode)
    (points,) = [trace for trace in drawn.data if trace.mode == "markers"]
    says = {(x, y): text for x, y, text in zip(points.x, points.y, points.customdata, strict=True)}
    assert len(says) == 1 + 24  # the text, the beams that were kept and those that were dropped
    for number, found in enumerate(rounds, 1):
        for place, beam in enumerate([*found.kept, *found.dropped]):
            assert "".join(map(str, beam.ids)) in says[number, place]
            assert ("was kept" in says[number, place]) == (beam in found.kept)
    assert drawn.layout.yaxis.ticktext == ("beam 1", "beam 2", "beam 3")
    lines = [(tuple(trace.x), tuple(trace.y)) for trace in drawn.data if trace.mode == "lines"]
    last = rounds[-1].kept[2]
    assert ((3, 4), (last.parent, 2)) in lines and len(lines) == 24
    thick = [
        trace
        for trace in drawn.data
        if trace.mode == "lines" and trace.line.color == palette(mode).accent
    ]
    assert len(thick) == 4 and thick[-1].y[1] == 0
    named = [
        note.text for note in drawn.layout.annotations if note.font.color == palette(mode).accent
    ]
    assert named == [str(token) for token in rounds[-1].kept[0].ids]
