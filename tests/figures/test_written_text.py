"""The pictures of the Generate page's panels hold the numbers that they are given."""

import numpy as np

from gptviz.figures.before_after import before_after
from gptviz.figures.decoding_cost import cost_bars
from gptviz.figures.looked import NAMED, SENTENCES, heads_map
from gptviz.figures.repetition import repetition
from gptviz.figures.theme import palette


def test_a_row_a_head_and_a_column_a_step():
    weights = np.array([[0.1, 0.2, 0.3], [0.4, np.nan, 0.6], [0.7, 0.8, 0.9], [0, 0.5, 1]], dtype=np.float32)
    fig = heads_map(weights, [1, 2, 5], ["·a", "<b", "·c"], "·mill", 2, (3, 2), "light")
    heat = fig.data[0]
    assert np.array_equal(heat.z, weights, equal_nan=True) and (heat.zmin, heat.zmax) == (0, 1)
    assert heat.hovertext[2][1] == "block 1, head 0 gave 0.80 to ·mill<br>when &lt;b was written (step 2)"
    assert fig.layout.plot_bgcolor == palette("light").masked
    column, row = fig.layout.shapes[-2:]
    assert (column.x0, column.x1) == (1.5, 2.5) and (row.y0, row.y1) == (2.5, 3.5)


def test_many_heads_and_steps():
    fig = heads_map(np.zeros((144, 200)), range(1, 201), ["·a"] * 200, "·b", 12, (0, 0), "dark")
    assert SENTENCES < 144 * 200 and fig.data[0].hovertext is None
    assert len(fig.layout.xaxis.ticktext) < NAMED < 200 and fig.layout.height <= 900
    assert fig.layout.xaxis.ticktext[1] == str(fig.layout.xaxis.tickvals[1] + 1)
    one = heads_map(np.array([[0.5]]), [1], ["·a"], "·b", 1, (0, 0), "light")
    assert one.layout.plot_bgcolor == palette("light").paper


def test_two_bars_a_step():
    fig = cost_bars([1, 2], ["·a", "·b"], np.array([1.5, 3]), np.array([1.5, np.nan]), "ms", 2, "light")
    slow, quick = fig.data
    assert np.allclose(slow.y, [1.5, 3]) and np.allclose(quick.y, [1.5, np.nan], equal_nan=True)
    assert slow.hovertext[1] == "step 2, ·b<br>without the cache: 3.00 ms" and quick.hovertext[1] == ""
    assert fig.layout.shapes[0].x0 == 2
    (alone,) = cost_bars([1, 2], ["·a", "·b"], np.array([1.5, 3]), None, "ms", 2, "light").data
    assert np.allclose(alone.y, [1.5, 3]) and alone.name == "without the cache"


def test_before_and_after():
    fig = before_after(["·a", "`"], np.array([0.9, 0.05]), np.array([0.0, 1.0]), "dark")
    assert [list(bars.x) for bars in fig.data] == [[0.9, 0.05], [0.0, 1.0]]
    assert list(fig.data[1].text) == ["0", "1"] and fig.layout.xaxis.range[1] > 1
    assert fig.data[0].hovertext[0] == "·a had 0.900"


def test_shares_and_attention_of_two_texts():
    shares = {"temperature 0": np.array([0, 0.5]), "temperature 1": np.array([0.25])}
    given = {"temperature 0": np.array([np.nan, 0.8]), "temperature 1": np.array([np.nan])}
    tokens = {"temperature 0": ["·a", "·<"], "temperature 1": ["·c"]}
    fig = repetition(shares, given, tokens, "block 5, head 0", "light")
    greedy, seen, drawn, _ = fig.data
    assert list(greedy.y) == [0, 50] and list(drawn.y) == [25]
    assert seen.yaxis == "y2" and list(seen.hovertext) == [
        "",
        "temperature 0, token 2, ·&lt;:<br>0.80 to what followed before",
    ]
    assert greedy.line.color != drawn.line.color
    ghost = repetition(shares, given, tokens, "h", "light", ("unchanged", np.array([0, 1]))).data[-1]
    assert list(ghost.y) == [0, 100] and ghost.name == "unchanged" and ghost.line.dash == "dash"
