"""Tokens shows a model's chat templates as texts, and says that they are applied to nothing."""

from dataclasses import replace

from gptviz.tokenizer.chat import LONGEST_TEMPLATE, chat_of
from tests.conftest import random_lm
from tests.pages.test_any_model import use
from tests.specs import prose
from tests.tokenizer.chats import LLAMA3, QWEN2

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
