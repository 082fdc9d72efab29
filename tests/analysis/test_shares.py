"""Shares of a number as bars that begin where the one before ends: nothing is lost, the last is the sum."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.analysis.shares import Waterfall, portion, waterfall
from gptviz.both import Both

SHARES = st.lists(st.integers(-99, 99), min_size=1, max_size=30).map(
    lambda some: np.array(some) / 10
)


@given(SHARES, st.integers(1, 15))
def test_no_share_is_lost_and_the_largest_stand_alone(values, count):
    order = waterfall(values, count)
    assert sorted(np.concatenate(order)) == list(range(len(values)))
    alone = [values[rows[0]] for rows in order[:count]]
    assert alone == sorted(alone, reverse=True) and len(order) == min(count + 1, len(values))
    rest = [values[i] for i in order[-1]] if len(values) > count else []
    assert max(map(abs, rest), default=0) <= min(map(abs, alone))


@given(SHARES)
def test_bars_go_on_where_the_one_before_ends_up_to_the_sum(values):
    total = values.sum() + 1.5  # of the run as it is: whatever it is given, it is drawn
    names = [f"part {i}" for i in range(len(values))]
    bars = Waterfall.of(names, Both(np.append(values, total), np.append(2 * values, 7.0)))
    for one, times, end in ((bars.values.now, 1, total), (bars.values.was, 2, 7.0)):
        assert np.allclose(one[:-1].sum(), times * values.sum()) and one[-1] == end
    assert np.allclose(bars.base[1:-1], np.cumsum(bars.values.now)[:-2])
    assert bars.base[0] == bars.base[-1] == 0 and bars.names[-1] == "sum"
    assert len(bars.names) == len(bars.base) == len(bars.written) == len(bars.says.now)
    for name, value in zip(bars.names[:12], bars.values.now, strict=False):
        assert name == "sum" or value == values[int(name.removeprefix("part "))]


@pytest.mark.parametrize(
    "part, whole, says",
    [
        (7.95, 15.86, "about half"),
        (-7.95, -15.86, "about half"),
        (99, 100, "almost all"),
        (3.0, 3.0, "all"),
        (41, 100, "41 %"),
        (1, 3, "about a third"),
        (5, 100, "5 %"),
        (2.0, 1.0, None),
        (-1.0, 3.0, None),
        (0.0, 3.0, None),
        (1.0, 0.0, None),
    ],
)
def test_a_portion_is_said_in_words_where_a_term_is_a_part_of_its_sum(part, whole, says):
    assert portion(part, whole) == says
