"""Both runs in a table: where `sheet` puts the changed and the unchanged numbers; and why they are the same.

In pictures and sentences: the tests of the pages that it makes, tests/pages.
"""

from types import SimpleNamespace

import pandas as pd
import pytest

from gptviz import Edit
from gptviz.both import Both
from gptviz.ui import sheet
from tests.conftest import random_lm
from tests.specs import Reader

NOW = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 3.0], "rank": [1, 2]})
WAS = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 0.25], "rank": [1, 2]}, index=[5, 6])


def test_below_a_row_that_is_another_stands_the_unchanged_one(monkeypatch):
    made = []
    monkeypatch.setattr(sheet.st, "html", made.append)
    rows = ["a", "2.000", "1", "b", "3.000", "2", "b, unchanged", "0.2500", "2"]
    for both, expected in (
        (Both(NOW, WAS), rows),
        (Both(NOW), rows[:6]),
        (Both(NOW, NOW.copy()), rows[:6]),
    ):
        sheet.table("steps", both)
        assert [text for text in Reader(made.pop()).texts if text in {*rows}] == expected


def test_where_there_is_no_number_stands_a_dash():
    assert sheet._cells(("z", 2, 0.5, float("nan"), None), 2) == ["z", "2", "0.50", "–", "–"]


def test_joined_has_both_columns_row_by_row():
    found = sheet.joined(Both(NOW, WAS))
    assert (
        list(found) == ["token", "unchanged bits", "bits", "rank"] and "unchanged bits" not in NOW
    )
    assert found["unchanged bits"].tolist() == [2.0, 0.25]
    assert sheet.joined(Both(NOW)) is NOW
    with pytest.raises(ValueError, match="2 rows and 1 cannot"):
        sheet.joined(Both(NOW, WAS[:1]))


# ---- why a page shows the same with and without the app's changes, in sentences ----

HEAD = "z.4.3=zero"
EMBED = "embed@1=zero"


def why(*edits, site=("embed", None), position=0):
    """Of a text of three tokens and a model of six blocks."""
    config = random_lm(n_layers=6).config
    run = SimpleNamespace(edits=tuple(map(Edit.parse, edits)))
    labels = ["The", "·cat", "·sat"]
    scene = SimpleNamespace(
        lm=SimpleNamespace(config=config), run=run, tokens=labels, labels=labels
    )
    return sheet.why_same(scene, "the embeddings", [site], position)


def test_changes_that_could_matter_did_not_and_of_the_others_it_is_said_why():
    cannot = why(HEAD, EMBED)
    assert cannot.startswith("Block 4 head 3 off cannot affect the embeddings: it changes only")
    assert "Embeddings at “·cat” (position 1) off cannot" in cannot and "no effect" not in cannot
    many = why(*[HEAD] * 5)
    assert many.startswith(
        "Block 4 head 3 off, block 4 head 3 off and 3 more cannot affect the embeddings: they"
    )
    both = why(HEAD, "z.4.2=zero", EMBED)  # a sentence for each reason
    assert (
        both.count("cannot affect") == 2
        and "Block 4 head 3 off and block 4 head 2 off cannot" in both
    )
    could = why(EMBED, HEAD, position=1)
    assert could.startswith(
        "**Your changes have no effect on the embeddings**: the numbers are the same as before. Block 4"
    )
    assert (
        why(EMBED, position=1)
        == "**Your change has no effect on the embeddings**: the numbers are the same as before."
    )
