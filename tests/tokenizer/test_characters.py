"""Tokens that hold bytes of one character stand together."""

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from gptviz.tokenizer.characters import Group, character_groups

TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=30)


@st.composite
def cut_texts(draw):
    """(text, its UTF-8 bytes cut at any places)."""
    text = draw(TEXTS)
    raw = text.encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(raw) - 1)), max_size=20)))
    places = [0, *(c for c in cuts if c < len(raw)), len(raw)]
    return text, [raw[a:b] for a, b in pairwise(places) if a < b]


@given(cut_texts())
@example(("你好", [b"\xe4", b"\xbd\xa0\xe5", b"\xa5\xbd"]))
def test_groups_are_the_text_in_whole_characters(case):
    text, raws = case
    groups = character_groups(raws)
    assert [p for group in groups for p in group.positions] == list(range(len(raws)))
    assert "".join(group.text for group in groups) == text
    for group in groups:
        assert b"".join(raws[p] for p in group.positions).decode() == group.text
        for border in range(group.start + 1, group.stop):  # as small as whole characters allow
            with pytest.raises(UnicodeDecodeError):
                b"".join(raws[group.start : border]).decode()


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=12))
def test_any_bytes_are_in_exactly_one_group_each(raws):
    groups = character_groups(raws)
    assert [p for group in groups for p in group.positions] == list(range(len(raws)))
    for group in groups:
        joined = b"".join(raws[p] for p in group.positions)
        assert len(group.positions) == 1 if group.text is None else joined.decode() == group.text


def test_what_is_cut_off_in_the_middle_is_nobodys_character():
    expected = [Group(0, 1, "a"), Group(1, 2, None), Group(2, 3, None)]
    assert character_groups([b"a", b"\xe4", b"\xbd"]) == expected
