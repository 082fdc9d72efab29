"""The glossary: its definitions are single sentences, and what it makes of a text is safe to draw as HTML."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.ui.words import GLOSSARY, defined, explain
from tests.specs import Reader


def terms(read):
    """The attributes of an HTML's terms."""
    return [attributes for _, attributes in read.tags]


def test_a_definition_is_one_sentence_that_can_be_reached():
    for name, says in GLOSSARY.items():
        assert re.fullmatch(r"[A-Z].*[^.]\.", says) and ". " not in says
        (found,) = terms(Reader(defined(name)))
        assert found["tabindex"] == "0" and found["data-definition"] == says
        assert found["aria-label"] == f"{name}: {says}"


def test_only_the_first_occurrence_is_marked():
    text = "Tokens are `token` or token: a token has a query; queries a key"
    read = Reader(explain(text, "token", "query"))
    assert [found["data-definition"] for found in terms(read)] == [GLOSSARY["token"], GLOSSARY["query"]]
    assert "".join(read.texts) == text


def test_the_longer_term_comes_first_and_parts_of_words_do_not_count():
    text = "subheads: attention weights, head-on, then attention"
    read = Reader(explain(text, "attention", "attention weight", "head"))
    assert [found["aria-label"].split(":")[0] for found in terms(read)] == ["attention weights", "attention"]


def test_code_is_left_as_it_is():
    assert explain("`<b>` and ``a`<i>``", "token") == "`<b>` and ``a`<i>``"


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x>",
        "``<img>`",
        "\\`<img>`",
        "a\n`\n<img>\n`",
        "\\\\<img>",
        "`a`<img>`",
        "``` <img>",
        "&lt;img&gt;",
    ],
)
def test_nothing_else_becomes_html(text):
    made = explain(text, "token")
    assert not re.search(r"(?<!\\)<img", made)
    assert "<" not in made.replace("`<", "")


@given(st.text("`<>a\\ \n&token", max_size=20))
def test_outside_of_code_no_sign_of_html_is_left(text):
    made = re.sub(r"\\.|(`+)(?!`)[^\n]*?(?<!`)\1(?!`)|`+", "", explain(text, "token"))
    assert {tag for tag, _ in Reader(made).tags} <= {"span"}


def test_a_sign_is_a_term_where_it_stands_alone():
    (found,) = terms(Reader(explain("A · is a space, as in ·cat and a·b", "·")))
    assert found["data-definition"] == GLOSSARY["·"]


def test_an_unknown_term_is_named():
    for call in (lambda: defined("flux"), lambda: explain("no such word", "flux")):
        with pytest.raises(ValueError, match="'flux' is not in the glossary; it has"):
            call()
