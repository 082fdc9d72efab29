"""Prompts of any length, read; and the examples, held to what they promise of the bundled model."""

import pytest
from hypothesis import given, settings, strategies as st

from gptviz.ui.shell import state
from gptviz.ui.shell.examples import OF_THE_BOOKS
from gptviz.ui.shell.prompt import READ_CHARACTERS, append, read
from tests.conftest import random_lm


def test_what_no_text_can_hold_is_not_appended(monkeypatch):
    monkeypatch.setattr(
        state, "change", lambda **changes: pytest.fail(f"the prompt became {changes}")
    )
    lm = random_lm(vocab_size=8192 + 64)
    tokens = lm.tokens(lm.encode("The cat"))
    assert "`<id 8200>`" in append(lm, tokens, 8200)
    assert append(lm, tokens, lm.encode("你")[0])  # part of a character


def test_half_a_surrogate_pair_is_read_as_the_replacement_character(lm):
    assert read(lm, "a\ud800", special=False) == read(lm, "a\ufffd", special=False)


def test_a_library_pasted_in_is_not_read_to_its_end(lm):
    reading = read(lm, "word " * READ_CHARACTERS, special=False)
    assert len(reading.ids) == lm.config.context_length
    assert "more than" in reading.notice


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(lm, text):
    reading = read(lm, text, special=False)
    ids = lm.encode(text)
    most = lm.config.context_length
    assert (
        reading.ids == ids[:most]
        and bool(ids) == bool(text)
        and reading.truncated == (len(ids) > most)
    )


def best(mini, label, k=1):
    return mini.trace(OF_THE_BOOKS[label].text, keep=()).next_tokens(k=k)["token"].tolist()


@pytest.mark.parametrize(
    "label, token", [("A copied passage", " mill"), ("A name comes back", " Z"), ("Counting", " I")]
)
def test_the_model_takes_it_from_the_text(mini, label, token):
    assert best(mini, label) == [token]


def test_the_quotation_closes(mini):
    assert '"' in best(mini, "A quotation closes")[0]


def test_what_is_said_of_the_examples_is_so(mini):
    """Where a text is to be changed, what the answer turns to; for the others see above."""
    text = OF_THE_BOOKS["He and she"].text
    he = mini.trace(text.replace(" she ", " he "), keep=()).next_tokens(k=1)
    assert he["token"][0] == " her"
    counted = OF_THE_BOOKS["Counting"].text + " I"
    assert mini.trace(counted, keep=()).next_tokens(k=1)["token"][0] == "."  # and not V
    once = mini.trace(OF_THE_BOOKS["Once upon a time"].text, keep=()).next_tokens(k=1)
    assert once["probability"][0] < 0.05


def test_him_and_her(mini):
    assert {" him", " her"} == set(best(mini, "He and she", k=2))
