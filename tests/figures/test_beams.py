"""Beam search drawn: a point a beam where it stands, a line to where it came from, the best way marked."""

import pytest

from gptviz.engine.beams import beam_search
from gptviz.figures.beams import beam_tree
from gptviz.figures.theme import palette


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_points_and_lines_are_the_beams(lm, mode):
    rounds = beam_search(lm, [5, 300, 77], 3, 4)
    drawn = beam_tree(rounds, str, mode)
    points = [trace for trace in drawn.data if trace.mode == "markers" and len(trace.x) > 1]
    assert [len(trace.x) for trace in points] == [12, 12]  # dropped ones, then kept ones
    kept = {(x, y): text for x, y, text in zip(points[1].x, points[1].y, points[1].customdata, strict=True)}
    for number, found in enumerate(rounds, 1):
        for place, beam in enumerate(found.kept):
            assert "".join(map(str, beam.ids)) in kept[number, place]
    lines = [(tuple(trace.x), tuple(trace.y)) for trace in drawn.data if trace.mode == "lines"]
    last = rounds[-1].kept[2]
    assert ((3, 4), (last.parent, 2)) in lines and len(lines) == 24
    thick = [
        trace for trace in drawn.data if trace.mode == "lines" and trace.line.color == palette(mode).accent
    ]
    assert len(thick) == 4 and thick[-1].y[1] == 0
    named = [note.text for note in drawn.layout.annotations if note.font.color == palette(mode).accent]
    assert named == [str(token) for token in rounds[-1].kept[0].ids]
