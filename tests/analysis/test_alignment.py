"""Two texts side by side: the tokens that are added are the fewest, and leave as many equal as can be."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.alignment import filled, missing, side_by_side

IDS = st.lists(st.integers(0, 3), max_size=7)


@given(IDS, IDS)
def test_no_other_way_leaves_more_tokens_equal(one, other):
    shorter, longer = sorted((one, other), key=len)
    found = missing(shorter, longer)
    assert len(found) == len(longer) - len(shorter)
    now = filled(shorter, longer)
    assert len(now) == len(longer)
    rest = [i for i in range(len(longer)) if i not in {gap.position for gap in found}]
    assert [now[i] for i in rest] == list(shorter) and [gap.before for gap in found] == [
        sum(i < gap.position for i in rest) for gap in found
    ]
    best = max(  # by trying all of them
        sum(a == longer[i] for a, i in zip(shorter, kept, strict=True))
        for kept in combinations(range(len(longer)), len(shorter))
    )
    assert sum(a == longer[i] for a, i in zip(shorter, rest, strict=True)) == best


@given(IDS, IDS)
def test_side_by_side_is_the_same_from_either_side(one, other):
    columns = side_by_side(one, other)
    assert [a for a, _ in columns if a is not None] == list(range(len(one)))
    assert [b for _, b in columns if b is not None] == list(range(len(other)))
    assert len(columns) == max(len(one), len(other))
    if len(one) != len(other):
        assert side_by_side(other, one) == [(b, a) for a, b in columns]


def test_a_long_text_takes_no_time():
    longer = [i * i % 97 for i in range(1024)]
    shorter = longer[:300] + longer[301:700] + longer[703:]
    assert missing(shorter, longer)[0].position == 300
    assert filled(shorter, longer) == longer
