"""How far a prediction moved, against scipy-free arithmetic written out."""

import math

import pytest
import torch

from gptviz.analysis import moved


def test_two_coins():
    before = torch.tensor([0.75, 0.25]).log()
    after = torch.tensor([0.5, 0.5]).log()
    expected = 0.75 * math.log2(0.75 / 0.5) + 0.25 * math.log2(0.25 / 0.5)
    assert moved.kl_bits(before, after) == pytest.approx(expected, rel=1e-6)
    # logits are free up to a constant
    assert moved.kl_bits(before, before + 3) == pytest.approx(0, abs=1e-9)


def test_both_favourites_with_both_probabilities():
    found = moved.prediction(torch.tensor([2.0, 0.0, -1.0]), torch.tensor([0.0, 3.0, -1.0]))
    p = torch.tensor([2.0, 0.0, -1.0]).softmax(0)
    q = torch.tensor([0.0, 3.0, -1.0]).softmax(0)
    assert (found.token, found.now) == (0, 1)
    assert (found.before, found.after) == pytest.approx((p[0].item(), q[0].item()))
    assert found.now_after == pytest.approx(q[1].item())
    assert found.logits == 3 and not found.nothing
    assert moved.prediction(torch.zeros(3), torch.full((3,), 1e-6)).nothing


def test_total_variation_of_rows():
    before = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    after = torch.tensor([[1.0, 0, 0], [0.0, 1.0, 0], [0.5, 0.3, 0.2]])
    assert moved.total_variation(before, after).tolist() == pytest.approx([0, 0.5, 0.3])
    assert moved.pattern_moved(before, after) == pytest.approx(0.4)
    assert moved.pattern_moved(before[:1, :1], after[:1, :1]) == 0
    assert moved.total_variation(before, 0 * before).tolist() == pytest.approx([1, 1, 1])
    assert moved.total_variation(before, before / 4).tolist() == pytest.approx([0.75] * 3)
    assert moved.total_variation(before / 4, before).tolist() == pytest.approx([0.75] * 3)


@pytest.mark.parametrize(
    ("n_tokens", "heads"), [(1, 48), (2, 48), (22, 48), (256, 48), (1024, 144)]
)
def test_the_rows_that_are_compared_fit_and_reach_to_the_end(n_tokens, heads):
    rows = moved.compared_rows(n_tokens, heads)
    assert len(set(rows)) == len(rows) and list(rows) == sorted(rows)
    assert 4 * heads * n_tokens * len(rows) <= moved.ROW_BYTES
    if n_tokens > 1:
        assert rows[-1] == n_tokens - 1 and rows[0] >= 1
    if 4 * heads * n_tokens**2 <= moved.ROW_BYTES:
        assert rows == tuple(range(1, n_tokens))


@pytest.mark.parametrize(
    ("rows", "expected"), [(9, range(1, 10)), (8, [2, 3, 4, 5, 6, 7, 8, 9]), (1, [9])]
)
def test_as_many_rows_are_compared_as_fit(monkeypatch, rows, expected):
    monkeypatch.setattr(moved, "ROW_BYTES", 4 * 3 * 10 * rows)
    assert moved.compared_rows(10, 3) == tuple(expected)
