"""Maps, curves and bars carry the numbers that they are given, of both runs."""

import numpy as np
import pytest

from gptviz.both import Both
from gptviz.figures.bars import bars
from gptviz.figures.curves import curves
from gptviz.figures.maps import Map, maps
from gptviz.figures.marks import CHANGED, DIFFERENCE, UNCHANGED, level_notes, signed_axis
from gptviz.figures.theme import PALETTES, palette

ROWS = ["one", "two", "three"]
LABELS = ["The", "·cat", "<b>", "·cat"]
RNG = np.random.default_rng(1)
NOW, WAS = np.exp(RNG.normal(size=(2, 3, 4), scale=2))


def drawn(scale, shown=CHANGED, cells=None):
    cells = Both(NOW, WAS) if cells is None else cells
    return maps([Map("size", cells, scale, "a size")], ROWS, LABELS, (1, 2), "light", shown)


@pytest.mark.parametrize("scale", ["signed", "log", "size", "share", "weight"])
def test_a_map_draws_what_is_shown_of_both_runs(scale):
    log = np.log10 if scale in ("log", "size") else np.asarray
    expected = {CHANGED: log(NOW), UNCHANGED: log(WAS), DIFFERENCE: log(NOW) - log(WAS)}
    for shown, values in expected.items():
        fig = drawn(scale, shown)
        assert np.allclose(fig.data[0].z, values, atol=1e-6), shown
        axis = fig.layout[fig.data[0].coloraxis]
        low = axis.colorbar.tickvals[0]
        high = axis.colorbar.tickvals[-1]
        assert (axis.cmin, axis.cmax) == (low, high) and low < high
        signed = shown == DIFFERENCE or scale in ("signed", "log")
        assert (axis.colorscale[0][1] == palette("light").paper) == (not signed)
        if signed:
            assert low == -high and high >= np.abs(values).max() - 1e-9
    assert drawn("log", DIFFERENCE).layout.coloraxis.colorbar.ticktext[1] == "as it was"


def test_every_cell_knows_its_sentence():
    fig = drawn("log", DIFFERENCE)
    (grid,) = fig.data
    assert np.allclose(grid.customdata[..., 1], WAS) and np.allclose(grid.customdata[..., 2], NOW)
    assert (grid.customdata[..., 0] == np.arange(4)).all()
    assert "position %{customdata[0]}):<br>a size %{customdata[1]" in grid.hovertemplate
    assert "unchanged, %{customdata[2]:.3r} changed" in grid.hovertemplate
    assert [fig.layout.xaxis.labelalias[x] for x in grid.x] == ["The", "·cat", "&lt;b&gt;", "·cat"]
    (frame,) = [shape for shape in fig.layout.shapes if shape.type == "rect"]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


def test_a_map_of_nothing_or_of_gaps_can_be_drawn_and_one_that_does_not_fit_cannot():
    for scale in ("signed", "log", "size", "share", "weight"):
        assert np.isfinite(drawn(scale, cells=Both(np.zeros((3, 4)))).data[0].z).all()
        gaps = np.where(np.arange(4) == 1, np.nan, NOW)
        assert np.isnan(drawn(scale, cells=Both(gaps)).data[0].z[:, 1]).all()
    for scale, top in (("weight", 1.0), ("share", 0.5)):  # a weight is a part of 1
        half = maps([Map("w", Both(np.eye(4) / 2), scale)], LABELS, LABELS, None, "light").layout
        assert half.coloraxis.cmax == top
    square = Map("w", Both(2 * np.eye(4)), "weight", written=True)
    assert maps([square], LABELS, LABELS, None, "light").data[1].text[:2] == ("2.00", "0.00")
    cut = maps(
        [Map("w", Both(2 * np.eye(4)), ends=(-1, 1))], LABELS, LABELS, None, "light"
    ).layout.coloraxis
    assert cut.colorbar.ticktext == ("−1.0", "0", "≥ 1.0")
    with pytest.raises(ValueError, match=r"3 rows and 2 tokens do not fit \(3, 4\)"):
        maps([Map("size", Both(NOW))], ROWS, LABELS[:2], None, "light")


def test_of_many_tokens_some_positions_are_written():
    cells = Both(np.ones((3, 300)))
    axis = maps([Map("size", cells)] * 2, ROWS, ["x"] * 300, None, "light").layout.xaxis2
    assert axis.ticktext[:2] == axis.tickvals[:2] == ("0", "32")


def test_a_map_of_many_rows_is_no_higher_than_a_screen_and_frames_a_column():
    fig = maps(
        [Map("x", Both(np.ones((768, 4))))],
        [str(i) for i in range(768)],
        LABELS,
        (None, 2),
        "light",
    )
    assert fig.layout.height < 800
    (shape,) = fig.layout.shapes
    assert (shape.x0, shape.x1, shape.y0, shape.y1) == (1.5, 2.5, -0.5, 767.5)


def test_maps_of_one_scale_share_it_to_the_largest_of_all():
    panels = [Map("a", Both(NOW)), Map("b", Both(100 * NOW))]
    fig = maps(panels, ROWS, LABELS, None, "dark", joint=True)
    assert [grid.coloraxis for grid in fig.data] == ["coloraxis"] * 2
    assert fig.layout.coloraxis.cmax == pytest.approx(100 * NOW.max())
    apart = maps(panels, ROWS, LABELS, None, "dark")
    ends = [apart.layout[grid.coloraxis].cmax for grid in apart.data]
    assert ends == pytest.approx([NOW.max(), 100 * NOW.max()])


def test_curves_stand_over_their_names_and_the_unchanged_are_dashed():
    lines = {"before": Both(NOW[:, 0], WAS[:, 0]), "after": Both(NOW[:, 1], WAS[:, 1])}
    fig = curves(lines, ROWS, "light", "variance", at=1, log=True, rest=1.0, used=1)
    assert [(s.x0, s.x1) for s in fig.layout.shapes if s.type == "rect"] == [(-0.5, 0.5)]
    named = {}
    for trace in fig.data:
        named.setdefault(trace.name, []).append(list(trace.y))
    assert named == {
        "before": [list(NOW[:, 0])],
        "after": [list(NOW[:, 1])],
        "unchanged": [list(WAS[:, 0]), list(WAS[:, 1])],
    }
    assert all((trace.line.dash == "dash") == (trace.name == "unchanged") for trace in fig.data)
    assert sum(trace.showlegend is not False for trace in fig.data) == 1
    assert fig.layout.yaxis.type == "log" and list(fig.layout.xaxis.ticktext) == ROWS
    # a log axis places notes so
    assert fig.layout.annotations[0].y == pytest.approx(np.log10(NOW[-1, 0]))
    assert "two: variance before" in fig.data[1].hovertext[1]
    assert not [
        t for t in curves({"a": Both(NOW[0])}, LABELS, "dark", "u").data if t.name == "unchanged"
    ]


def test_a_long_curve_leaves_its_sentences_to_the_browser():
    names = [f"<{i}>" for i in range(61)]
    (curve,) = curves({"score": Both(np.arange(61.0))}, names, "light", "score").data
    assert curve.hovertext is None and curve.text[1] == "&lt;1&gt;"
    assert curve.hovertemplate.startswith("%{text}: score %{y")


def test_many_curves_are_told_apart_by_more_than_their_colour():
    lines = {f"<{i}>": Both(NOW[:, 0] + i, WAS[:, 0] + i) for i in range(6)}
    fig = curves(
        lines,
        ROWS,
        "light",
        "rank",
        many=True,
        up={"type": "log"},
        written=lambda y: f"no. {y:.0f}",
    )
    drawn = [trace for trace in fig.data if trace.name != "unchanged"]
    assert [trace.name for trace in drawn] == [f"&lt;{i}&gt;" for i in range(6)]
    assert (
        len({trace.line.dash for trace in drawn})
        == len({trace.marker.symbol for trace in drawn})
        == 6
    )
    assert drawn[0].line.color == PALETTES["light"].accent and fig.layout.yaxis.type == "log"
    assert fig.layout.yaxis.exponentformat == "power"  # 2×10⁻⁵, not 20μ
    ghosts = [trace for trace in fig.data if trace.name == "unchanged"]
    assert [np.array_equal(g.y, WAS[:, 0] + i) for i, g in enumerate(ghosts)] == [True] * 6
    assert (
        sum(trace.showlegend is not False for trace in fig.data) == 7 and not fig.layout.annotations
    )
    assert "no. " in drawn[0].hovertext[0]


def test_words_on_two_lines_that_run_close_stand_on_either_side():
    values = Both(np.array([3.0, 12.0]))
    for other, anchors in (
        (9.4, ("top", "bottom")),
        (8.4, ("bottom", "top")),
        (2.0, ("bottom", "bottom")),
    ):
        fig = bars(values, ["a", "b"], "light", "nats", rests=[(9.0, "guess"), (other, "mean")])
        assert tuple(note.yanchor for note in fig.layout.annotations) == anchors


@pytest.mark.parametrize("lying", [False, True])
def test_bars_are_their_numbers_and_outlines_the_unchanged_ones(lying):
    values = Both(NOW[0], WAS[0])
    fig = bars(values, LABELS, "light", "probability", at=2, lying=lying, rests=[(1.0, "even")])
    main, ghost = fig.data
    (level,) = fig.layout.shapes
    (note,) = fig.layout.annotations
    assert (level.x0 if lying else level.y0) == 1 and note.text == "even"
    assert (note.x, note.yanchor) == ((1, "bottom") if lying else (1, note.yanchor))
    assert np.array_equal(main.x if lying else main.y, NOW[0])
    assert np.array_equal(ghost.x if lying else ghost.y, WAS[0]) and ghost.name == "unchanged"
    assert main.hovertext[2].startswith("&lt;b&gt;: probability")
    assert ghost.hovertext[0].startswith("unchanged: ") and len(set(main.marker.color)) == 2
    alone = bars(Both(NOW[0]), LABELS, "light", "size", colors="#123456", says=Both(["a"] * 4))
    assert len(alone.data) == 1 and list(alone.data[0].hovertext) == ["a"] * 4
    whole, part = bars(
        Both(NOW[0]),
        LABELS,
        "light",
        "z",
        lying=lying,
        part=("p", NOW[1], "#123456"),
        called=("z", ""),
    ).data
    assert np.array_equal(part.x if lying else part.y, NOW[1]) and (whole.name, part.name) == (
        "z",
        "p",
    )
    assert part.hovertext[2].startswith("&lt;b&gt;: p ")


def test_lying_bars_have_their_texts_and_reach_below_zero_where_a_number_does():
    fig = bars(
        Both(np.array([0.1, -0.4])),
        ["·dog", "<b>"],
        "light",
        "dot",
        lying=True,
        text=Both(["1", '<"']),
    )
    assert list(fig.data[0].text) == ["1", '&lt;"'] and fig.layout.yaxis.ticktext == (
        "·dog",
        "&lt;b&gt;",
    )
    assert fig.layout.yaxis.range == (1.5, -0.5)  # the first on top
    low, high = fig.layout.xaxis.range
    assert low < -0.4 and high == pytest.approx(0.1005) and fig.layout.xaxis.domain[1] < 0.8
    still = bars(Both(np.zeros(2)), ["a", "b"], "light", "dot", lying=True, text=Both(["0", "0"]))
    assert still.layout.xaxis.range == (0, 1.001)


def test_cells_that_are_tinted_alike_are_one_rectangle_below_the_frames():
    tint = np.zeros((4, 5), dtype=bool)
    tint[1, 2] = tint[2:, 2:] = True
    grid = Map("a", Both(np.zeros((4, 5))), framed=[(0, 1)], tint=tint)
    shapes = maps([grid], "abcd", "abcde", None, "light").layout.shapes
    assert [[shape[end] for end in ("x0", "x1", "y0", "y1")] for shape in shapes] == [
        [1.5, 2.5, 0.5, 1.5],
        [1.5, 4.5, 1.5, 3.5],
        [0.5, 1.5, -0.5, 0.5],
    ]
    assert [shape.fillcolor is None for shape in shapes] == [False, False, True]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_signed_scale_is_centred_on_zero(mode):
    axis = signed_axis(0.5, mode, 1.0)
    assert axis["cmin"] == -axis["cmax"] == -0.5
    assert axis["colorscale"][len(axis["colorscale"]) // 2] == (0.5, palette(mode).paper)
    assert axis["colorbar"]["ticktext"] == ["−0.50", "0", "0.50"]


@pytest.mark.parametrize(
    ("mean", "anchors"),
    [
        (6.0, ["bottom", "top"]),
        (6.5, ["top", "bottom"]),
        (5.0, ["bottom", "top"]),
        (2.0, ["bottom", "bottom"]),
        (9.0, ["bottom", "bottom"]),
    ],
)
def test_the_words_of_two_lines_do_not_lie_on_each_other(mean, anchors):
    """Of lines at the same height, or with less between them than words need, one has its words below it."""
    rests = [(6.0, "a blind guess"), (mean, "the mean")]
    notes = level_notes(rests, [0.0, 9.0], "light", "right")
    assert [one["yanchor"] for one in notes] == anchors


def test_the_names_at_the_ends_of_lines_do_not_lie_on_each_other():
    """A line with another's end has its name above it; where there is room each stands at its end."""
    lines = {
        "gate": Both(np.array([0.0, 1.0])),
        "up": Both(np.array([0.0, 0.01])),
        "output": Both(np.array([0.5, 0.0])),
    }
    fig = curves(lines, ["a", "b"], "light", "number", height=290)
    ends = {note["text"]: note["y"] for note in fig.layout.annotations}
    assert ends["<b>output</b>"] == 0.0 and ends["<b>gate</b>"] == 1.0
    assert ends["<b>up</b>"] == pytest.approx(0.1)
