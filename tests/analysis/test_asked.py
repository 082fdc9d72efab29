"""What a text asks of a model: the two words, told from the text or from the model's own logits."""

import pytest
import torch

from gptviz.analysis.asked import KINDS, asked_after, asked_of
from gptviz.analysis.word_classes import CAPITALS, CITIES, COUNTRIES
from tests.conftest import random_lm

LM = random_lm()
ANY = torch.arange(LM.config.vocab_size, 0, -1.0)  # id 0 is the first choice, id 1 the second


def first(word):
    """The id of the first token of a word after a space."""
    return LM.encode(f" {word}")[0]


def asked(text, logits=ANY):
    found = asked_after(LM, LM.encode(text), logits)
    return found.kind, found.answer, found.instead


def preferring(*words):
    """Logits whose first choices are the first tokens of these words."""
    logits = ANY.clone()
    for rank, word in enumerate(words):
        logits[first(word)] = 1e6 - rank
    return logits


@pytest.mark.parametrize(
    ("text", "answer", "instead"),
    [
        ("When Tom and Mary left the garden, Tom gave the flowers to", "Mary", "Tom"),
        ("When Tom and Mary left the garden, Mary gave the flowers to", "Tom", "Mary"),
        ("When Mary and Tom left the garden, Tom gave the flowers to", "Mary", "Tom"),
        ("Tom came. Tom saw Mary. Then Tom walked with", "Mary", "Tom"),
        ("Mr. Darcy met Jane, and Jane spoke to", "Darcy", "Jane"),
        ("Mr. Darcy met Jane, and Darcy spoke to", "Jane", "Darcy"),
    ],
)
def test_of_two_names_the_answer_is_the_one_that_is_said_once(text, answer, instead):
    assert asked(text) == ("names", first(answer), first(instead))


def test_a_name_of_several_tokens_is_asked_for_by_its_first():
    assert len(LM.encode(" Anna")) == 2
    text = "When Tom and Anna left the garden, Tom gave the flowers to"
    assert asked(text) == ("names", first("Anna"), first("Tom"))
    assert asked(f"{text} ") != asked(text)  # no space before the name there
    assert asked(f"{text} ")[1] == LM.encode("Anna")[0]


def test_two_names_that_begin_alike_are_no_question():
    assert first("Edgar") == first("Edith")
    text = "When Edgar and Edith left the garden, Edgar gave the flowers to"
    assert asked(text)[0] == "first two"


@pytest.mark.parametrize(
    "text",
    [
        "Tom gave the flowers to",
        "Tom saw Mary go to",
        "Tom and Mary saw Jane, and Tom gave it to",
        "Tom saw Mary, and Mary told Tom to go to",
    ],
)
def test_one_name_three_names_and_names_said_equally_often_are_no_question(text):
    assert asked(text)[0] != "names"


def test_a_name_is_asked_for_where_a_name_may_follow():
    text = "When Tom saw Mary, Tom was"
    assert asked(text) == ("first two", 0, 1)
    assert asked(text, preferring("so", "with", "Mary")) == ("names", first("Mary"), first("Tom"))


def test_what_followed_last_time_is_copied():
    text = "See, the little birds sang in the garden. Then the little birds sang in the"
    assert asked(text) == ("copied", first("garden"), 0)
    other = preferring("flew", "ate")
    assert asked(text, other) == ("copied", first("garden"), first("flew"))


def test_a_few_tokens_are_copied_only_where_the_model_says_so():
    text = "He saw the birds. She saw the"
    assert asked(text)[0] == "first two"
    assert asked(text, preferring("birds", "cat")) == ("copied", first("birds"), first("cat"))


def test_of_several_the_longest_and_then_the_last_is_copied():
    six = [11, 12, 13, 7, 8, 9]
    ids = [5, *six, 30, *six, 31, 9, 32, *six]
    assert asked_after(LM, ids, ANY).answer == 31
    assert asked_after(LM, [*ids, 33, 5, *six], ANY).answer == 30


@pytest.mark.parametrize("country", [*CAPITALS])
def test_a_country_asks_for_its_capital(country):
    capital = first(CAPITALS[country])
    kind, answer, instead = asked(f"The capital of {country} is")
    assert (kind, answer) == ("fact", capital)
    assert instead in {first(other) for other in CAPITALS.values()} - {capital}
    kind, answer, _ = asked(f"They say that {CAPITALS[country]} is the capital of")
    assert (kind, answer) == ("fact", first(country))


def test_a_fact_stands_against_the_whole_word_that_the_model_likes_best():
    assert [len(LM.encode(f" {city}")) for city in ("Paris", "Rome", "London")] == [1, 2, 1]
    logits = preferring("Rome", "London")
    assert asked("The capital of France is", logits) == ("fact", first("Paris"), first("London"))
    assert asked("The capital of Spain is", logits) == ("fact", first("Madrid"), first("London"))


def test_a_country_whose_capital_is_asked_for_can_be_exchanged():
    assert {*CAPITALS} < {*COUNTRIES} and {*CAPITALS.values()} == {*CITIES}
    assert len({*COUNTRIES}) == len(COUNTRIES) and len({*CITIES}) == len(CITIES)


def test_unknown_facts_are_not_made_up():
    assert asked("The capital of Atlantis is")[0] == "first two"


@pytest.mark.parametrize(
    ("text", "answer", "instead"),
    [
        ("Monday, Tuesday, Wednesday,", "Thursday", "Wednesday"),
        ("Friday Saturday Sunday", "Monday", "Sunday"),
        ("one, two, three and", "four", "three"),
        ("One two three", "four", "three"),
        ("A B C D", "E", "D"),
        ("a, b, c,", "d", "c"),
        ("They counted: 2, 3, 4,", "5", "4"),
        ("5 4 3", "2", "3"),
        ("first, second, third,", "fourth", "third"),
    ],
)
def test_a_sequence_goes_on(text, answer, instead):
    assert first(answer) != first(instead)
    assert asked(text) == ("sequence", first(answer), first(instead))


@pytest.mark.parametrize(
    "text",
    [
        "X Y Z", "Monday, Tuesday", "1 2", "7 7 7", "A, B, C", "2 1 0", "x", "1\n2\n3", "1,\n2,\n3,", "A B C\n",
        "001, 002, 003,", "١ ٢ ٣", f"{'9' * 5000} {'9' * 5000} {'9' * 5000}",
    ],
)  # fmt: skip
def test_what_is_no_sequence_or_does_not_go_on_is_none(text):
    assert asked(text)[0] != "sequence"


def test_a_sequence_of_lines_goes_on_in_a_line_of_its_own():
    four = LM.encode("4")[0]
    assert four != first("4")
    assert asked("1\n2\n3\n") == ("sequence", four, LM.encode("3")[0])


def test_a_pronoun_stands_against_that_of_the_other_gender():
    text = "The king loved his daughter, but she did not love"
    assert asked(text, preferring("him", "it")) == ("pronoun", first("him"), first("her"))
    assert asked(text, preferring("her", "it", "his")) == ("pronoun", first("her"), first("his"))
    assert asked(text, preferring("her", "it", "him")) == ("pronoun", first("her"), first("him"))
    assert asked(text, preferring("it", "him"))[0] == "first two"
    tag = "Jane is a good friend, isn't"
    assert asked(tag, preferring("it", "she")) == ("pronoun", first("she"), first("he"))


@pytest.mark.parametrize("text", ["a", " ", "\n", "🦔", "a🦔", "the", "Ωμέγα", "to to to to"])
def test_any_other_text_asks_for_the_first_two(text):
    found = asked_of(LM, text)
    logits = LM.trace(text).logits(-1)
    if found.kind == "first two":
        assert [found.answer, found.instead] == logits.topk(2).indices.tolist()
    assert found.kind in KINDS
    assert found.answer != found.instead


def test_it_is_asked_at_a_position_of_a_text_or_of_ids():
    text = "When Tom and Mary left the garden, Tom gave the flowers to Mary and they"
    at = LM.encode(text).index(first("to"))
    found = asked_of(LM, text, at)
    assert (found.kind, found.answer, found.instead) == ("names", first("Mary"), first("Tom"))
    assert asked_of(LM, LM.encode(text), at - len(LM.encode(text))) == found
    assert asked_of(LM, text).kind != "names"
    with pytest.raises(ValueError, match="position"):
        asked_of(LM, text, 99)
    with pytest.raises(ValueError, match="token"):
        asked_of(LM, "")


def test_a_single_token_has_no_other_word():
    with pytest.raises(ValueError, match="one token"):
        asked_after(LM, [0], torch.zeros(1))
