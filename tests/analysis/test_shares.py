"""Sums and sorted shares of an attribution, on a table written by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis import attribution
from gptviz.analysis import shares as numbers
from tests.conftest import random_lm

TABLE = pd.DataFrame(
    {
        "part": ["embedding", "head", "head", "attention bias", "feed-forward", "head", "head",
                 "attention bias", "feed-forward", "final shift"],
        "block": pd.array([None, 0, 0, 0, 0, 1, 1, 1, 1, None], dtype="Int64"),
        "head": pd.array([None, 0, 1, None, None, 0, 1, None, None, None], dtype="Int64"),
        "contribution": [0.1, 1.0, -2.0, 0.01, 0.5, 3.0, 0.25, -0.02, -0.75, 0.4],
    }
)  # fmt: skip


def test_the_waterfall_falls_from_the_most_to_the_least_and_ends_at_the_sum():
    steps = numbers.waterfall(TABLE, 4)
    assert steps["label"].tolist() == [
        "block 1 · head 0", "block 0 · head 0", "block 1 · feed-forward", "block 0 · head 1", "6 other parts",
    ]  # fmt: skip
    assert steps["contribution"].tolist() == pytest.approx([3, 1, -0.75, -2, 1.24])
    assert steps["start"].tolist() == pytest.approx([0, 3, 4, 3.25, 1.25])
    assert steps["end"].iloc[-1] == pytest.approx(TABLE["contribution"].sum())
    assert steps["block"].tolist()[:2] == [1, 0] and steps["parts"].tolist() == [1, 1, 1, 1, 6]
    assert len(numbers.waterfall(TABLE, 10)) == 10
    assert numbers.waterfall(TABLE, 9)["label"].iloc[-1] == "block 0 · attention bias"


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.integers(1, 15))
def test_no_share_is_lost(values, count):
    table = pd.DataFrame({"part": "embedding", "block": pd.NA, "head": pd.NA, "contribution": values})
    steps = numbers.waterfall(table, count)
    assert steps["parts"].sum() == len(values)
    assert steps["end"].iloc[-1] == pytest.approx(sum(values), abs=1e-9)
    assert np.allclose(steps["start"].iloc[1:], steps["end"].iloc[:-1])


def test_the_grid_has_a_cell_for_every_part_of_a_block():
    values, columns = numbers.grid(TABLE, 2, 2)
    assert columns == ["head 0", "head 1", "attention bias", "feed-forward"]
    assert np.allclose(values, [[1, -2, 0.01, 0.5], [3, 0.25, -0.02, -0.75]])
    without = TABLE[TABLE["part"] != "attention bias"]
    assert numbers.grid(without, 2, 2)[1] == ["head 0", "head 1", "feed-forward"]


def test_groups_are_sums_the_largest_first():
    found = numbers.groups(TABLE)
    assert [(group.label, round(group.contribution, 6)) for group in found[:3]] == [
        ("the heads of block 1", 3.25),
        ("the heads of block 0", -1.0),
        ("the feed-forward of block 1", -0.75),
    ]
    assert sum(group.contribution for group in found) == pytest.approx(TABLE["contribution"].sum())
    assert {group.block for group in found if group.heads} == {0, 1}


def test_the_strongest_head_may_lower():
    assert numbers.strongest_head(TABLE) == (1, 0)
    assert numbers.strongest_head(TABLE.drop(index=5)) == (0, 1)


def test_direct_stands_beside_total():
    muted = pd.DataFrame(
        {
            "kind": ["head", "head", "attention", "feed-forward"] * 2,
            "block": pd.array([0] * 4 + [1] * 4, dtype="Int64"),
            "head": pd.array([0, 1, None, None] * 2, dtype="Int64"),
            "effect": [-1.5, 2.5, 0.5, -0.25, -3.0, 0.0, -4.0, 1.0],
        }
    )
    both = numbers.direct_and_total(TABLE, muted)
    assert both["direct"].tolist() == pytest.approx([1, -2, -0.99, 0.5, 3, 0.25, 3.23, -0.75])
    assert both["total"].tolist() == pytest.approx([1.5, -2.5, -0.5, 0.25, 3, 0, 4, -1])
    assert both["label"].tolist()[1:3] == ["block 0 · head 1", "block 0 · attention"]


def test_a_block_of_source_tokens_adds_up():
    table = numbers.source_table(np.array([[1.0, 2.0], [0.5, -4.0]]), ["a", "b"], 3)
    assert table["all of block 3"].tolist() == [1.5, -2.0, -0.5]
    assert table["head 1"].tolist() == [0.5, -4.0, -3.5] and table["token"].tolist() == ["a", "b", "sum"]


def test_on_a_real_table_groups_and_steps_sum_to_the_logit():
    lm = random_lm(4, n_layers=3)
    table = attribution(lm.trace([4, 5, 6]), lm.model, 9)
    total = table["contribution"].sum()
    assert sum(group.contribution for group in numbers.groups(table)) == pytest.approx(total)
    assert numbers.waterfall(table)["end"].iloc[-1] == pytest.approx(total)
    assert len(set(numbers.labels(table))) == len(table)
