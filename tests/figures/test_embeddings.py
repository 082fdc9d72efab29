"""The pictures of the embeddings carry the very values that they are given."""

import itertools

import numpy as np
import pytest

from gptviz.figures.embeddings import LABELLED_ROWS, embedding_rows, embedding_sum, row_pixels
from gptviz.figures.theme import palette


def parts(tokens=4, size=32):
    both = np.random.default_rng(0).normal(size=(2, tokens, size)).astype(np.float32)
    return np.concatenate([both, both.sum(axis=0, keepdims=True)])


def rows_figure(tokens=4, size=32, mode="light", position=1):
    values = parts(tokens, size)
    labels = [f"·w{i}" for i in range(tokens)]
    lengths = np.linalg.norm(values, axis=-1)
    return values, lengths, embedding_rows(values, labels, lengths, 2.0, position, mode)


@pytest.mark.parametrize(("tokens", "size"), [(1, 256), (12, 768), (256, 256)])
def test_the_three_heatmaps_hold_the_rows_on_one_scale(tokens, size):
    values, lengths, fig = rows_figure(tokens, size, position=0)
    maps = [trace for trace in fig.data if trace.type == "heatmap"]
    bars = [trace for trace in fig.data if trace.type == "bar"]
    for part in range(3):
        assert np.array_equal(maps[part].z, values[part])
        assert maps[part].coloraxis == "coloraxis" and maps[part].zmin is None
        assert np.array_equal(bars[part].x, lengths[part])
    axis = fig.layout.coloraxis
    assert (axis.cmin, axis.cmax) == (-2, 2)
    assert axis.colorscale[2] == (0.5, palette("light").paper)


def test_the_panels_follow_each_other_from_top_to_bottom_without_overlap():
    _, _, fig = rows_figure()
    domains = [fig.layout[name].domain for name in ("yaxis", "yaxis3", "yaxis5")]
    for above, below in itertools.pairwise(domains):
        assert above[0] > below[1]
    assert domains[0][1] == 1 and domains[2][0] == pytest.approx(0, abs=1e-9)
    assert all(a[1] - a[0] == pytest.approx(domains[0][1] - domains[0][0]) for a in domains)
    for name, beside in (("yaxis", "yaxis2"), ("yaxis3", "yaxis4"), ("yaxis5", "yaxis6")):
        assert fig.layout[name].domain == fig.layout[beside].domain
        assert fig.layout[name].range == (3.5, -0.5)  # the first token on top


def test_rows_are_labelled_with_tokens_until_they_are_too_thin():
    _, _, few = rows_figure(LABELLED_ROWS)
    assert few.layout.yaxis2.ticktext[3] == "·w3"
    _, _, many = rows_figure(LABELLED_ROWS + 1)
    assert many.layout.yaxis2.ticktext is None
    assert many.layout.yaxis.ticktext[40] == "`·w40` (position 40)"  # what the hover says


def test_a_row_is_never_thinner_than_two_pixels_nor_a_page_endless():
    for tokens in range(1, 257):
        assert 2 <= row_pixels(tokens) <= 18
        assert tokens > LABELLED_ROWS or row_pixels(tokens) >= 11
        assert 3 * tokens * row_pixels(tokens) <= 1600


def test_tokens_that_look_like_tags_are_shown_and_not_obeyed():
    values = parts(2)
    lengths = np.linalg.norm(values, axis=-1)
    fig = embedding_rows(values, ["<b>", '&"'], lengths, 2.0, 0, "dark")
    assert fig.layout.yaxis2.ticktext == ("&lt;b&gt;", '&amp;"')


def test_what_does_not_fit_together_is_refused():
    values = parts(4)
    with pytest.raises(ValueError, match="4 rows, 3 labels"):
        embedding_rows(values, ["a", "b", "c"], np.linalg.norm(values, axis=-1), 1.0, 0, "light")


def test_every_value_of_the_rows_knows_the_whole_addition():
    values = parts(3)[:, 1]  # (3, D)
    window = range(4, 9)
    cells = [("1", "2", "3")] * 5
    fig = embedding_sum(values, "·cat", 1, 6, window, cells, 2.0, "light")
    rows = fig.data[0]
    assert np.array_equal(rows.z, values)
    assert rows.customdata.shape == (3, 32, 3)
    for part in range(3):
        assert np.array_equal(rows.customdata[part].T, values)
    assert rows.meta == "`·cat` (position 1)"
    assert {trace.hoverinfo for trace in fig.data[1:]} == {"skip"}  # or a click there would be the rows'


def test_the_digits_stand_under_their_dimensions():
    values = parts(3)[:, 1]
    cells = [(f"a{i}", f"b{i}", f"c{i}") for i in range(5)]
    fig = embedding_sum(values, "x", 1, 6, range(4, 9), cells, 2.0, "dark")
    digits, written = fig.data[1], fig.data[2]
    assert np.array_equal(digits.z, values[:, 4:9]) and list(digits.x) == ["4", "5", "6", "7", "8"]
    found = {(x, y): text for x, y, text in zip(written.x, written.y, written.text, strict=True)}
    assert found["4", 0] == "a0" and found["6", 1] == "b2" and found["8", 2] == "c4"
    ink = {palette("dark").ink, palette("dark").paper}
    assert set(written.textfont.color) <= ink
