"""The pictures of the embeddings carry the very values that they are given."""

import numpy as np

from gptviz.figures.embeddings import embedding_sum


def parts(tokens=4, size=32):
    both = np.random.default_rng(0).normal(size=(2, tokens, size)).astype(np.float32)
    return np.concatenate([both, both.sum(axis=0, keepdims=True)])


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
