"""The small MLP against torch: its forward pass, its gradients by hand, its optimizer."""

import numpy as np
import pytest
import torch

from gptviz.analysis.tokens import chapter
from gptviz.lessons.adam import Adam
from gptviz.lessons.bigram import count
from gptviz.lessons.mlp import MLP, Recipe, examples, train, write

SMALL = Recipe(context=3, embedding=4, hidden=5, steps=30, batch=16)


@pytest.fixture(scope="module")
def ids():
    counts = count(chapter())
    return np.array(counts.tokenizer.encode(chapter())), len(counts.characters)


def test_the_examples_are_every_place_with_what_stands_before_it():
    before, came = examples(np.array([5, 6, 7, 8]), 2)
    assert before.tolist() == [[5, 6], [6, 7]] and came.tolist() == [7, 8]
    with pytest.raises(ValueError, match="needs more than that"):
        examples(np.array([1, 2]), 2)


def test_loss_and_gradients_are_autograd_s():
    model = MLP.start(9, SMALL)
    rng = np.random.default_rng(1)
    before = rng.integers(0, 9, (20, 3))
    came = rng.integers(0, 9, 20)
    weights = {name: torch.tensor(w, requires_grad=True) for name, w in model.weights.items()}
    joined = weights["embedding"][torch.from_numpy(before)].flatten(1)  # (b, n, d) -> (b, n d)
    active = torch.tanh(joined @ weights["hidden"] + weights["hidden_bias"])
    logits = active @ weights["output"] + weights["output_bias"]
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(came))
    loss.backward()
    own, gradients = model.loss_and_gradients(before, came)
    assert own == pytest.approx(loss.item(), rel=1e-6)
    assert np.allclose(
        model.log_probabilities(before), torch.log_softmax(logits, 1).detach(), atol=1e-6
    )
    assert set(gradients) == set(weights)
    for name, weight in weights.items():
        assert np.allclose(gradients[name], weight.grad.numpy(), atol=1e-7), name


def test_adam_takes_torch_s_steps():
    rng = np.random.default_rng(2)
    start = rng.normal(size=(3, 4))
    pulls = rng.normal(size=(5, 3, 4))
    twin = torch.nn.Parameter(torch.from_numpy(start.copy()))
    theirs = torch.optim.AdamW([twin], lr=0.05, betas=(0.9, 0.99), weight_decay=0.1)
    ours = Adam({"w": start}, decay=0.1)
    weights = {"w": start}
    for pull in pulls:
        weights = ours.step(weights, {"w": pull}, 0.05)
        twin.grad = torch.from_numpy(pull)
        theirs.step()
    assert np.allclose(weights["w"], twin.detach().numpy(), atol=1e-12)


def test_training_is_seeded_and_learns(ids):
    states = list(train(*ids, SMALL))
    again = list(train(*ids, SMALL))
    assert [state.step for state in states] == list(range(31))
    assert states[-1].loss == again[-1].loss and states[0].loss is None
    assert states[-1].model.nats(ids[0]).mean() < states[0].model.nats(ids[0]).mean() - 0.2
    size = sum(w.size for w in states[0].model.weights.values())
    assert size == SMALL.parameters(ids[1])


def test_further_back_is_better_than_a_bigram(ids):
    """On the text it learns from: the least that a bigram can reach is the counts' own loss."""
    *_, last = train(*ids, Recipe(steps=400))
    assert last.model.nats(ids[0]).mean() < count(chapter()).loss - 0.2


def test_what_it_writes_is_seeded_and_known(ids):
    model = MLP.start(ids[1], SMALL)
    first = write(model, [1, 2, 3, 4], 40, seed=5)
    assert first == write(model, [1, 2, 3, 4], 40, seed=5) != write(model, [1, 2, 3, 4], 40, seed=6)
    assert len(first) == 40 and min(first) >= 0 and max(first) < ids[1]


def test_sizes_that_no_model_has():
    with pytest.raises(ValueError, match="hidden is 0"):
        Recipe(hidden=0)
