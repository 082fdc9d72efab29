"""How far a prediction moved, against scipy-free arithmetic written out."""

import math

import pytest
import torch

from gptviz.analysis.moved import kl_bits, prediction


def test_two_coins():
    before, after = torch.tensor([0.75, 0.25]).log(), torch.tensor([0.5, 0.5]).log()
    expected = 0.75 * math.log2(0.75 / 0.5) + 0.25 * math.log2(0.25 / 0.5)
    assert kl_bits(before, after) == pytest.approx(expected, rel=1e-6)
    assert kl_bits(before, before + 3) == pytest.approx(0, abs=1e-9)  # logits are free up to a constant


def test_both_favourites_with_both_probabilities():
    found = prediction(torch.tensor([2.0, 0.0, -1.0]), torch.tensor([0.0, 3.0, -1.0]))
    p, q = torch.tensor([2.0, 0.0, -1.0]).softmax(0), torch.tensor([0.0, 3.0, -1.0]).softmax(0)
    assert (found.token, found.now) == (0, 1)
    assert (found.before, found.after) == pytest.approx((p[0].item(), q[0].item()))
    assert (found.now_before, found.now_after) == pytest.approx((p[1].item(), q[1].item()))
    assert found.logits == 3 and not found.nothing
    assert prediction(torch.zeros(3), torch.full((3,), 1e-6)).nothing
