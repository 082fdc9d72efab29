"""Two texts side by side: the tokens that are added are the fewest, and leave as many equal as can be.

One text, cut in two ways.
"""

from itertools import combinations

from hypothesis import given, strategies as st

from gptviz.analysis.alignment import (
    Difference,
    are_in_step,
    differences,
    filled,
    missing,
    same_place,
    side_by_side,
)
from gptviz.tokenizer import encode, get_encoding
from tests.conftest import random_lm

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


def test_only_what_differs():
    before = [b"The", b" par", b"rots", b" sang", b"."]
    after = [b"The", b" parrots", b" sa", b"ng", b"."]
    assert differences(before, after) == [
        Difference(range(1, 3), range(1, 2)),
        Difference(range(3, 4), range(2, 4)),
    ]
    assert differences(before, before) == []


def test_a_text_that_was_cut_at_a_context_is_compared_as_far_as_it_goes():
    assert differences([b"a", b"bc", b"d"], [b"ab", b"c"]) == [Difference(range(0, 2), range(0, 2))]
    assert differences([b"a", b"b"], []) == []


def test_the_same_place():
    before = [b"The", b" par", b"rots", b" sang"]
    after = [b"The", b" parrots", b" sa", b"ng"]
    assert [same_place(before, after, position) for position in range(4)] == [0, 1, 1, 3]
    assert same_place(before, [b"The"], 3) == 0


@st.composite
def two_cuts(draw):
    text = draw(st.binary(min_size=1, max_size=30))
    cuts = []
    for _ in range(2):
        ends = sorted(draw(st.sets(st.integers(1, len(text) - 1)))) if len(text) > 1 else []
        cuts.append([text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)])
    return cuts


@given(two_cuts())
def test_differences_and_common_tokens_are_the_whole_text(cuts):
    before, after = cuts
    changed_before = {i for d in differences(before, after) for i in d.before}
    changed_after = {i for d in differences(before, after) for i in d.after}
    assert [t for i, t in enumerate(before) if i not in changed_before] == [
        t for i, t in enumerate(after) if i not in changed_after
    ]
    for d in differences(before, after):
        assert b"".join(before[i] for i in d.before) == b"".join(after[i] for i in d.after)


@given(st.text(max_size=80))
def test_two_real_tokenizers_on_any_text(text):
    raws = []
    for name in ("mini", "gpt2"):
        encoding = get_encoding(name)
        raws.append([encoding.decode_single_token_bytes(i) for i in encode(encoding, text)])
    for d in differences(*raws):
        assert len(d.before) > 1 or len(d.after) > 1
        assert same_place(*raws, d.before[-1]) == d.after[-1]


def test_as_many_tokens_are_in_step_only_where_each_word_has_its_own():
    lm = random_lm()
    assert [len(lm.encode(f" {name}")) for name in ("Tom", "Mary", "Anna", "Ruth")] == [1, 1, 2, 2]
    own = "Then Tom saw Anna, and she"
    for other, expected in (
        (own, True),
        ("Then Mary saw Ruth, and she", True),
        ("Then Ruth saw Anna, and she", False),  # longer
        ("Then Anna saw Tom, and she", False),  # as long, but "saw" stands one further
        ("Then Tom saw Anna, and!he", False),  # another number of words
    ):
        one, two = (lm.encode(text) for text in (own, other))
        assert are_in_step(lm, one, two) == are_in_step(lm, two, one) == expected
    assert len(lm.encode(own)) == len(lm.encode("Then Anna saw Tom, and she"))
    assert are_in_step(lm, lm.encode("汤姆 sah"), lm.encode("安娜 sah")) == (
        len(lm.encode("汤姆")) == len(lm.encode("安娜"))
    )
    assert are_in_step(lm, [], [])
