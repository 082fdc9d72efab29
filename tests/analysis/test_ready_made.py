"""Ready-made sets: what is in one can be held by the tokenizer, and is a question of its kind."""

import re

import pytest

from gptviz.analysis.other_texts import COMES_AGAIN, FURTHER, HE_AND_SHE, other_texts
from gptviz.analysis.prompts import indirect_objects
from gptviz.analysis.ready_made import FACTS, KINDS, PERSONS, is_held, ready_made
from gptviz.analysis.word_classes import LETTERS, MONTHS, NUMBERS, ORDINALS, WEEKDAYS
from tests.conftest import random_lm


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_can_be_patched_with_its_other_text(mini, kind):
    prompts = ready_made(mini, kind)
    assert 15 < len(prompts) <= 24 and prompts == ready_made(mini, kind)
    assert ready_made(mini, kind, 3) == prompts[:3] or kind == "names"
    assert len({(prompt.text, prompt.token) for prompt in prompts}) == len(prompts)
    for prompt in prompts:
        answers = [mini.encode(answer) for answer in prompt.target]
        assert [len(ids) for ids in answers] == [1, 1] and answers[0] != answers[1]
        assert len(mini.encode(prompt.text)) == len(mini.encode(prompt.other))
        assert prompt.text != prompt.other and not prompt.text.endswith(" ")
    (one,) = prompts[:1]
    told = mini.patching(one.text, one.other, one.target, sites="mlp_out", last=True)
    assert len(told) == mini.config.n_layers


def test_names_are_those_of_before(mini):
    assert ready_made(mini, "names") == indirect_objects(mini, 24, exchanged=True)


@pytest.mark.parametrize("kind", ["names", "copied"])
def test_every_second_sentence_has_its_two_words_exchanged(mini, kind):
    """What a model likes to say, a number a word, cancels in the mean, whatever the numbers are."""
    prompts = ready_made(mini, kind)
    likes = {word: hash(word) % 1000 for prompt in prompts for word in prompt.target}
    assert sum(likes[one.token] - likes[one.against] for one in prompts) == 0
    for one, two in zip(prompts[::2], prompts[1::2], strict=True):
        # what stands between the two words is the same
        between = re.split("|".join(one.target), one.text)
        assert between == re.split("|".join(one.target), two.text)
        found = [re.findall("|".join(one.target), prompt.text) for prompt in (one, two)]
        assert found[0] == [{one.token: one.against}.get(word, one.token) for word in found[1]]


def test_a_copied_word_stood_behind_its_passage(mini):
    for prompt in ready_made(mini, "copied"):
        assert prompt.text.endswith(" the old") and f" the old{prompt.token}" in prompt.text
        assert prompt.other == prompt.text.replace(str(prompt.token), str(prompt.against))


def test_a_pronoun_goes_with_its_person(mini):
    sexes = {person: sex for pair in PERSONS for sex, person in enumerate(pair)}
    words = {" he": 0, " him": 0, " his": 0, " she": 1, " her": 1}
    for prompt in ready_made(mini, "pronoun"):
        for text, answer in ((prompt.text, prompt.token), (prompt.other, prompt.against)):
            assert sexes[text.split()[1]] == words[answer]
        texts = {other.kind: other.text for other in other_texts(mini, prompt.text)}
        assert texts[HE_AND_SHE] == prompt.other


def test_a_fact_is_one_of_the_list(mini):
    facts = {(f.format(s), f" {a}") for f, pairs in FACTS for s, a in pairs}
    for prompt in ready_made(mini, "fact"):
        assert {(prompt.text, prompt.token), (prompt.other, prompt.against)} <= facts


def test_a_sequence_goes_on_in_its_order(mini):
    orders = [(*WEEKDAYS, *WEEKDAYS), (*MONTHS, *MONTHS), NUMBERS, ORDINALS, LETTERS]
    for prompt in ready_made(mini, "sequence"):
        for text, answer in ((prompt.text, prompt.token), (prompt.other, prompt.against)):
            members = (*re.findall(r"\w+", text), answer[1:])
            assert any(
                order[i : i + len(members)] == members
                for order in orders
                for i in range(len(order))
            )
    by_hand = {other.kind: other.text for other in other_texts(mini, "one, two, three,")}
    assert by_hand[FURTHER] == ready_made(mini, "sequence")[0].other


def test_another_tokenizer_has_other_sets():
    assert [len(ready_made(random_lm(), kind, 2)) for kind in KINDS] == [2] * len(KINDS)
    with pytest.raises(ValueError, match="kind is 'nmaes'; it must be one of names, copied"):
        ready_made(random_lm(), "nmaes")


def test_what_cannot_be_held_is_none(mini):
    (prompt,) = ready_made(mini, "names", 1)
    assert is_held(mini, prompt)
    for change in (
        {"token": " Zorblax"},
        {"against": prompt.token},
        {"other": prompt.text},
        {"other": f"{prompt.other} the"},
    ):
        assert not is_held(mini, type(prompt)(**(vars(prompt) | change)))
    out_of_step = {"text": "When Tom saw Anna, they", "other": "When Anna saw Tom, they"}
    assert len({len(mini.encode(text)) for text in out_of_step.values()}) == 1
    assert not is_held(mini, type(prompt)(**(vars(prompt) | out_of_step)))
    kinds = [other.kind for other in other_texts(mini, prompt.text)]
    assert COMES_AGAIN in kinds
