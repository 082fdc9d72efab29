"""The bigram against collections.Counter, cross-entropy and autograd; the neural one finds the table."""

import math
import string
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.analysis.tokens import chapter
from gptviz.lessons.bigram import NeuralBigram, count, learn, write

# the 65 characters of the seed's input.txt (Karpathy's "Let's build GPT"), which is not shipped
SEED_CHARACTERS = "\n !$&',-.3:;?" + string.ascii_letters


@given(st.text(alphabet="abc 中\n", min_size=2, max_size=80))
def test_the_counts_are_counters(text):
    counts = count(text)
    expected = Counter(pairwise(text))
    assert counts.characters == tuple(sorted(set(text)))
    for i, first in enumerate(counts.characters):
        for j, second in enumerate(counts.characters):
            assert counts.pairs[i, j] == expected[first, second]
    nats = [-math.log(expected[pair] / Counter(text[:-1])[pair[0]]) for pair in pairwise(text)]
    assert counts.loss == pytest.approx(np.mean(nats), abs=1e-12)


def test_the_loss_and_its_gradient_are_those_of_an_embedding_and_cross_entropy():
    text = chapter()[:2000]
    counts = count(text)
    model = NeuralBigram.start(len(counts.characters), seed=7)
    ids = torch.tensor(counts.tokenizer.encode(text))
    table = torch.nn.Embedding.from_pretrained(torch.from_numpy(model.logits), freeze=False)
    loss = torch.nn.functional.cross_entropy(table(ids[:-1]), ids[1:])  # the seed's two lines
    loss.backward()
    assert model.loss(counts) == pytest.approx(loss.item(), rel=1e-12)
    assert np.allclose(model.gradient(counts), table.weight.grad.numpy(), atol=1e-15)


def test_the_neural_bigram_learns_the_counted_table():
    counts = count(chapter())
    steps = list(learn(counts))
    losses = [step.loss(counts) for step in steps]
    assert [step.step for step in steps] == list(range(401))
    assert all(loss > counts.loss for loss in losses)  # the counts' own is the least that there is
    assert losses[-1] == pytest.approx(counts.loss, abs=0.002)
    often = counts.firsts >= 50
    assert np.allclose(steps[-1].probabilities[often], counts.probabilities[often], atol=0.01)
    assert np.array_equal(list(learn(counts, steps=5))[-1].logits, steps[5].logits)  # seeded


def test_a_sample_is_drawn_from_the_rows():
    counts = count("abababac")
    ids = write(counts.probabilities, start=0, length=4000, seed=3)
    text = counts.tokenizer.decode(ids)
    assert set(pairwise("a" + text)) <= set(pairwise("abababac"))
    assert text.endswith("c") and len(text) < 4000  # nothing ever followed a c
    fair = np.array([[0.25, 0.75], [0.25, 0.75]])
    assert np.mean(write(fair, 0, 20_000, seed=1)) == pytest.approx(0.75, abs=0.01)
    assert write(fair, 0, 50, seed=1) == write(fair, 0, 50, seed=1)


@pytest.mark.parametrize("text", ["", "a"])
def test_a_text_without_a_pair_is_refused(text):
    with pytest.raises(ValueError, match="a pair needs two"):
        count(text)


# ---- what "Let's build GPT" prints, as far as it can be had without its text ----


def test_the_seeds_shape_and_first_loss_are_those_of_random_rows():
    counts = count(SEED_CHARACTERS)
    assert len(counts.characters) == 65
    rng = np.random.default_rng(0)
    losses = []
    x, y = rng.integers(0, 65, (2, 4, 8))
    assert NeuralBigram.start(65).logits[x].shape == (4, 8, 65)  # printed: torch.Size([4, 8, 65])
    for seed in range(200):  # each another table, and 32 other pairs
        x, y = rng.integers(0, 65, (2, 32))
        losses.append(-np.log(NeuralBigram.start(65, seed).probabilities[x, y]).mean())
    # ln V and half a nat for being sure of what it does not know; the printed 4.4837 is one such draw
    assert np.mean(losses) == pytest.approx(math.log(65) + 0.5, abs=0.05)
    assert min(losses) < 4.483732223510742 < max(losses)
