"""Both: a function is applied to each run, and a sentence has both numbers where they differ."""

import numpy as np
import pandas as pd
import pytest

from gptviz.both import Both, alike


def test_a_sentence_has_both_numbers_only_where_they_differ_as_written():
    assert (
        f"{Both(0.98765)}" == "0.988" and f"{Both(0.98765, 1.0234):.2}" == "0.99 (unchanged 1.02)"
    )
    assert f"{Both(0.25, 0.5):%}" == "25 % (unchanged 50 %)"
    assert f"{Both(0.12345, 0.12346):3}" == "0.123"  # another number, written alike
    assert Both(0.25, 0.5).arrow("%") == "50 % → 25 %" and Both(0.25, 0.2500001).arrow() == "0.250"
    assert f"{Both('a', 'b')}" == "a (unchanged b)" and f"{Both('a', 'a')}" == "a"


def test_an_arrow_says_what_happened_and_stands_only_where_it_shows():
    assert Both(0.183, 0.952).arrow("%") == "95 % → 18 %" and Both(0.952).arrow("%") == "95 %"
    assert Both(9.36, 15.86).arrow() == "15.9 → 9.36" and Both(0.12345, 0.12346).arrow() == "0.123"


def test_functions_are_mapped_over_both():
    both = Both(np.arange(3.0), np.ones(3))
    assert both.map(lambda x: float(x.sum())) == Both(3.0, 3.0)
    assert Both(2.0).map(lambda x: x + 1) == Both(3.0) and Both(2.0).all == (2.0,)
    assert Both(2.0, 1.0).all == (1.0, 2.0)


@pytest.mark.parametrize(
    "now, was, moved",
    [
        (1.0, None, False),
        (1.0, 1.0 + 1e-7, False),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), False),
        (np.ones(3), np.ones(4), True),
        ("a", "b", True),
        (1.0, 1.1, True),
    ],
)
def test_rounding_is_no_change(now, was, moved):
    assert Both(now, was).moved == moved


def test_a_table_with_texts_is_compared_column_by_column():
    table = pd.DataFrame(
        {"token": ["a", None], "loss": [1.0, np.nan], "rank": pd.array([1, None], dtype="Int64")}
    )
    assert alike(table, table.copy()) and alike(table, table.assign(loss=[1 + 1e-7, np.nan]))
    for other in (
        table.assign(loss=[1.1, np.nan]),
        table.assign(token=["b", None]),
        table.assign(rank=pd.array([1, 2], dtype="Int64")),
        table[:1],
        table[["token"]],
    ):
        assert not alike(table, other) and not alike(other, table)


def test_alike_is_up_to_rounding():
    one = np.array([1.0, 200.0, np.nan])
    assert alike(one, one * (1 + 1e-6)) and not alike(one, one * 1.001)
