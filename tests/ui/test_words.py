"""Pieces of prose, and the glossary."""

import re
from dataclasses import replace

import pytest
import tiktoken
from hypothesis import given, strategies as st

from gptviz.digits import term
from gptviz.tokenizer.vocabulary import fitted, of_encoding
from gptviz.ui.words import (
    GLOSSARY,
    as_code,
    defined,
    duration,
    explain,
    is_named,
    is_whole,
    show_id,
)
from tests.conftest import random_lm
from tests.specs import Reader


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("·cat", "`·cat`"), ("`", "`` ` ``"), ("a`b", "``a`b``"), ("``", "``` `` ```"), ("$x$", "`$x$`"),
        (" ", "`   `"),
    ],
)  # fmt: skip
def test_a_token_is_code_whatever_it_is(label, written):
    assert as_code(label) == written


def test_a_signed_number_stands_in_brackets():
    assert (term("0.12"), term("−0.12")) == ("0.12", "(−0.12)")


def test_a_padded_row_goes_by_its_number(lm):
    assert show_id(lm, lm.encode(" cat")[0]) == "·cat"
    padded = lm.tokenizer.n_vocab
    assert show_id(lm, padded) == f"<id {padded}>"
    assert is_named(lm, padded - 1) and not is_named(lm, padded) and not is_whole(lm, padded)


def test_a_filled_up_vocabulary_has_the_same_names(lm):
    padded = lm.tokenizer.n_vocab
    filled = replace(lm, tokenizer=fitted(of_encoding(lm.tokenizer), "filled", padded + 8))
    for i in (padded - 1, padded, padded + 7):
        assert show_id(filled, i) == show_id(lm, i)
        assert is_named(filled, i) == is_named(lm, i) and is_whole(filled, i) == is_whole(lm, i)


def test_a_hole_in_the_vocabulary_goes_by_its_number():
    ranks = {bytes([i]): i for i in range(256)}
    encoding = tiktoken.Encoding(
        "holes", pat_str=".", mergeable_ranks=ranks, special_tokens={"<end>": 260}
    )
    lm = replace(random_lm(), tokenizer=encoding)
    assert [show_id(lm, i) for i in (97, 257, 260)] == ["a", "<id 257>", "<end>"]
    assert [is_named(lm, i) for i in (97, 257, 260)] == [True, False, True]


def test_a_text_cannot_end_in_a_piece_of_a_character(lm):
    first, *_ = lm.encode("🦜")
    assert is_named(lm, first) and not is_whole(lm, first)
    assert is_whole(lm, lm.encode("é")[-1]) == (len(lm.encode("é")) == 1)
    assert is_whole(lm, lm.encode(" cat")[0])


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (9000, "2 h 30 min")]
)
def test_a_duration_has_its_two_largest_units(seconds, said):
    assert duration(seconds) == said


# ---- the glossary: definitions are single sentences, what it makes of a text is safe to draw as HTML ----


def terms(read):
    """The attributes of an HTML's terms."""
    return [attributes for _, attributes in read.tags]


def test_a_definition_is_short_and_can_be_reached():
    for name, says in GLOSSARY.items():
        assert re.fullmatch(r"[A-Z].*[^.]\.", says) and says.count(". ") <= 1
        (found,) = terms(Reader(defined(name)))
        assert found["tabindex"] == "0" and found["data-definition"] == says
        assert found["aria-label"] == f"{name}: {says}"


@pytest.mark.parametrize("counted", ["position", "block", "head"])
def test_what_is_numbered_says_that_it_is_counted_from_0(counted):
    assert re.search(r"count\w* (starts at|from) 0", GLOSSARY[counted], re.IGNORECASE)


def test_only_the_first_occurrence_is_marked():
    text = "Tokens are `token` or token: a token has a query; queries a key"
    read = Reader(explain(text, "token", "query"))
    assert [found["data-definition"] for found in terms(read)] == [
        GLOSSARY["token"],
        GLOSSARY["query"],
    ]
    assert "".join(read.texts) == text


def test_the_longer_term_comes_first_and_parts_of_words_do_not_count():
    text = "subheads: attention weights, head-on, then attention"
    read = Reader(explain(text, "attention", "attention weight", "head"))
    assert [found["aria-label"].split(":")[0] for found in terms(read)] == [
        "attention weights",
        "attention",
    ]


def test_code_is_left_as_it_is():
    assert explain("`<b>` and ``a`<i>``", "token") == "`<b>` and ``a`<i>``"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<img src=x>",
            "``<img>`",
            "\\`<img>`",
            "a\n`\n<img>\n`",
            "\\\\<img>",
            "`a`<img>`",
            "``` <img>",
        ),
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
