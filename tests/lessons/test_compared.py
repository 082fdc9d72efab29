"""Bits a byte of the held-out text: against the training's own measurement, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.analysis.tokens import chapter
from gptviz.engine.sample import passages
from gptviz.lessons import compared
from gptviz.lessons.mlp import MLP, Recipe
from gptviz.training.baselines import fit_bigram
from gptviz.training.corpus import Book
from gptviz.training.evaluate import score_book, together


def test_the_counts_cost_what_the_training_s_own_measurement_says():
    """`score_book`, which made the model card, with a tokenizer of characters in place of the BPE."""

    class Characters:
        tokenizer = compared.tokenizer_for(chapter())

        def encode_ordinary(self, text):
            return self.tokenizer.encode(text)

        def encode_single_token(self, _):
            return self.tokenizer.encode("\n")[0]

        def decode_bytes(self, ids):
            return self.tokenizer.decode(ids).encode()

    ids = np.array(Characters.tokenizer.encode(chapter()), dtype=np.uint16)
    bigram = fit_bigram(ids, len(Characters.tokenizer.vocabulary))
    predictors = {"bigram": bigram.nats, "unigram": bigram.unigram.nats}
    books = [Book(p.author, p.title, p.year, p.text) for p in passages()]
    whole = together([score_book(book, Characters(), predictors) for book in books])
    found = compared.counted(chapter())
    assert found.bigram == pytest.approx(whole["bits_per_byte"]["bigram"])
    assert found.unigram == pytest.approx(whole["bits_per_byte"]["unigram"])
    assert whole["bytes"] == compared.held_out_bytes()
    assert found.blind == pytest.approx(math.log2(72))  # every character of both texts is one byte
    assert found.trigram < found.bigram < found.unigram < found.blind


def test_a_trigram_is_its_formula_and_its_probabilities_add_up_to_1():
    tokenizer = compared.CharacterTokenizer("abcd")
    ids = np.array(tokenizer.encode("abcabcabdabcdcba" * 4))
    trigram = compared.fit_trigram(ids, fit_bigram(ids.astype(np.uint32), 4))
    text = "abcabcabdabcdcba" * 4
    for two in ("ab", "ca", "dd"):  # the last one never stood there
        chances = []
        for third in "abcd":
            three = np.array(tokenizer.encode(two + third))
            (nats,) = trigram.nats(three)
            prior = math.exp(-trigram.bigram.nats(three)[1])
            times = sum(text[i : i + 3] == two + third for i in range(len(text)))
            contexts = sum(text[i : i + 2] == two for i in range(len(text) - 2))
            k = trigram.strength
            assert math.exp(-nats) == pytest.approx((times + k * prior) / (contexts + k))
            chances.append(math.exp(-nats))
        assert sum(chances) == pytest.approx(1)


def test_an_mlp_that_knows_nothing_costs_a_blind_guess():
    tokenizer = compared.tokenizer_for(chapter())
    model = MLP.start(len(tokenizer.vocabulary), Recipe())
    model.weights["output"][:] = 0
    assert compared.mlp_bits(model, tokenizer) == pytest.approx(math.log2(72), rel=1e-6)


@given(st.integers(2, 40), st.integers(2, 12))
def test_every_token_but_the_first_is_predicted_once(length, context):
    found = compared.windows(range(length), context)
    assert [i for window in found for i in window[1:]] == list(range(1, length))
    assert all(2 <= len(window) <= context for window in found)
