"""The loss by hand against torch, transformers, and what the seeds print."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st

from gptviz.analysis import loss
from tests.conftest import random_lm
from tests.models.checkpoints import makers


def test_the_slides_example():
    logits = torch.tensor([loss.SLIDE_LOGITS])
    probabilities = logits.softmax(dim=1)[0]
    assert [round(p, 4) for p in probabilities.tolist()] == [0.2367, 0.2905, 0.1163, 0.1312, 0.2253]
    # every token as the target once: the printed minus logarithms
    every = loss.loss_steps(logits.expand(5, 5), torch.arange(5))
    assert every.loss.tolist() == pytest.approx(loss.SLIDE_LOSSES, abs=1.01e-4)
    found = loss.loss_steps(logits, torch.tensor([loss.SLIDE_TARGET]))
    # from logits of four digits
    assert found.cross_entropy == pytest.approx(1.4411031007766724, abs=5e-5)
    assert found.probability[0] == pytest.approx(0.2367, abs=5e-5)


@settings(max_examples=30)
@given(
    st.integers(1, 5), st.integers(1, 9), st.integers(0, 1000), st.sampled_from([0.1, 1.0, 30.0])
)
def test_it_is_torch_s_cross_entropy(n, size, seed, spread):
    drawing = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, size, generator=drawing)
    targets = torch.randint(size, (n,), generator=drawing)
    found = loss.loss_steps(logits, targets)
    expected = F.cross_entropy(logits.double(), targets, reduction="none")
    torch.testing.assert_close(found.loss, expected)
    torch.testing.assert_close(found.probability, logits.double().softmax(1)[range(n), targets])
    assert found.cross_entropy == pytest.approx(F.cross_entropy(logits.double(), targets).item())
    assert found.perplexity == pytest.approx(math.exp(expected.mean()))


def test_it_is_transformers_own_loss_with_labels():
    lm = random_lm()
    ids = [3, 14, 15, 9, 26, 5, 35]
    with torch.no_grad():
        truth = makers.in_transformers(lm.model, lm.config)
        out = truth(input_ids=torch.tensor([ids]), labels=torch.tensor([ids]))
    found = loss.loss_steps(out.logits[0, :-1], torch.tensor(ids[1:]))
    assert found.cross_entropy == pytest.approx(out.loss.item(), rel=1e-5)


def test_without_a_target_there_is_no_loss():
    assert math.isnan(
        loss.loss_steps(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)).cross_entropy
    )


def test_what_is_no_target_is_refused():
    for wrong in (-1, 4):
        with pytest.raises(
            ValueError, match=f"^{wrong} is no id of a vocabulary of 4.*ids are 0 to 3$"
        ):
            loss.loss_steps(torch.zeros(2, 4), torch.tensor([0, wrong]))


@pytest.mark.parametrize("size", [1, 2, 65, 8192, 50257])
def test_a_uniform_guess_costs_ln_v_whatever_comes(size):
    found = loss.loss_steps(torch.full((1, size), 3.0), torch.tensor([size // 2]))
    assert found.cross_entropy == pytest.approx(loss.uniform_loss(size), abs=1e-12)
    assert found.perplexity == pytest.approx(size)


def test_the_notebook_s_random_table_is_worse_than_a_uniform_guess():
    blind = loss.uniform_loss(loss.NOTEBOOK_CHARACTERS)
    assert blind == pytest.approx(4.1744, abs=5e-5) and blind < loss.NOTEBOOK_LOSS < blind + 1
    # the same kind of table, drawn here: unit-normal logits cost about half a nat more than equal ones
    logits = torch.randn(2000, loss.NOTEBOOK_CHARACTERS, generator=torch.Generator().manual_seed(0))
    found = loss.loss_steps(logits, torch.zeros(2000, dtype=torch.long))
    assert 0.3 < found.cross_entropy - blind < 0.6
