"""Prompts of any length, read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.ui.shell import state
from gptviz.ui.shell.prompt import READ_CHARACTERS, append, read
from tests.conftest import random_lm


def test_what_no_text_can_hold_is_not_appended(monkeypatch):
    monkeypatch.setattr(state, "change", lambda **changes: pytest.fail(f"the prompt became {changes}"))
    lm = random_lm(vocab_size=8192 + 64)
    assert "`<id 8200>`" in append(lm, lm.tokens(lm.encode("The cat")), 8200)


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
    ids, most = lm.encode(text), lm.config.context_length
    assert reading.ids == ids[:most] and bool(ids) == bool(text) and reading.truncated == (len(ids) > most)
