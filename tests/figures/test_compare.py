"""Two sides in one figure: what is drawn is what was given."""

import numpy as np

from gptviz.figures.compare import back_to_back

TOKENS, LEFT, RIGHT = ["·mill", "<b>", "·x"], np.array([0.9, 0.05, np.nan]), np.array([0.2, np.nan, 0.7])


def drawn(*sides):
    return back_to_back(TOKENS, LEFT, RIGHT, sides, "light")


def test_bars_stand_back_to_back_on_one_scale():
    fig = drawn("left & co", "right")
    left, right = fig.data
    assert left.x.tolist() == [0.9, 0.05, 0.0] and right.x.tolist() == [0.2, 0.0, 0.7]
    assert right.text[1] == left.text[2] == "not in its vocabulary" and left.text[0] == "0.900"
    texts = [note.text for note in fig.layout.annotations]
    assert texts == ["<b>left &amp; co</b>", "<b>right</b>", "·mill", "&lt;b&gt;", "·x"]
    assert left.marker.color != right.marker.color


def test_a_long_name_of_a_side_is_wrapped_and_has_room():
    """Of some forty letters the chart's edge would cut off the end."""
    changes = ", ".join(f"block {b} head {b} off" for b in range(20))
    plain = drawn("mini", "gpt2").layout
    for name, lines in (("the other text (model changed)", 2), (changes, 3), ("a" * 33, 2)):
        layout = drawn("mini", name).layout
        right = layout.annotations[1].text.removeprefix("<b>").removesuffix("</b>").split("<br>")
        assert len(right) == lines and max(map(len, right)) <= 20
        assert layout.margin.t >= 30 + 16 * (lines - 1)
        assert right[-1].endswith("…") == (name == changes)
        assert layout.height - layout.margin.t == plain.height - plain.margin.t
