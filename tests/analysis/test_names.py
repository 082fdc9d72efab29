"""Which words of a text name persons, and whether a model knows which of two is meant."""

import pytest

from gptviz.analysis.names import (
    groups_of,
    mentions,
    named_again,
    names_kept_apart,
    once_and_again,
    persons,
)
from gptviz.analysis.prompts import NAMES, indirect_objects
from tests.conftest import random_lm


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Der Hund lief in den Garten, und die Katze sah den Hund", []),
        ("On Monday I went to Paris, and then to London", []),
        ("The Queen of England met the President in May, in Rose Street", []),
        ("The Mill, the Barn and the House of Lords", []),
        ("Once upon a time", []),
        ("When Mary and John went out, John gave it to", ["Mary", "John"]),
        ("Mary had a lamb. Mary's lamb was white.", ["Mary"]),
        ("Mary Ann Smith saw Mr. Darcy and Miss Bennet", ["Mary", "Darcy", "Bennet"]),
        ("Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr.", ["Zorblax"]),
        ("Gestern gab Hans dem Peter ein Buch", ["Hans", "Peter"]),
        ("Tomato, Johnsons and Annamary", []),
        ("A Christian came to Sofia in Jan 1900, by way of San Diego", []),
    ],
)
def test_only_names_of_persons_are_names(text, found):
    assert persons(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("When Tom and Mary left, Tom gave it to", ("Mary", "Tom")),
        ("When Tom and Mary left, Mary gave it to Mary", ("Tom", "Mary")),
        ("Mr. Darcy met Jane, and Darcy spoke to", ("Jane", "Darcy")),
        ("Tom and Mary left", None),
        ("Tom and Mary, Mary and Tom", None),
        ("Tom, Mary, John and Tom", None),
        ("Tom and Tom", None),
        ("Tom saw Mary and a Tom-cat", None),
        ("", None),
    ],
)
def test_of_two_names_one_may_come_again(text, found):
    assert once_and_again(text) == found


def test_of_more_than_two_names_who_comes_again_last_and_all_others():
    text = "Tom saw Mary, John and Mary, and Tom gave it to Jane"
    again = named_again(mentions(text))
    assert again.last.name == "Tom" and text[: again.last.start].endswith("and ")
    assert again.others == ("Mary", "John", "Mary", "Jane")
    assert named_again(mentions("Tom saw Mary")) is named_again(mentions("Tom and Tom")) is None


def test_every_name_of_the_test_sentences_is_one():
    assert persons(" and ".join(NAMES)) == list(NAMES)


@pytest.mark.parametrize("seed", [0, 1])
def test_names_are_kept_apart_where_the_logits_say_so(seed):
    lm = random_lm(seed)
    right = 0
    sentences = indirect_objects(lm, 24, exchanged=True)
    for one in sentences:
        logits = lm.trace(one.text).logits(-1)
        right += bool(logits[lm.encode(one.token)[0]] > logits[lm.encode(one.against)[0]])
    assert names_kept_apart(lm) == (right, len(sentences)) and len(sentences) == 24
    # the model's own, whatever is changed
    assert names_kept_apart(lm.edited("final=zero")) == (right, 24)


def test_sentences_with_their_names_exchanged_are_of_one_group(mini):
    prompts = indirect_objects(mini, 8, exchanged=True)
    assert groups_of(mini, [one.text for one in prompts], [one.target for one in prompts]) == [
        0, 0, 2, 2, 4, 4, 6, 6
    ]  # fmt: skip
    mixed = [*prompts[::2], *prompts[1::2]][:7]  # the last one is alone
    ids = [mini.encode(one.text) for one in mixed]
    words = [tuple(mini.encode(name)[0] for name in one.target) for one in mixed]
    expected = [0, 1, 2, 3, 0, 1, 2]
    assert groups_of(mini, ids, words) == expected
    assert groups_of(mini, [one.text for one in mixed], words) == expected
    alone = [*range(7)]
    for targets in (None, " Mary", [one.token for one in mixed], (" Mary", None), (" Tom", " Tom")):
        assert groups_of(mini, ids, targets) == alone
    # the texts are exchanged, and the question is not
    assert groups_of(mini, ids, words[0]) == alone


def test_a_text_has_one_partner_and_a_name_at_the_beginning_is_one(mini):
    one = "Tom saw Mary. Tom met"
    two = "Mary saw Tom. Mary met"
    asked = (" Mary", " Tom")
    turned = (" Tom", " Mary")
    targets = [asked, turned, asked, asked, turned]
    groups = groups_of(mini, [one, two, one, one, two], targets)
    assert groups[0] == groups[1] and len(set(groups)) == 3
    assert groups.count(groups[4]) == 2 and groups[4] in groups[2:4]
    assert groups_of(mini, [one, one.replace("saw", "heard")], [asked, asked]) == [0, 1]
    assert groups_of(mini, [one, two.replace("saw", "heard")], [asked, turned]) == [0, 1]
