"""What the picture of the merges is given to draw.

Its sentences are held to those of another program, the one file's: tests/browser/test_handout.py.
"""

from hypothesis import given, strategies as st

from gptviz.analysis.tokens import place_of
from gptviz.tokenizer import encode, get_encoding
from gptviz.tokenizer.steps import show_work
from gptviz.ui.components.merges import WIDEST, merges_data

MINI = get_encoding("mini")


def data_for(text, position, special=False):
    pieces = show_work(MINI, text, special)
    piece, part = place_of(pieces, position)
    return merges_data(MINI, pieces[piece], part, position)


def test_the_steps_of_a_word():
    """Hello in the bundled vocabulary: l+l, then e+ll, and three tokens are left."""
    data = data_for("Hello", 1)
    assert [token["id"] for token in data["tokens"]] == encode(MINI, "Hello")
    assert [token["position"] for token in data["tokens"]] == [0, 1, 2]
    assert [stage["joined"] for stage in data["stages"]] == [None, 2, 1]
    assert [part["mine"] for part in data["stages"][0]["parts"]] == [False, True, True, True, False]


def test_a_piece_too_wide_for_a_screen_shows_the_selected_token_alone():
    text = "the" * (WIDEST // 3 + 1)
    ids = encode(MINI, text)
    position = len(ids) // 2
    data = data_for(text, position)
    raw = MINI.decode_single_token_bytes(ids[position])
    assert [(token["id"], token["position"]) for token in data["tokens"]] == [
        (ids[position], position)
    ]
    assert [part["bytes"] for part in data["stages"][-1]["parts"]] == [len(raw)]
    assert len(data["stages"]) == len(raw)


@given(
    text=st.text(st.sampled_from([*" \n'aeth你😀`*<"]), min_size=1, max_size=40),
    pick=st.integers(0, 200),
)
def test_the_picture_is_the_work(text, pick):
    ids = encode(MINI, text)
    position = pick % len(ids)
    data = data_for(text, position)
    (selected,) = [token for token in data["tokens"] if token["position"] == position]
    assert selected["id"] == ids[position]
    raw = MINI.decode_single_token_bytes(ids[position])
    for stage in data["stages"]:
        assert sum(part["bytes"] for part in stage["parts"]) <= max(WIDEST, len(raw))
        mine = b"".join(bytes.fromhex(part["hex"]) for part in stage["parts"] if part["mine"])
        assert mine == raw
        assert len(stage["ranks"]) == len(stage["titles"]) == len(stage["parts"]) - 1
        if stage["chosen"] is not None:
            lowest = min(rank for rank in stage["ranks"] if rank is not None)
            assert stage["ranks"][stage["chosen"]] == lowest and f"rank {lowest} " in "".join(
                stage["says"]
            )
