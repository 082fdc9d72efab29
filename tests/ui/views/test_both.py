"""Tables with both columns."""

import pandas as pd
import pytest

from gptviz.ui.views.both import both, caption


def test_the_unchanged_stands_before_its_own() -> None:
    changed = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 3.0], "rank": [1, 2]})
    unchanged = pd.DataFrame({"token": ["a", "b"], "bits": [0.5, 0.25], "rank": [7, 8]}, index=[5, 6])
    found = both(changed, unchanged, ["bits", "rank"])
    assert list(found) == ["token", "unchanged bits", "bits", "unchanged rank", "rank"]
    assert found["unchanged bits"].tolist() == [0.5, 0.25] and found["unchanged rank"].tolist() == [7, 8]
    assert found["bits"].tolist() == [2.0, 3.0] and list(changed) == ["token", "bits", "rank"]
    assert both(changed, None, ["bits"]) is changed
    with pytest.raises(ValueError, match="2 rows and 1 unchanged"):
        both(changed, unchanged[:1], ["bits"])


def test_a_table_says_that_it_has_both() -> None:
    assert caption("A row a token.", None) == "A row a token."
    assert caption("A row a token.", 1).startswith("A row a token. Columns that begin with `unchanged`")
