"""The card's own small parts; the whole of it is in test_commands.py."""

import doctest

import pytest

from gptviz.training import card
from gptviz.training.card import sparkline, table


def test_examples_run():
    assert doctest.testmod(card).failed == 0


def test_a_table():
    assert (
        table(["a", "b"], [[1, "x"], ["y", 2]]) == "| a | b |\n| --- | ---: |\n| 1 | x |\n| y | 2 |"
    )


@pytest.mark.parametrize(
    ("values", "bars"),
    [([1, 2, 3, 4, 5, 6, 7, 8], "▁▂▃▄▅▆▇█"), ([3, 3], "▁▁"), ([2.0], "▁"), ([8, 1, 4.5], "█▁▅")],
)
def test_a_sparkline(values, bars):
    assert sparkline(values) == bars


@pytest.mark.parametrize("points", [1, 5, 12, 13, 40, 50])
def test_the_curve_is_thinned_but_keeps_its_end(points):
    curve = [
        {
            "step": 200 * i,
            "tokens": 8e5 * i,
            "train": 5.0,
            "validation": 5 - i / 100,
            "seconds": 60.0 * i,
        }
        for i in range(1, points + 1)
    ]
    rows = card._curve_table(curve).splitlines()[2:]
    assert rows[-1].startswith(f"| {200 * points:,} |") and len(rows) <= 18
    assert len(set(rows)) == len(rows) >= min(points, 9)
