"""How a wording is filled: which rows of a table, and which wordings, are drawn how often."""

import math
import random
from collections import Counter

import pytest

from gptviz.training.world.phrases import drawn_row, first_more_often
from gptviz.training.world.tables import DAYS


def test_the_first_of_many_are_drawn_more_often_and_every_one_is_drawn():
    chance = random.Random(1)
    counts = Counter(first_more_often([*range(100)], chance) for _ in range(40_000))
    assert set(counts) == {*range(100)}
    # half of the draws are even; of the others number n is drawn as log((n + 2) / (n + 1)) is to log(100)
    for number in (0, 1, 9, 49):
        share = 0.5 / 100 + 0.5 * math.log((number + 2) / (number + 1)) / math.log(100)
        assert counts[number] / 40_000 == pytest.approx(share, rel=0.25)


def test_the_days_of_a_week_are_drawn_as_often_as_one_another():
    chance = random.Random(2)
    counts = Counter(drawn_row(DAYS, chance)["day"] for _ in range(7_000))
    assert len(counts) == 7 and min(counts.values()) > 800
