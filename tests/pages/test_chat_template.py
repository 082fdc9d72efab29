"""Tokens shows a model's chat templates as texts, and says that they are applied to nothing."""

from dataclasses import replace

import pytest

import gptviz
from gptviz.tokenizer.chat import LONGEST_TEMPLATE, chat_of
from tests.conftest import random_lm
from tests.models.test_llamas import made
from tests.pages.test_any_model import use
from tests.specs import given, keys, prose
from tests.tokenizer.chats import LLAMA3, QWEN2, TEMPLATES

TEXT = "The cat sat on the mat."


def test_the_templates_stand_there_as_they_are(run_page, monkeypatch):
    hostile = "{{ '<script>alert(1)</script>' }} `**x**` {% for i in range(10**9) %}{% endfor %}"
    chat = chat_of({"default": LLAMA3, "**bold** rag": hostile, "qwen": QWEN2}, {})
    use(replace(random_lm(), chat=chat), "with a chat template", monkeypatch)
    at = run_page("tokens", text=TEXT)
    assert [subheader.value for subheader in at.subheader].count("Chat template") == 1
    assert [code.value for code in at.code[:3]] == [LLAMA3.strip(), hostile, QWEN2]
    said = prose(at)
    assert "gptviz puts nothing around what you type." in said
    assert "<script>" not in said
    assert "\\*\\*bold\\*\\* rag" in [expander.label for expander in at.expander][2]
    captions = "\n".join(caption.value for caption in at.sidebar.caption)
    assert "comes with a chat template" in captions


def test_a_model_without_one_says_nothing_of_it(run_page):
    at = run_page("tokens", text=TEXT)
    assert "chat" not in prose(at).lower()
    assert "Chat template" not in [subheader.value for subheader in at.subheader]


def test_one_that_is_too_long_is_not_shown_and_said(run_page, monkeypatch):
    chat = chat_of("x" * (LONGEST_TEMPLATE + 1), {})
    use(replace(random_lm(), chat=chat), "with a long template", monkeypatch)
    assert "has about 131,073 characters" in prose(run_page("tokens", text=TEXT))


@pytest.mark.parametrize("family", ["llama3", "qwen2"])
def test_what_it_makes_of_the_text_is_typed_by_a_click(run_page, monkeypatch, family):
    model, tokenizer = made(family, max_position_embeddings=256)
    if family == "llama3":
        tokenizer.bos_token = "<|begin_of_text|>"
    tokenizer.chat_template = TEMPLATES[family]
    lm = gptviz.wrap(model, tokenizer, name=f"tiny-{family}")
    use(lm, family, monkeypatch)
    at = run_page("tokens", text=TEXT)
    assert len(at.code) < len(run_page("tokens", text=TEXT, tok_chat="on").code)
    at.button("tok_chat_on").click().run()
    turns = [{"role": "user", "content": TEXT}]
    written = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert written.strip() in [code.value.strip() for code in at.code]
    at.button("tok_chat_type").click().run()
    # the ids are those that transformers gives the model: its special tokens each one, and one begin
    expected = tokenizer.apply_chat_template(turns, add_generation_prompt=True)["input_ids"]
    assert at.session_state["special"] is True
    assert lm.encode(at.session_state["text"], special_tokens=True) == expected
    pieces = given(at, "token_cards")["pieces"]
    assert [token["id"] for piece in pieces for token in piece["tokens"]] == expected
    assert "tok_chat_on" in keys(at, "tok_chat")


def test_a_template_that_fails_says_so(run_page, monkeypatch):
    chat = chat_of("{{ raise_exception('<b>no</b> *systems*') }}", {})
    use(replace(random_lm(), chat=chat), "with a failing template", monkeypatch)
    at = run_page("tokens", text=TEXT, tok_chat="on")
    (said,) = [warning.value for warning in at.warning]
    assert said.startswith("There is nothing to show: the chat template makes no text of it")
    assert "<b>" not in said and "*systems*" not in said.replace("\\*", "")
