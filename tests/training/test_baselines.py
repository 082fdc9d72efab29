"""The unigram and the bigram against counts by hand and against plain loops."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.training.baselines import STRENGTHS, Bigram, Unigram, fit_bigram

IDS = np.array([0, 1, 0, 1, 0, 2, 1, 0], dtype=np.uint16)  # 0 four times, 1 three times, 2 once


def test_unigram_by_hand():
    unigram = Unigram.count(IDS, vocab_size=4)
    assert unigram.probabilities.tolist() == [5 / 12, 4 / 12, 2 / 12, 1 / 12]  # one added to each
    nats = unigram.nats(np.array([2, 0, 3]))  # the first token is not predicted
    assert nats.tolist() == pytest.approx([math.log(12 / 5), math.log(12)])


@given(st.lists(st.integers(0, 6), min_size=2, max_size=60), st.sampled_from(STRENGTHS))
def test_every_context_has_a_whole_distribution(ids, strength):
    bigram = Bigram.count(np.array(ids), vocab_size=7, strength=strength)
    for first in range(7):
        total = sum(math.exp(-bigram.nats(np.array([first, second]))[0]) for second in range(7))
        assert total == pytest.approx(1)


@given(
    st.lists(st.integers(0, 4), min_size=12, max_size=80),
    st.lists(st.integers(0, 4), min_size=2, max_size=30),
)
def test_against_plain_loops(training, text):
    pairs = list(pairwise(training))
    bigram = Bigram.count(np.array(training), vocab_size=5, strength=3.0)
    for nats, a, b in zip(bigram.nats(np.array(text)), text[:-1], text[1:], strict=True):
        prior = (training.count(b) + 1) / (len(training) + 5)
        counted = sum(pair == (a, b) for pair in pairs)
        probability = (counted + 3 * prior) / (sum(pair[0] == a for pair in pairs) + 3)
        assert nats == pytest.approx(-math.log(probability))


def test_the_largest_vocabulary_of_16_bits_does_not_overflow():
    ids = np.array([65535, 65534, 65535, 65534, 0], dtype=np.uint16)
    bigram = Bigram.count(ids, vocab_size=65536, strength=1e-9)
    assert bigram.nats(np.array([65535, 65534], dtype=np.uint16))[0] == pytest.approx(0, abs=1e-6)


def test_strength_is_chosen_on_the_slice():
    rng = np.random.default_rng(0)
    chain = np.zeros(4000, dtype=np.int64)
    for i in range(1, 4000):  # each token nearly decides the next
        chain[i] = (chain[i - 1] * 3 + 1) % 20 if rng.random() < 0.95 else rng.integers(20)
    noise = rng.integers(0, 20, 4000)  # each token says nothing of the next
    sure = fit_bigram(chain, 20)
    unsure = fit_bigram(noise, 20)
    assert sure.strength < unsure.strength
    for ids, fitted in ((chain, sure), (noise, unsure)):
        trial = Bigram.count(ids[:3800], 20, 1.0)
        losses = {k: trial.nats(ids[3800:], k).mean() for k in STRENGTHS}
        assert fitted.strength == min(losses, key=losses.get)
        assert fitted.contexts.sum() == 3999  # counted again over everything


def test_too_few_tokens_are_refused():
    with pytest.raises(ValueError, match="3 tokens are too few"):
        fit_bigram(np.array([1, 2, 3]), 5)
