"""Other texts for a comparison: what is exchanged, what stays, and how many tokens it takes."""

import re

import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.analysis.alignment import differing
from gptviz.analysis.counterpart import counterpart
from gptviz.analysis.names import mentions, renamed
from gptviz.analysis.other_texts import (
    COMES_AGAIN,
    COPIED,
    FURTHER,
    HE_AND_SHE,
    NAME,
    ONE_TOKEN,
    ORDER,
    SWAP,
    THIRD,
    other_texts,
    told_apart,
    with_others_of,
)
from gptviz.analysis.prompts import NAMES, Prompt, indirect_objects
from gptviz.analysis.word_classes import GENDERED, HE, SHE, of_the_other
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.conftest import random_lm

GAVE = "When Tom and Mary left the garden, Tom gave the flowers to"
LONG = "When Tom and Anna left the garden, Tom gave the flowers to"  # of two tokens in mini
TEXTS = [
    UNSAID_TEXT,
    GAVE,
    LONG,
    "The capital of Italy is",
    "Monday, Tuesday, Wednesday,",
    "1, 2, 3,",
    "The king loved his daughter, but she did not love",
    "😀 Tom saw 😀 Mary. Tom",
    "Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr.",
    "for i in range(n):\n    for j in range(",
    "The cat sat on the",
]


def by_kind(lm, text, **options):
    return {other.kind: other for other in other_texts(lm, text, **options)}


def as_text(lm, text, **options):
    return {kind: other.text for kind, other in by_kind(lm, text, **options).items()}


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_is_cut_into_its_ids_and_says_whether_it_is_as_long(mini, text):
    others = other_texts(mini, text)
    length = len(mini.encode(text))
    assert others and others == other_texts(mini, text)
    for other in others:
        assert mini.encode(other.text) == list(other.ids) and other.text != text
        assert other.is_equal == (other.reason == "") and (
            len(other.ids) == length or not other.is_equal
        )
    assert len({other.text for other in others}) == len(others)
    equal = [other.is_equal for other in others]
    assert equal == sorted(equal, reverse=True) and equal[0]  # those of equal length first


def test_two_names_are_exchanged_everywhere(mini):
    others = other_texts(mini, GAVE)
    assert [other.kind for other in others] == [COMES_AGAIN, SWAP, THIRD, ORDER]
    texts = as_text(mini, GAVE)
    assert texts[SWAP] == "When Mary and Tom left the garden, Mary gave the flowers to"
    assert texts[COMES_AGAIN] == "When Tom and Mary left the garden, Mary gave the flowers to"
    assert texts[ORDER] == "When Mary and Tom left the garden, Tom gave the flowers to"
    third = re.fullmatch(r"When Tom and Mary left the garden, (\w+) gave .* to", texts[THIRD])
    assert third and third[1] in NAMES and len(mini.encode(f" {third[1]}")) == 1
    again = as_text(mini, texts[SWAP])
    assert again[SWAP] == GAVE  # an exchange undoes itself
    assert again[COMES_AGAIN] == "When Mary and Tom left the garden, Tom gave the flowers to"


def test_the_sentences_of_names_have_their_own_other_text(mini):
    """The corrupt text of `indirect_objects`, made independently, is the one whose other name comes again."""
    for prompt in indirect_objects(mini, 12):
        found = by_kind(mini, prompt.text)
        assert found[COMES_AGAIN].text == prompt.other
        swapped = found[SWAP].text
        answer, giver = (str(name).strip() for name in prompt.target)
        assert (swapped.count(answer), swapped.count(giver)) == (2, 1)
        assert [found[kind].is_equal for kind in (SWAP, THIRD, ORDER)] == [True] * 3


def test_prompts_take_other_texts_of_one_kind(mini):
    """Each text of `indirect_objects` names two persons; Anna's has none of its length."""
    prompts = indirect_objects(mini, 4)
    for prompt, swapped in zip(prompts, with_others_of(mini, prompts, SWAP), strict=True):
        answer, giver = (str(name).strip() for name in prompt.target)
        both = {answer: giver, giver: answer}
        # no comma stands behind a name
        assert swapped.other == " ".join(both.get(word, word) for word in prompt.text.split(" "))
        assert (swapped.text, swapped.target) == (prompt.text, prompt.target)
    assert with_others_of(mini, prompts, COMES_AGAIN) == prompts
    assert not with_others_of(mini, [Prompt(LONG)], SWAP)


def test_a_name_of_two_tokens_is_why_a_swap_is_not_as_long(mini):
    assert [len(mini.encode(f" {name}")) for name in ("Tom", "Anna")] == [1, 2]
    others = other_texts(mini, LONG)
    assert [other.kind for other in others] == [THIRD, COMES_AGAIN, SWAP, ORDER]
    swap = others[2]
    assert swap.text == "When Anna and Tom left the garden, Anna gave the flowers to"
    assert len(swap.ids) == len(mini.encode(LONG)) + 1
    assert swap.reason == (
        "“Tom” has 1 token, “Anna” has 2 tokens: this text has 15 tokens and yours 14."
    )
    order = others[3]  # as long, but "and" stands one further
    assert order.text == "When Anna and Tom left the garden, Tom gave the flowers to"
    assert len(order.ids) == 14 and not order.is_equal
    assert order.reason == (
        "“Tom” has 1 token, “Anna” has 2 tokens: both texts have 14 tokens, but some words stand at "
        "other positions."
    )


def test_where_letters_are_tokens_names_as_long_are_found():
    """In another model other names have as many tokens: it is its tokenizer that decides."""
    lm = random_lm()
    long_names = "When Zacharias and Tom left, Tom gave the flowers to"
    found = by_kind(lm, long_names)
    assert SWAP not in found and THIRD not in found  # nobody knows Zacharias
    assert by_kind(lm, LONG)[THIRD].is_equal


def test_repeated_names_are_all_exchanged_and_parts_of_words_stay(mini):
    text = "Tomato and Tom-cat: Tom's hat, Mary's hat, Tom, Tom and Maryland. Mary and Tom"
    swapped = as_text(mini, text)[SWAP]
    expected = "Tomato and Tom-cat: Mary's hat, Tom's hat, Mary, Mary and Maryland. Tom and Mary"
    assert swapped == expected
    assert as_text(mini, "Mr. Darcy saw Miss Kate. Darcy")[SWAP] == "Mr. Kate saw Miss Darcy. Kate"


WORDS = st.sampled_from(
    ["Tom", "Mary", "Tomato", "Mary-Jane", "saw", "'s", ".", "😀", "汤姆", "\n"]
)


@given(st.lists(WORDS, max_size=12), st.sampled_from(["", " "]))
def test_an_exchange_is_an_involution(words, blank):
    text = blank.join(words)
    swap = {"Tom": "Mary", "Mary": "Tom"}
    swapped = renamed(text, swap)
    assert renamed(swapped, swap) == text
    assert len(re.findall(r"(?<![\w-])Tom(?![\w-])", text)) == len(
        re.findall(r"(?<![\w-])Mary(?![\w-])", swapped)
    )
    assert all(text[m.start : m.end] == m.name for m in mentions(text))


def test_only_what_the_prediction_sees_decides(mini):
    """At ·garden nobody has come again, behind ·Tom somebody has."""
    ids = mini.encode(GAVE)
    second = [i for i, token in enumerate(ids) if mini.decode([token]) == " Tom"][-1]
    assert SWAP not in by_kind(mini, GAVE, position=second - 1, last_resort=False)
    assert as_text(mini, GAVE, position=second)[SWAP] == as_text(mini, GAVE)[SWAP]
    for position in (len(ids), -len(ids) - 1):
        with pytest.raises(ValueError, match="there is no position"):
            other_texts(mini, GAVE, position)
    with pytest.raises(ValueError, match="the text is empty"):
        other_texts(mini, "")


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("The capital of Italy is", "another country", r"The capital of Spain is"),
        ("Paris is in France. Madrid is in Spain. Rome is in", "another city", r".* (\w+) is in"),
        ("The day after Monday is", "another weekday", r"The day after (Saturday) is"),
        ("7 + 5 =", "another number", r"7 \+ ([468]) ="),
        ("The opposite of big is", "another opposite", r"The opposite of small is"),
        ("Monday, Tuesday, Wednesday,", FURTHER, r"(\w+), (\w+), (\w+),"),
        ("One, two, three,", FURTHER, r"Two, three, four,"),
        ("1, 2, 3,", FURTHER, r"2, 3, 4,"),
        ("10, 20, 30,", FURTHER, r"20, 30, 40,"),
        ("Monday, Tuesday and", FURTHER, r"(\w+), (\w+) and"),
        ("1, 2, 3 and", FURTHER, r"2, 3, 4 and"),
        ("first, second and third,", FURTHER, r"(\w+), (\w+) and (\w+),"),
    ],
)
def test_another_fact_is_of_the_same_class(mini, text, kind, expected):
    found = by_kind(mini, text)
    assert re.fullmatch(expected, found[kind].text), found[kind].text
    if kind != FURTHER:  # one word is another
        ours, theirs = (re.findall(r"\w+", t) for t in (text, found[kind].text))
        assert len(differing(ours, theirs)) == 1
        assert found[kind].is_equal


@pytest.mark.parametrize(
    "text", ["In May I may go", "He was second to none", "One day a man said", "Turkey with 3.14"]
)
def test_words_that_are_something_else_as_well_are_no_facts(mini, text):
    kinds = by_kind(mini, text, last_resort=False)
    assert not [kind for kind in kinds if kind not in (HE_AND_SHE, NAME)]


def test_he_and_she(mini):
    he = "The king loved his daughter, but she did not love"
    she = "The queen loved her son, but he did not love"
    assert as_text(mini, he)[HE_AND_SHE] == she and as_text(mini, she)[HE_AND_SHE] == he
    said = GENDERED.sub(of_the_other, "She saw her and her hat. He told him: it is his, not hers")
    assert said == "He saw him and his hat. She told her: it is hers, not his"
    written = "MR Smith said. the mr and Mrs King, HE and Her, ſhe"
    said = GENDERED.sub(of_the_other, written)
    assert said == "MRS Smith said. the mrs and Mr Queen, SHE and Him, ſhe"
    lost = as_text(mini, "Mary lost her key, so")[HE_AND_SHE]
    name, rest = lost.split(" ", 1)
    assert name in HE and rest == "lost his key, so" and not set(HE) & set(SHE)
    assert "Shell" in GENDERED.sub(of_the_other, "Shell, heather and history")


def test_the_copied_word_is_another_where_it_stood_first(mini):
    found = by_kind(mini, UNSAID_TEXT)[COPIED]
    ids = mini.encode(UNSAID_TEXT)
    (place,) = differing(ids, found.ids)
    assert mini.decode([ids[place]]) == " mill"
    expected = mini.trace(ids).logits(place - 1)
    assert int((expected > expected[found.ids[place]]).sum()) < 64  # the model expects it there
    said = [mini.trace(i, keep=[]).logits(-1) for i in (ids, found.ids)]
    assert int(said[0].argmax()) == ids[place]
    assert said[1][found.ids[place]] > said[0][found.ids[place]]
    many = "a steamboat came and a steamboat went and a"
    other = by_kind(mini, many)[COPIED]
    word = re.fullmatch(r"a (\w+) came and a \1 went and a", other.text)
    assert word and word[1] != "steamboat" and other.is_equal
    assert len(mini.encode(f" {word[1]}")) == len(mini.encode(" steamboat")) > 1


def test_what_followed_in_two_ways_is_not_copied(mini):
    assert COPIED not in by_kind(mini, "He saw the old mill. We sold the old barn. I like the old")
    assert COPIED not in by_kind(mini, "The cat sat on the")


def test_the_last_resort_is_one_other_token(mini):
    text = "The cat sat on the"
    (found,) = other_texts(mini, text)
    assert found.kind == ONE_TOKEN and found.ids == counterpart(mini, mini.encode(text)).ids
    assert other_texts(mini, text, last_resort=False) == []
    assert other_texts(mini, "汤姆和安娜", last_resort=False) == []
    assert all(len(other.ids) == 1 for other in other_texts(mini, "a"))


def test_two_tokens_tell_texts_apart_even_where_both_say_the_same_first(mini):
    one, other = (
        mini.trace(text, keep=[]).logits(-1) for text in ("The man took off", "The woman took off")
    )
    assert told_apart(one, other) == (int(one.argmax()), int(other.argmax()))
    peaked = torch.tensor([9.0, 1.0, 2.0, 0.0, -50.0])
    moved = torch.tensor([9.0, 2.0, 1.0, 0.0, 3.0])
    assert told_apart(peaked, moved, count=3) == (2, 4)
    assert told_apart(peaked, moved, count=99) == (2, 4)
    assert told_apart(moved, peaked, count=3) == (4, 2)
    assert told_apart(peaked, peaked) == told_apart(peaked, peaked, count=1) == (0, 2)  # first two
    assert told_apart(peaked, moved, count=1) == (2, 4)
    with pytest.raises(ValueError, match="one token"):
        told_apart(torch.zeros(1), torch.zeros(1))
