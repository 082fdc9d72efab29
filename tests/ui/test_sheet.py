"""Both runs in a table: where `sheet` puts the changed and the unchanged numbers.

In pictures and sentences: the tests of the pages that it makes, tests/pages.
"""

import pandas as pd
import pytest

from gptviz.both import Both
from gptviz.ui import sheet
from tests.specs import Reader

NOW = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 3.0], "rank": [1, 2]})
WAS = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 0.25], "rank": [1, 2]}, index=[5, 6])


def test_below_a_row_that_is_another_stands_the_unchanged_one(monkeypatch):
    made = []
    monkeypatch.setattr(sheet.st, "html", made.append)
    rows = ["a", "2.000", "1", "b", "3.000", "2", "b, unchanged", "0.2500", "2"]
    for both, expected in ((Both(NOW, WAS), rows), (Both(NOW), rows[:6]), (Both(NOW, NOW.copy()), rows[:6])):
        sheet.table("steps", both)
        assert [text for text in Reader(made.pop()).texts if text in {*rows}] == expected


def test_joined_has_both_columns_row_by_row():
    found = sheet.joined(Both(NOW, WAS))
    assert list(found) == ["token", "unchanged bits", "bits", "rank"] and "unchanged bits" not in NOW
    assert found["unchanged bits"].tolist() == [2.0, 0.25]
    assert sheet.joined(Both(NOW)) is NOW
    with pytest.raises(ValueError, match="2 rows and 1 cannot"):
        sheet.joined(Both(NOW, WAS[:1]))
