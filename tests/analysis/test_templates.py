"""A template with lists: its sentences are all different, of one kind, and drawn alike each time."""

import re
from itertools import product

import pytest
from hypothesis import given, strategies as st

from gptviz.analysis.other_texts import COMES_AGAIN, ORDER, SWAP, THIRD, other_texts
from gptviz.analysis.templates import (
    EXAMPLE,
    EXAMPLE_LISTS,
    LONGEST,
    LONGEST_SENTENCE,
    MOST,
    TRIED,
    WORDS,
    filled,
    holes,
    like,
    read_lists,
)
from tests.conftest import random_lm

LM = random_lm()
GAVE = "When {A} and {B} left, {B} gave it to"


def test_the_example_gives_a_hundred_sentences(mini):
    lists = read_lists(EXAMPLE_LISTS)
    found = filled(mini, EXAMPLE, lists)
    assert len(found.prompts) == MOST == len({prompt.text for prompt in found.prompts})
    assert dict(found.left_out) == {
        "Anna": "it is 2 tokens of mini, and an answer is one",
        "Sarah": "it is 3 tokens of mini, and an answer is one",
    }
    pattern = re.compile(r"When (\w+) and (\w+) went to the (\w+), (\w+) gave a (\w+) to")
    for prompt in found.prompts:
        answer, instead = (str(name)[1:] for name in prompt.target)
        first, second, place, giver, thing = pattern.fullmatch(prompt.text).groups()
        assert (first, second, giver) == (answer, instead, instead)
        assert place in lists["place"] and thing in lists["thing"] and first != second
        assert pattern.fullmatch(prompt.other).groups() == (first, second, place, first, thing)
        assert len(mini.encode(prompt.text)) == len(mini.encode(prompt.other))
        assert all(len(mini.encode(name)) == 1 for name in prompt.target)
    assert found == filled(mini, EXAMPLE, lists)
    assert found != filled(mini, EXAMPLE, lists, seed=1)
    assert filled(mini, EXAMPLE, lists, 7).prompts == found.prompts[:7]


def test_behind_each_sentence_stands_the_one_with_its_names_exchanged(mini):
    lists = read_lists(EXAMPLE_LISTS)
    for template in (EXAMPLE, "When {B} and {A} met, {B} and {thing} were seen by"):
        prompts = filled(mini, template, lists).prompts
        assert len(prompts) == MOST
        for one, two in zip(prompts[::2], prompts[1::2], strict=True):
            names = [str(name)[1:] for name in one.target]
            assert two.target == one.target[::-1] and two.order == one.order
            for texts in ((one.text, two.text), (one.other, two.other)):
                pieces = re.split(f"({'|'.join(names)})", texts[0])
                pieces[1::2] = [names[names[0] == name] for name in pieces[1::2]]
                assert texts[1] == "".join(pieces)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(0, 3))
def test_without_b_every_sentence_is_there_once_and_most_are_in_pairs(count, places, seed):
    words = ["mill", "house", "tree", "stone", "wall", "ship"][:count]
    lists = {"A": words, "B": words, "place": ["park", "store", "school"][:places]}
    template = "The {place} was near the old {A}. They came to the old"
    prompts = filled(LM, template, lists, seed=seed).prompts
    expected = {template.format(A=word, place=place) for word in words for place in lists["place"]}
    assert len(prompts) == len(expected) and {one.text for one in prompts} == expected
    whole = 2 * (count // 2) * places
    for one, two in zip(prompts[:whole:2], prompts[1:whole:2], strict=True):
        assert two.target == one.target[::-1] and two.text == one.other


def test_words_that_are_not_in_both_lists_stand_alone(mini):
    prompts = filled(mini, GAVE, read_lists("A: Tom, Mary; B: Mary, Tom, John")).prompts
    targets = [one.target for one in prompts]
    assert sorted(targets) == [
        (" Mary", " John"),
        (" Mary", " Tom"),
        (" Tom", " John"),
        (" Tom", " Mary"),
    ]
    assert abs(targets.index((" Mary", " Tom")) - targets.index((" Tom", " Mary"))) == 1


def test_the_other_texts_are_of_the_kind_that_is_asked_for(mini):
    """Each is what `other_texts` makes of the sentence, which reads names and no template."""
    template = "When {B} and {A} went to the {place}, {B} spoke to"
    lists = read_lists("A, B: Tom, Mary, John; place: park")
    for kind in (COMES_AGAIN, SWAP, ORDER):
        for prompt in filled(mini, template, lists, other=kind).prompts:
            (wanted,) = [one.text for one in other_texts(mini, prompt.text) if one.kind == kind]
            assert prompt.other == wanted
    for prompt in filled(mini, template, lists, other=THIRD).prompts:
        words = prompt.text.split()
        others = prompt.other.split()
        (place,) = [i for i, word in enumerate(words) if word != others[i]]
        assert words[place] == prompt.against.strip() and place == words.index("spoke") - 1
        assert {words[1], words[3], others[place]} == {"Tom", "Mary", "John"}
    with pytest.raises(ValueError, match="other is 'nothing'; it must be one of the other name"):
        filled(mini, template, lists, other="nothing")


names = st.lists(st.sampled_from(["Tom", "Mary", "John", "Kate"]), min_size=2, unique=True)
things = st.lists(st.sampled_from(["book", "key", "big red hat"]), min_size=1, unique=True)


@given(names, things)
def test_where_there_are_few_all_are_written(people, things):
    lists = {"A": people, "B": people, "thing": things}
    found = filled(LM, f"{GAVE} with the {{ thing }}", lists, other=SWAP)
    expected = {
        f"When {a} and {b} left, {b} gave it to with the {thing}"
        for a, b, thing in product(people, people, things)
        if a != b
    }
    assert {prompt.text for prompt in found.prompts} == expected and not found.left_out
    texts = [prompt.text for prompt in found.prompts]
    assert len(texts) == len(expected)
    by_text = {prompt.text: prompt for prompt in found.prompts}
    for (
        prompt
    ) in found.prompts:  # the other text is one of them, and its own other text is this one
        assert by_text[prompt.other].other == prompt.text
        assert by_text[prompt.other].target == prompt.target[::-1]


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_is_typed_gives_sentences_or_a_sentence(template, written):
    try:
        found = filled(LM, template, read_lists(written))
    except ValueError as error:
        assert len(str(error).split()) > 3
    else:
        assert found.prompts or found.left_out


def test_an_answer_need_not_have_its_rival_in_the_text(mini):
    found = filled(
        mini,
        "The old {A} stood there. She saw the old",
        read_lists("A, B: mill, barn\n\n"),
    )
    assert {(p.text, p.token, p.against, p.other) for p in found.prompts} == {
        (f"The old {a} stood there. She saw the old", f" {a}", f" {b}",
         f"The old {b} stood there. She saw the old")
        for a, b in (("mill", "barn"), ("barn", "mill"))
    }  # fmt: skip


def test_a_text_that_grows_is_left_out(mini):
    found = filled(mini, "{A} saw {B}. {A} saw", read_lists("A: Tom, Mary; B: Kate, Tom"))
    for text, why in found.left_out:
        a, b = re.match(r"(\w+) saw (\w+)", text).groups()
        counts = [len(mini.encode(f"{x} saw {y}. {x} saw")) for x, y in ((a, b), (b, a))]
        assert why == f"it has {counts[0]} tokens, its other text {counts[1]}"
        assert counts[0] != counts[1]
    assert len(found.prompts) + len(found.left_out) == 3  # Tom is not Tom


def test_a_text_whose_words_move_is_left_out(mini):
    """Both answers are one token behind a blank; at the beginning one of them is two, and at the end, too."""
    lists = read_lists("A, B: Mary, Tom, Kate, Jim, Ruth, Emma")
    found = filled(mini, "{A}: {B} saw|{B}.", lists, other=SWAP)
    moved = [text for text, why in found.left_out if why.startswith("some of its words")]
    kept = [prompt.text for prompt in found.prompts]
    assert moved and kept
    for text in (*moved, *kept):
        a, b = re.match(r"(\w+): (\w+)", text).groups()
        counts = [
            (len(mini.encode(x)), len(mini.encode(y))) for x, y in ((a, f"|{b}."), (b, f"|{a}."))
        ]
        assert sum(counts[0]) == sum(counts[1]) and (counts[0] == counts[1]) == (text in kept)


@pytest.mark.parametrize(
    ("template", "lists", "says"),
    [
        ("When they left", "A, B: Tom, Mary", "no names in braces"),
        ("{A} and {B} {plase}", "A, B: Tom, Mary; place: park", r"\{plase\} has no list \(did you mean place"),
        ("{A} and {B", "A, B: Tom, Mary", "a brace stands alone"),
        ("{A} and {B} {}", "A, B: Tom, Mary", r"\{\} has no list"),
        ("{place}", "place: park", r"\{A\} has no list; it is the answer"),
        ("{A}", "A: Tom", r"\{B\} has no list"),
        (GAVE, "A, B: Tom, Mary; place:", "the list of place is empty"),
        (GAVE, "A, B: ,", "the list of A is empty"),
        (GAVE, "A, B", "has no colon"),
        (GAVE, ": Tom", "has no name before its colon"),
        (GAVE, "A: Tom; A: Mary", "A has two lists"),
        ("The {place} in", "A, B: Tom, Mary; place: park", r"neither \{A\} nor \{B\}"),
        ("{A}" + "{x}" * 30, f"A, B: Tom, Mary; x: {'long' * 400}", "has up to 48,004 characters; at most 20,000"),
        (GAVE, "A, B: Tom", "need two different words"),
        (GAVE, "A: Zorblaxian; B: Tom", "none of the words of A is one token"),
        (GAVE, f"A: {', '.join(map(str, range(WORDS + 1)))}", f"at most {WORDS} are read"),
        (GAVE, "A" * (LONGEST + 1), "the lists have 2,001 characters"),
        ("{A}" * LONGEST, "A, B: Tom, Mary", "the template has 6,000 characters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_sentence(mini, template, lists, says):
    with pytest.raises(ValueError, match=says):
        filled(mini, template, read_lists(lists))


def test_too_many_are_refused(mini):
    lists = read_lists("A, B: Tom, Mary")
    for count, says in ((MOST + 1, "at most 100"), (0, "1 or more"), (1.5, "whole number")):
        with pytest.raises(ValueError, match=says):
            filled(mini, GAVE, lists, count)


def test_the_longest_sentence_is_as_long_as_is_said(mini):
    word = "x" * ((LONGEST_SENTENCE - 5) // 12)
    lists = {"A": ["Tom"], "B": ["Mary"], "x": ["y", word]}
    most = "{B}a" + "{x}" * 12
    assert len(filled(mini, most, lists).prompts + filled(mini, most, lists).left_out) == 2
    with pytest.raises(ValueError, match=f"has up to {5 + 13 * len(word):,} characters"):
        filled(mini, most + "{x}", lists)


def test_not_every_combination_is_tried(mini):
    """Where none fits, no more are read than are said."""
    words = {
        "A": ["Tom"],
        "B": ["Mary"],
        "x": list(map(str, range(100))),
        "y": list(map(str, range(100))),
    }
    found = filled(mini, "{A}: {x} {y}", words)  # at the beginning "Tom" is one token, "Mary" two
    assert not found.prompts and len(found.left_out) == TRIED


def test_a_text_with_two_names_is_a_template(mini):
    template, lists = like("When Tom and Anna left the garden, Tom gave the flowers to")
    assert template == "When {B} and {A} left the {place}, {B} gave the flowers to"
    assert holes(template) == ["B", "A", "place"]
    found = filled(mini, template, read_lists(lists))
    assert len(found.prompts) == MOST and "Anna" in dict(found.left_out)
    for text in (
        "Tom left",
        "Tom saw Mary",
        "Tom, Mary, Tom and Mary",
        "{Tom} saw Tom and Mary",
        "",
    ):
        assert like(text) is None
