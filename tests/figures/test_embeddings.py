"""The pictures of the embeddings carry the very values that they are given."""

import numpy as np

from gptviz.figures.embeddings import embedding_sum


def test_every_value_knows_the_whole_addition_and_digits_stand_under_their_dimensions():
    values = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32)  # (3, D)
    cells = [(f"a{i}", f"b{i}", f"c{i}") for i in range(5)]
    fig = embedding_sum(values, "·cat", 1, 6, range(4, 9), cells, 2.0, "light")
    rows, digits, written = fig.data
    replaced = embedding_sum(values, "·cat", 1, 6, range(4, 9), cells, 2.0, "light", adds_up=False)
    for drawn, names in (
        (fig, ("token", "+ position", "= sum")),
        (replaced, ("token", "position", "given")),
    ):
        for axis in (drawn.layout.yaxis, drawn.layout.yaxis2):
            assert (axis.ticktext, axis.tickvals, axis.autorange) == (names, (0, 1, 2), "reversed")
    assert np.array_equal(rows.z, values)
    assert np.array_equal(rows.customdata, np.stack([values.T] * 3))
    assert rows.meta == "`·cat` (position 1)"
    assert digits.hoverinfo == written.hoverinfo == "skip"  # or a click there would be the rows'
    assert np.array_equal(digits.z, values[:, 4:9]) and list(digits.x) == ["4", "5", "6", "7", "8"]
    found = {(x, y): text for x, y, text in zip(written.x, written.y, written.text, strict=True)}
    assert found["4", 0] == "a0" and found["6", 1] == "b2" and found["8", 2] == "c4"
