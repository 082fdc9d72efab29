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


def test_a_prompt_within_the_context_is_read_whole(lm):
    reading = read(lm, "The cat sat", special=False)
    assert reading.ids == lm.encode("The cat sat")
    assert reading.notice is None and not reading.truncated


def test_an_empty_prompt_has_no_ids(lm):
    assert read(lm, "", special=False).ids == []


def test_a_long_prompt_is_cut_at_the_context_and_says_so(lm):
    text = "word " * 300
    reading = read(lm, text, special=False)
    assert reading.ids == lm.encode(text)[: lm.config.context_length]
    assert reading.truncated
    assert f"{len(lm.encode(text))} tokens" in reading.notice
    assert "first 64 tokens" in reading.notice
    assert "kept" in reading.notice


def test_a_library_pasted_in_is_not_read_to_its_end(lm):
    reading = read(lm, "word " * READ_CHARACTERS, special=False)
    assert len(reading.ids) == lm.config.context_length
    assert "more than" in reading.notice


@pytest.mark.parametrize("special, count", [(True, 1), (False, None)])
def test_the_special_token_is_text_unless_switched_on(lm, special, count):
    ids = read(lm, "<|endoftext|>", special=special).ids
    assert (len(ids) == 1) == (count == 1)
    assert lm.decode(ids) == "<|endoftext|>"


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(lm, text):
    reading = read(lm, text, special=False)
    assert 0 <= len(reading.ids) <= lm.config.context_length
    assert bool(reading.ids) == bool(text)
