"""Figures without a browser: marks as SVG, PNG and PDF; what Plotly draws is drawn, with the same numbers."""

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from gptviz.both import Both
from gptviz.figures.bars import bars
from gptviz.figures.curves import SYMBOLS, curves
from gptviz.figures.heads import SYMBOLS as OF_ROLES
from gptviz.figures.maps import Map, maps
from gptviz.figures.still import charts, raster
from gptviz.figures.still.canvas import (
    Canvas,
    Curve,
    Disc,
    Line,
    Pixels,
    Rectangle,
    Text,
    shortened,
    text_width,
)
from gptviz.figures.still.charts import chart, draw_symbol
from gptviz.figures.still.svg import svg
from gptviz.figures.still.values import Axis, filled, formatted, plain, runs
from gptviz.figures.theme import color_at, palette

TOKENS = ["The", "·<b>", "·猫", "·🙂", "&amp;", "·  ", "\x07"]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure):
    canvas, hover = chart(figure.to_dict())
    return canvas, hover, ET.fromstring(svg(canvas))


def flat(marks):
    for mark in marks:
        yield from flat(mark.marks) if hasattr(mark, "marks") else [mark]


def texts(root):
    return [node.text for node in root.iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_numbers_and_say_them():
    lengths = np.array([0.5, -0.25, 0.125])
    figure = bars(Both(lengths), ["first", "·<b>", "·猫"], "light", "share")
    canvas, hover, root = drawn(figure)
    boxes = [mark for mark in flat(canvas.marks) if isinstance(mark, Rectangle)]
    heights = sorted(box.height for box in boxes)[-3:]
    assert heights[2] / heights[1] == pytest.approx(2) and heights[1] / heights[0] == pytest.approx(
        2
    )
    assert {"first", "·<b>", "·猫"} <= set(texts(root))
    assert len(hover.boxes) == 3


def test_a_line_goes_through_its_numbers_and_stops_at_a_gap():
    values = np.array([0.0, 1.0, np.nan, 3.0, 4.0])
    canvas, hover, _ = drawn(
        curves({"loss": Both(values)}, ["a", "b", "c", "d", "e"], "light", "loss")
    )
    pieces = [mark for mark in flat(canvas.marks) if isinstance(mark, Line) and mark.width == 3]
    assert [len(piece.points) for piece in pieces] == [2, 2]
    (_, y0), (_, y1) = pieces[0].points
    (_, y3), (_, y4) = pieces[1].points
    assert y0 - y1 == pytest.approx(y3 - y4, abs=0.01) and y1 - y3 == pytest.approx(
        2 * (y0 - y1), abs=0.01
    )
    assert [said for *_, said in hover.points][-1].startswith("e: ")


LAYOUT = {
    "font": {"color": "#000000"},
    "paper_bgcolor": "#ffffff",
    "margin": {"l": 20, "r": 20, "t": 20, "b": 20},
}


def still(*traces, **layout):
    """The marks of a chart of these traces, and its axes."""
    drawing = charts._Chart({"data": traces, "layout": LAYOUT | layout}, 600)
    canvas, _ = drawing.drawn()
    return [*flat(canvas.marks)], drawing.axes


def test_stacked_bars_stand_on_each_other_and_what_is_below_zero_hangs():
    first = {"type": "bar", "x": ["a", "b"], "y": [2.0, 1.0], "marker": {"color": "#111111"}}
    second = {"type": "bar", "x": ["b", "a"], "y": [3.0, -1.0], "marker": {"color": "#222222"}}
    marks, axes = still(first, second, barmode="stack")
    places = {name: axes["x"].at(name) for name in "ab"}
    spans = {}
    for mark in marks:
        if isinstance(mark, Rectangle) and mark.fill in ("#111111", "#222222"):
            middle = mark.x + mark.width / 2
            name = min(places, key=lambda name: abs(places[name] - middle))
            spans[mark.fill, name] = (mark.y + mark.height, mark.y)
    assert len(spans) == 4
    at = axes["y"].at
    bottom_of_b, top_of_b = spans["#222222", "b"]
    assert (bottom_of_b, top_of_b) == pytest.approx((at(1.0), at(4.0)))
    below, above = spans["#222222", "a"]
    assert (above, below) == pytest.approx((at(0.0), at(-1.0)))


@pytest.mark.parametrize("lying", [False, True])
def test_a_bars_error_reaches_as_far_as_its_number(lying):
    error = {"type": "data", "array": [0.5], "color": "#654321", "thickness": 1.2, "width": 4}
    sides = {"x": ["a"], "y": [2.0], "error_y": error}
    along = "y"
    if lying:
        sides = {"y": ["a"], "x": [2.0], "error_x": error, "orientation": "h"}
        along = "x"
    marks, axes = still({"type": "bar", **sides})
    whiskers = [mark for mark in marks if isinstance(mark, Line) and mark.color == "#654321"]
    assert len(whiskers) == 3
    ends = sorted(point["xy".index(along)] for point in whiskers[0].points)
    assert ends == pytest.approx(sorted([axes[along].at(1.5), axes[along].at(2.5)]))


def test_a_note_on_a_log_axis_stands_at_the_logarithm_and_a_shape_at_the_value():
    trace = {"type": "scatter", "mode": "lines", "x": [1, 1000], "y": [0, 1]}
    note = {"x": 2, "y": 0.5, "text": "a hundred", "font": {"color": "#000000"}}
    shape = {"type": "line", "x0": 100, "x1": 100, "y0": 0, "y1": 1, "line": {"color": "#abcdef"}}
    marks, _ = still(trace, xaxis={"type": "log"}, annotations=[note], shapes=[shape])
    [line] = [mark for mark in marks if isinstance(mark, Line) and mark.color == "#abcdef"]
    [text] = [mark for mark in marks if isinstance(mark, Text) and mark.text == "a hundred"]
    assert text.x == pytest.approx(line.points[0][0])


@pytest.mark.parametrize("limit", [10_000, 1])
def test_a_map_has_the_colour_of_each_number_as_cells_or_as_one_picture(monkeypatch, limit):
    monkeypatch.setattr(charts, "SHAPES", limit)
    values = np.array([[0.0, 0.5, -1.0], [1.0, np.nan, 0.25]], dtype=np.float32)
    figure = maps(
        [Map("share", Both(values), ends=(-1, 1))],
        ["row 0", "row 1"],
        ["The", "·<b>", "·猫"],
        None,
        "light",
    )
    canvas, hover, root = drawn(figure)
    scale = palette("light").signed
    expected = [color_at(scale, (value + 1) / 2) for value in np.nan_to_num(values).ravel()]
    if limit > 1:
        cells = [
            mark
            for mark in flat(canvas.marks)
            if isinstance(mark, Rectangle) and mark.fill and not mark.stroke
        ]
        cells.sort(key=lambda cell: (cell.y, cell.x))
        assert [cell.fill for cell in cells] == [
            color for i, color in enumerate(expected) if i != 4
        ]
    else:
        picture = next(
            mark
            for mark in canvas.marks
            if isinstance(mark, Pixels) and mark.colors.shape == (2, 3, 3)
        )
        found = [f"#{pixel.tobytes().hex()}" for pixel in picture.colors.reshape(-1, 3)]
        assert [one for i, one in enumerate(found) if i != 4] == [
            one for i, one in enumerate(expected) if i != 4
        ]
    assert {"The", "·<b>", "·猫", "row 0", "row 1"} <= set(texts(root))
    [told] = hover.maps
    assert told["silent"] == [4] and told["rows"] == 2 and told["columns"] == 3
    numbers = next(
        piece["cell"] for piece in told["says"] if isinstance(piece, dict) and "cell" in piece
    )
    assert numbers[1][2] == "0.250" and numbers[0][2] == "−1.00"


def test_a_large_map_says_some_of_its_cells_each_by_its_own_name():
    values = np.random.default_rng(0).normal(size=(900, 4)).astype(np.float32)
    rows = [f"row {i}" for i in range(900)]
    figure = maps([Map("share", Both(values))], rows, ["a", "b", "c", "d"], None, "light")
    _, hover, _ = drawn(figure)
    [told] = hover.maps
    names = next(
        piece["row"] for piece in told["says"] if isinstance(piece, dict) and "row" in piece
    )
    numbers = next(
        piece["cell"] for piece in told["says"] if isinstance(piece, dict) and "cell" in piece
    )
    assert len(names) == told["rows"] < 500
    for name, line in zip(names, numbers, strict=True):
        assert line == [
            formatted(float(value), ".3r") for value in values[int(name.removeprefix("row "))]
        ]


def test_every_symbol_of_a_figure_is_drawn_and_another_is_refused():
    for symbol in {*SYMBOLS, *OF_ROLES, "arrow", "circle"}:
        canvas = Canvas(20, 20, "#ffffff")
        draw_symbol(canvas, symbol, (10, 10), 5, "#ff0000", None, 0, 1.0)
        assert canvas.marks
    with pytest.raises(
        ValueError, match="the symbol 'y-up' cannot be drawn still; there are circle"
    ):
        draw_symbol(Canvas(20, 20, "#ffffff"), "y-up", (10, 10), 5, None, None, 0, 1.0)
    with pytest.raises(
        ValueError, match="a pie cannot be drawn still; there are heatmap, bar, scatter"
    ):
        chart(
            {
                "data": [{"type": "pie"}],
                "layout": {"font": {"color": "#000000"}, "paper_bgcolor": "#ffffff"},
            }
        )


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.25, ".3r", "0.250"),
        (1234.5, ".3r", "1230"),
        (0.5, ".4~r", "0.5"),
        (-0.1234, ".3f", "−0.123"),
        (0.0, ".3r", "0"),
    ],
)
def test_numbers_in_a_sentence_have_the_digits_that_plotly_gives(value, form, text):
    assert formatted(value, form) == text
    assert filled(f"is %{{z:{form}}}<extra></extra>", {"z": value}) == f"is {text}"


def test_a_legend_in_words_keeps_its_colours():
    line = "<span style='color:#d9690f'>● fires</span>   <span style='color:#6d6878'>● &lt;b&gt;</span>"
    assert runs(line, "#000000") == [
        ("● fires", "#d9690f"),
        ("   ", "#000000"),
        ("● <b>", "#6d6878"),
    ]
    assert runs("<b>before</b>", "#000000") == [("before", "#000000")]


def test_labels_lose_their_tags_and_keep_their_text():
    assert plain("<b>a</b><br>&lt;b&gt; ·on <sub>31</sub>") == "a\n<b> ·on ₃₁"
    axis = Axis(True, {"type": "log"}, low=0, high=3)
    assert [text for _, text in axis.ticks()] == ["1", "10", "100", "1,000"]


def test_any_text_is_in_an_svg_that_every_reader_can_parse():
    canvas = Canvas(400, 40, "#ffffff")
    for i, token in enumerate(TOKENS):
        canvas.add(Text(10 + 50 * i, 20, token))
    found = texts(ET.fromstring(svg(canvas, "a <title>")))
    assert found == [token.replace("\x07", "\ufffd") for token in TOKENS]
    assert text_width("·猫猫", 10) > text_width("·ii", 10)
    assert shortened("a long token", 10, 30).endswith("…")


def test_all_marks_are_drawn_in_a_png_and_in_a_pdf():
    canvas = Canvas(100, 100, "#ffffff")
    canvas.add(
        Rectangle(0, 0, 20, 20, "#ff0000"),
        Disc(50, 10, 8, "#00ff00"),
        Line(((0, 50), (100, 50)), "#0000ff", 4),
        Curve(((0, 90), (30, 90), (60, 90), (100, 90)), "#ff00ff", 4),
        Pixels(60, 60, 20, 20, np.full((1, 1, 3), 7, dtype=np.uint8)),
        Text(5, 40, "$x_1$ 猫 \U0001faf8", 14),
    )
    image = Image.open(io.BytesIO(raster.png(canvas, 1.0))).convert("RGB")
    assert image.size == (100, 100)
    places = {
        (10, 10): (255, 0, 0),
        (50, 10): (0, 255, 0),
        (80, 50): (0, 0, 255),
        (50, 90): (255, 0, 255),
    }
    assert {at: image.getpixel(at) for at in places} == places
    assert image.getpixel((70, 70)) == (7, 7, 7) and image.getpixel((95, 5)) == (255, 255, 255)
    assert np.asarray(image.crop((5, 26, 60, 44))).min() < 100  # the text
    assert raster.pdf(canvas).startswith(b"%PDF") and b"/Subtype /Image" in raster.pdf(canvas)
    assert len(raster.small_png(canvas)) < 5000


def test_a_character_that_no_font_has_is_written_by_its_number():
    assert raster.drawable("a\U0010fffd<") == "aU+10FFFD<"


def test_without_matplotlib_it_is_a_sentence_that_names_svg(monkeypatch):
    monkeypatch.setattr(raster, "is_installed", lambda: False)
    with pytest.raises(
        ValueError, match=re.escape("a PNG is drawn by matplotlib, which is not installed: pip")
    ):
        raster.png(Canvas(10, 10, "#ffffff"))
