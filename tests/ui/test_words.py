"""Pieces of prose."""

from dataclasses import replace

import pytest
import tiktoken

from gptviz.digits import term
from gptviz.tokenizer.vocabulary import fitted, of_encoding
from gptviz.ui.words import as_code, duration, is_named, is_whole, show_id
from tests.conftest import random_lm


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("·cat", "`·cat`"),
        ("`", "`` ` ``"),
        ("a`b", "``a`b``"),
        ("``", "``` `` ```"),
        ("$x$", "`$x$`"),
        (" ", "`   `"),
    ],
)
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
    encoding = tiktoken.Encoding("holes", pat_str=".", mergeable_ranks=ranks, special_tokens={"<end>": 260})
    lm = replace(random_lm(), tokenizer=encoding)
    assert [show_id(lm, i) for i in (97, 257, 260)] == ["a", "<id 257>", "<end>"]
    assert [is_named(lm, i) for i in (97, 257, 260)] == [True, False, True]


def test_a_text_cannot_end_in_a_piece_of_a_character(lm):
    first, *_ = lm.encode("🦜")
    assert is_named(lm, first) and not is_whole(lm, first)
    assert is_whole(lm, lm.encode("é")[-1]) == (len(lm.encode("é")) == 1)
    assert is_whole(lm, lm.encode(" cat")[0])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (9000, "2 h 30 min")],
)
def test_a_duration_has_its_two_largest_units(seconds, said):
    assert duration(seconds) == said
