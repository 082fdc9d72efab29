"""The choice of the two tokens of a question: by id in the address, from the candidates, or typed."""

import json

import pytest

from gptviz.tokenizer import get_encoding
from gptviz.ui.shell.state import UNSAID_TEXT
from gptviz.ui.shell.target import MEAN, find_token
from gptviz.ui.words import no_single_token, show_id
from tests.conftest import random_lm
from tests.specs import run_app


def app():
    import streamlit as st

    from gptviz.ui.shell.bench import PARAMS, bar
    from gptviz.ui.shell.page import read_text, start_page, trace

    frame = start_page("Overview", choices=PARAMS)
    found = bar(trace(read_text(frame)))
    st.json({"token": found.token, "against": found.against})


def run(**query):
    return run_app(app, **query)


def typed_into(at, key, text):
    """AppTest knows only the options that were drawn: a browser sends any text."""
    box = at.selectbox(key=key)
    box.options.append(text)
    box.set_value(text).run()
    assert not at.exception, [error.message for error in at.exception]


def chosen(at):
    return json.loads(at.json[0].value)


@pytest.fixture(scope="module")
def first(mini):
    """The model's five first choices after the example."""
    return mini.trace(UNSAID_TEXT, keep=[]).next_tokens(5)["id"].tolist()


def test_without_a_choice_it_is_what_the_text_asks(first):
    at = run()
    assert chosen(at) == {"token": first[0], "against": first[1]}
    assert [at.selectbox(key=key).value for key in ("target_box", "against_box")] == [None, None]
    at.selectbox(key="against_box").set_value(first[2]).run()
    assert chosen(at) == {"token": first[0], "against": first[2]}
    assert at.query_params["against"] == str(first[2])
    # now both are the same, and another word is asked for: what the text asks
    at.selectbox(key="target_box").set_value(first[2]).run()
    assert chosen(at) == {"token": first[2], "against": first[1]}
    assert any("Both words are" in caption.value for caption in at.caption)
    at.selectbox(key="against_box").set_value(MEAN).run()
    assert chosen(at) == {"token": first[2], "against": None}
    assert at.query_params["against"] == "mean"


def test_the_second_word_of_the_text_stands_against_the_first(first):
    assert chosen(run(target=first[1])) == {"token": first[1], "against": first[0]}


def test_the_address_says_any_two_tokens(first, mini):
    dog = mini.tokenizer.encode_single_token(b" dog")
    at = run(target=dog, against=3)
    assert chosen(at) == {"token": dog, "against": 3}
    assert at.selectbox(key="target_box").value == dog
    assert chosen(run(target=dog, against="mean")) == {"token": dog, "against": None}
    # no such token: as if not there
    assert chosen(run(target=10**5, against="x")) == {"token": first[0], "against": first[1]}


def test_a_typed_token_is_chosen(mini):
    at = run()
    typed_into(at, "target_box", "·town")
    assert chosen(at)["token"] == mini.tokenizer.encode_single_token(b" town")
    assert at.query_params["target"] == str(chosen(at)["token"])


def test_what_is_not_one_token_is_answered_and_changes_nothing(mini, first):
    at = run(target=first[2])
    typed_into(at, "target_box", "parrots")
    assert chosen(at)["token"] == first[2] and at.query_params["target"] == str(first[2])
    pieces = [show_id(mini, i) for i in mini.encode("parrots")]
    assert len(pieces) == 3
    assert [warning.value for warning in at.warning] == [no_single_token("parrots", pieces, None)]
    typed_into(at, "against_box", "mill")
    assert at.button(key="target_spaced").label == "take `·mill`"
    at.button(key="target_spaced").click().run()
    assert chosen(at)["against"] == mini.tokenizer.encode_single_token(b" mill") and not at.warning


def test_another_model_gets_the_same_token_by_its_own_id(mini):
    town = mini.tokenizer.encode_single_token(b" town")
    at = run(target=town)
    at.query_params["model"] = at.session_state["model"] = "gpt2-untrained"
    at.run()
    assert not at.exception
    assert chosen(at)["token"] == get_encoding("gpt2").encode_single_token(b" town") != town


def test_every_token_of_the_vocabulary_can_be_typed_as_it_is_shown(mini):
    for token in range(0, mini.config.vocab_size, 397):
        found = find_token(mini, show_id(mini, token))
        assert found is not None and show_id(mini, found) == show_id(mini, token)
    assert find_token(mini, " town") == find_token(mini, "·town") == mini.encode(" town")[0]
    assert find_token(mini, "") is None and find_token(mini, "parrots") is None
    assert find_token(mini, "<|endoftext|>") == mini.config.vocab_size - 1


def test_a_padded_row_is_named_by_its_number():
    lm = random_lm(vocab_size=8200)
    assert find_token(lm, show_id(lm, 8195)) == 8195
