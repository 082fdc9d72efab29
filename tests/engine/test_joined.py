"""Two traces of one pass are one trace: what it holds, and what is refused."""

import pytest
import torch

from gptviz import Reduction
from tests.conftest import random_lm

TEXT = "The cat sat on the mat, and the cat slept."


def total(value):
    return float(value.sum())


def test_joined_holds_what_both_hold(lm):
    whole = lm.trace(TEXT)
    one = lm.trace(TEXT, keep=["attn", ("q", 1)], reduce=[Reduction("z", "z", total)])
    other = lm.trace(TEXT, keep=[("q", 0), ("q", 1), "embed"], reduce=[Reduction("v", "v", total)])
    joined = one.joined(other)
    assert joined.sites() == [key for key in whole.sites() if key[0] in ("embed", "attn", "q")]
    for key in joined.sites():
        assert torch.equal(joined[key], whole[key])
    assert joined.reduced("z") == [total(whole["z", b]) for b in range(2)]
    assert joined.reduced("v") == [total(whole["v", b]) for b in range(2)]
    assert torch.equal(joined.logits(-1), whole.logits(-1))
    assert max(one.nbytes, other.nbytes) < joined.nbytes < one.nbytes + other.nbytes
    assert joined.joined(one).nbytes == joined.nbytes


def test_holds_says_whether_all_of_it_is_there(lm):
    trace = lm.trace(TEXT, keep=["attn", ("q", 1)], reduce=[Reduction("z", "z", total)])
    assert trace.holds(["attn"]) and trace.holds([("attn", 0), ("q", 1)]) and trace.holds(())
    assert not trace.holds(["q"]) and not trace.holds(None) and not trace.holds(["embed"])
    assert trace.holds(["attn"], [Reduction("z", "z", total)])
    assert not trace.holds((), [Reduction("z", "v", total)])
    assert lm.trace(TEXT).holds() and lm.trace(TEXT).holds(["mlp_act"])


def test_two_gradients_are_not_joined(lm):
    """One of them would be lost without a word."""
    one = lm.trace(TEXT, grad=5)
    joined = lm.trace(TEXT, keep=["attn"]).joined(one)
    assert torch.equal(joined.grad["z", 0], one.grad["z", 0]) and joined.joined(one)
    with pytest.raises(ValueError, match="each has its own gradient"):
        joined.joined(lm.trace(TEXT, grad=6))


def test_two_copies_of_one_model_can_be_joined(lm):
    joined = lm.trace(TEXT, keep=["attn"]).joined(random_lm().trace(TEXT, keep=["q"]))
    assert joined.holds(["attn", "q"])
