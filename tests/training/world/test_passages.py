"""Wordings and what is made of them: every one fills, and says of its slots what the tables say."""

import random
import re
from itertools import islice

import pytest

from gptviz.training.world.columns import COLUMNS
from gptviz.training.world.drills import drill
from gptviz.training.world.frames import (
    OF_FACTS,
    OPENINGS,
    framed,
    is_statement,
    small_within,
    written_otherwise,
)
from gptviz.training.world.passages import (
    DRILLS,
    OF_A_THOUSAND,
    passage,
    passages,
    plain_sentences,
    wordings,
)
from gptviz.training.world.phrases import fill, parse, with_article
from gptviz.training.world.tables import COUNTRIES, FEMALE, MALE


def test_every_kind_has_its_share_and_every_share_its_kind():
    assert set(OF_A_THOUSAND) == set(wordings()) | {DRILLS}
    assert 900 < sum(OF_A_THOUSAND.values()) < 1100
    assert set(wordings()) >= OF_FACTS


@pytest.mark.parametrize("kind", sorted(wordings()))
def test_every_wording_fills_and_leaves_no_sign(kind):
    for wording in wordings()[kind]:
        for seed in range(3):
            text = fill(wording, random.Random(seed))
            assert not re.search(r"[\[\]{}|¶⏎]|  ", text), (wording, text)
            assert text.strip() == text and text.isascii(), wording


def test_no_wording_is_written_twice():
    every = [wording for kind in wordings().values() for wording in kind]
    assert len(set(every)) == len(every) > 36_000


def test_an_article_is_right_whatever_fills_its_slot():
    for kind, texts in wordings().items():
        for wording in texts:
            for article, column in re.findall(r"\b([Aa]n?) \{([a-z_]+)\d?\}", wording):
                _, rows = COLUMNS[column]
                right = {with_article(row[column]).split(" ")[0] for row in rows if row[column]}
                assert right == {article.lower()}, f"{kind}: write {{a {column}}} in {wording!r}"


def test_what_is_written_in_two_ways_is_written_in_both():
    chance = random.Random(0)
    made = {written_otherwise("It is cold and I do not go.", chance) for _ in range(300)}
    assert made == {
        "It is cold and I do not go.",
        "It's cold and I do not go.",
        "It is cold and I don't go.",
        "It's cold and I don't go.",
    }


def test_the_same_seed_gives_the_same_passages_and_another_gives_others():
    first = list(islice(passages(1), 200))
    assert first == list(islice(passages(1), 200))
    assert len(set(first) & set(islice(passages(2), 200))) < 20


def test_drills_are_among_the_passages():
    made = [passage(DRILLS, random.Random(seed)) for seed in range(50)]
    asked = [drill(random.Random(seed)) for seed in range(50)]
    assert [text.replace("What's", "What is") for text in made] == asked
    shares = OF_A_THOUSAND[DRILLS] / sum(OF_A_THOUSAND.values())
    long_rows = [text for text in islice(passages(1), 4_000) if len(re.findall(r"\d+", text)) > 23]
    assert 0.4 * shares < len(long_rows) / 4_000 < shares


def test_a_passage_says_what_the_tables_say():
    capitals = {row["country"]: row["capital"] for row in COUNTRIES}
    for seed in range(50):
        text = fill("{country}: {capital}; {country2}: {capital2}", random.Random(seed))
        pairs = [pair.split(": ") for pair in text.split("; ")]
        assert all(capitals[country] == capital for country, capital in pairs)
        assert pairs[0] != pairs[1]


def test_people_keep_their_name_and_their_gender_through_a_passage():
    men = {person["name"] for person in MALE}
    women = {person["name"] for person in FEMALE}
    for seed in range(100):
        text = fill("{A} {A.he} {A.his} {A}, {B}, {C}, {F}, {M}", random.Random(seed))
        first, *others = text.split(", ")
        name, he, his, again = first.split(" ")
        assert name == again
        assert (he, his) == (("he", "his") if name in men else ("she", "her"))
        assert len({name, *others}) == 5
        assert others[2] in women and others[3] in men


@pytest.mark.parametrize(
    "word, said",
    [
        ("owl", "an owl"),
        ("bear", "a bear"),
        ("hour", "an hour"),
        ("umbrella", "an umbrella"),
        ("uniform", "a uniform"),
        ("European", "a European"),
        ("Ukrainian", "a Ukrainian"),
        ("Italian", "an Italian"),
    ],
)
def test_a_or_an(word, said):
    assert with_article(word) == said


@pytest.mark.parametrize(
    "wording, said",
    [
        ("[a|b", "a bracket does not close"),
        ("a]", "stands outside of brackets"),
        ("{nothing}", "no table has the column 'nothing'"),
        ("{A.its}", "a person has the forms he, him"),
        ("{}", "is no slot"),
    ],
)
def test_a_wording_that_cannot_be_filled_is_refused_in_a_sentence(wording, said):
    with pytest.raises(ValueError, match=said):
        parse(wording)


def test_choices_may_stand_inside_each_other():
    made = {fill("[a|b[c|d]|]x", random.Random(seed)) for seed in range(100)}
    assert made == {"ax", "bcx", "bdx", "x"}


def test_what_stands_before_a_passage():
    chance = random.Random(0)
    text = "The sky is blue. It is wide."
    made = {framed(text, "colours", ["It rained."], chance) for _ in range(2_000)}
    opened = {one for one in made if "the sky is blue" in one}
    set_before = {one for one in made if one.startswith("It rained.")}
    assert text in made
    assert len(opened) > len(OPENINGS) / 2 and set_before
    assert all(one.endswith("sky is blue. It is wide.") for one in made)
    assert framed(text, "stories", ["It rained."], chance) == text


@pytest.mark.parametrize("text", ["What is red?", '"Come," said Tom.', "2 + 3 = 5", "one, two"])
def test_no_opening_before_what_is_no_statement(text):
    assert not is_statement(text)


def test_a_name_keeps_its_capital_within_a_sentence():
    assert small_within("The capital of France is Paris.") == "the capital of France is Paris."
    assert small_within("Paris is a city.") == "Paris is a city."
    assert small_within("I am glad.") == "I am glad."


def test_the_plain_sentences_are_whole():
    sentences = plain_sentences()
    assert len(sentences) > 300
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)
