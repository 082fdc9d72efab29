"""Repeated pieces and loops against a search by hand; induction against the scores of the heads."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.analysis.head_roles import roles
from gptviz.analysis.repetition import (
    Loop,
    given_to_followed,
    loop,
    other_heads,
    repeated,
    share_along,
)

IDS = st.lists(st.integers(0, 3), min_size=0, max_size=30)


@given(IDS, st.integers(1, 4))
def test_a_piece_is_repeated_if_it_stood_before(ids, n):
    text = "".join(map(str, ids))
    by_hand = [e >= n and text.find(text[e - n : e]) < e - n for e in range(1, len(ids) + 1)]
    assert repeated(ids, n).tolist() == by_hand


def test_the_share_counts_from_where_it_was_written():
    ids = [1, 2, 3, 1, 2, 3, 9]
    assert share_along(ids, 3, 3).tolist() == [0, 0, 1 / 3, 1 / 4]
    assert share_along(ids, 7, 3).tolist() == []


@given(st.lists(st.integers(4, 9), max_size=8), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_a_loop_is_found_where_it_begins(before, piece):
    ids = before + piece * 5
    found = loop(ids)
    assert found is not None and found.period <= len(piece)
    assert ids[found.start :] == ids[found.start - found.period : len(ids) - found.period]
    assert found.start - found.period >= len(before)
    goes_on = (
        found.start > found.period and ids[found.start - 1] == ids[found.start - 1 - found.period]
    )
    assert not goes_on


def test_loops_by_hand():
    assert loop([7, 1, 2, 1, 2, 1, 2]) == Loop(3, 2)
    assert loop([9, 5, 5, 5, 5, 5]) == Loop(2, 1)
    sentence = list(range(8))
    assert loop([9, *sentence, *sentence]) == Loop(9, 8)
    assert loop([1, 2, 3, 1, 2]) is None
    assert loop([]) is None and loop([1]) is None


@pytest.mark.parametrize(
    "ids", [[5, 5], [5] * 4, [7, 1, 2, 1, 2, 1], [*range(7), *range(7)]], ids=len
)
def test_a_word_said_twice_is_no_loop(ids):
    assert loop(ids) is None


def test_heads_to_compare_with(mini):
    muted = [(5, 0), (5, 3), (4, 1)]
    also = [(0, b) for b in range(8)]
    sets = other_heads(mini, muted, also)
    assert len({tuple(drawn) for drawn in sets}) == 5 and sets == other_heads(mini, muted, also)
    for drawn in sets:
        assert len(set(drawn)) == 3 and not set(drawn) & {*muted, *also}
    every = [(b, h) for b in range(6) for h in range(8)]
    assert other_heads(mini, every[:25]) == []


def test_what_followed_is_the_induction_share_of_the_roles(mini):
    ids = mini.encode("one two three one two three one two")
    trace = mini.trace(ids, keep=["attn"])
    for block, row in enumerate(roles(trace)):
        for head, role in enumerate(row):
            found = given_to_followed(mini, trace, block, head)
            assert np.nanmean(found) == pytest.approx(role.shares["induction"], abs=1e-5)
    query = 4  # the second " two": after the first came " three"
    assert ids[query] == ids[1] and np.isnan(found[0])
    assert found[query] == pytest.approx(float(trace["attn", block][head, query, 2]))
    nothing = mini.trace([1, 2, 3], keep=["attn"])
    assert np.isnan(given_to_followed(mini, nothing, 0, 0)).all()
