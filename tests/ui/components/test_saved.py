"""What a saved picture is called, and what it says."""

import re

import pytest

from gptviz.ui.components.saved import Saved, shortened, stem


def test_a_stem_tells_pictures_apart_and_is_a_plain_file_name():
    assert stem("attention", "block5", "head0") == "gptviz-attention-block5-head0"
    assert stem("a/b\\c", "../x", "→", "GPT-2 (124M)", 3) == "gptviz-a-b-c-x-GPT-2-124M-3"
    assert Saved(stem("<id 5>", "中")).stem == "gptviz-id-5"


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "a/b", 'a"b', "x\n"])
def test_whatever_the_words_are_a_stem_is_a_plain_file_name(name):
    assert re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", stem(name))


def test_it_is_sent_as_it_is():
    saved = Saved("gptviz-x", "A title", ("one", "two"))
    assert saved.data() == {"stem": "gptviz-x", "title": "A title", "lines": ["one", "two"]}


@pytest.mark.parametrize("length", [1, 89, 90, 91, 92, 1000])
def test_a_long_line_keeps_both_its_ends(length):
    text = "".join(chr(97 + i % 26) for i in range(length))
    line = shortened(text)
    assert len(line) <= 90 and (line == text) == (length <= 90)
    assert line[:20] == text[:20] and line[-20:] == text[-20:]


def test_a_title_is_whole_where_it_names_a_logit_and_what_it_is_compared_with():
    title = "What each token gave to the logit of ·mill minus the mean of all through all heads of block 5"
    assert Saved("gptviz-x", title).data()["title"] == title


def test_a_text_of_many_lines_becomes_one():
    assert shortened("one\n two\t three ") == "one two three"
