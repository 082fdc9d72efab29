"""The bundled model that has read of the small world: its tokens, what it knows, and what its card says."""

import re
from pathlib import Path

import pytest

import gptviz
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.alignment import differing
from gptviz.files.disk_cache import ASSETS
from gptviz.training.examine import names_right, read_names
from gptviz.training.world.tables import DAYS, MONTHS, PEOPLE
from gptviz.ui.shell.examples import OF_THE_WORLD
from gptviz.ui.shell.other_text import PAIRS

FOLDER = ASSETS / "mini-world"
EXAM = Path(__file__).parents[1] / "training" / "exam"
# what the model has to say after each of the page's examples
SAYS = {
    "An animal": "calf",
    "A fact": "London",
    "An opposite": "hot",
    "A name moves": "Peter",
    "She or he": "she",
    "The next day": "Thursday",
    "A quotation closes": '?"',
    "A copied passage": "mill",
}


@pytest.fixture(scope="module")
def world():
    return gptviz.load("mini-world")


def test_it_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 16e6


def test_names_and_days_are_single_tokens(world):
    words = [row["name"] for row in PEOPLE] + [row["day"] for row in DAYS]
    words += [row["month"] for row in MONTHS]
    in_pieces = [word for word in words if len(world.encode(f" {word}")) > 1]
    assert not in_pieces


@pytest.mark.parametrize("label", OF_THE_WORLD)
def test_an_example_has_whole_words_and_a_clear_winner_among_words(world, label):
    text = OF_THE_WORLD[label].text
    ids = world.encode(text)
    assert 6 <= len(ids) <= 16
    assert all(re.fullmatch(rb" ?[A-Za-z]+|\W+| ?\d+", token.raw) for token in world.tokens(ids))
    best = world.trace(text, keep=()).next_tokens(k=2)
    assert best["token"][0].strip() == SAYS[label]
    assert best["probability"][0] > 1.5 * best["probability"][1]


@pytest.mark.parametrize(
    "pair", [pair for pair in PAIRS if pair.model], ids=lambda pair: pair.label
)
def test_the_answer_stays_at_its_word_until_the_last_block(world, pair):
    """What the page *Patching* says that there is to watch."""
    (at,) = differing(*map(world.encode, (pair.text, pair.other)))
    table = patching(world, pair.other, pair.text, sites="resid_pre")
    effects = table.pivot(index="block", columns="position", values="effect").to_numpy()
    assert effects[0, at] == pytest.approx(1, abs=1e-5) and (effects[:5, at] > 0.9).all()
    last = effects.shape[1] - 1
    assert effects[5].argsort()[::-1][:2].tolist() == [at, last] and effects[5, at] > 0.5


def test_what_is_said_of_both_bundled_models_is_true_of_this_one(world):
    """As of mini: tests/analysis/test_activation_patching.py."""
    for pair in PAIRS[:3]:
        (at,) = differing(*map(world.encode, (pair.text, pair.other)))
        table = patching(world, pair.other, pair.text, sites=["resid_pre", "z"])
        stream = table[table["site"] == "resid_pre"]
        effects = stream.pivot(index="block", columns="position", values="effect").to_numpy()
        assert (effects[:4, at] > 0.9).all()
        if pair.label == "A copied word":
            assert effects[5, at] > 0.9
            continue
        assert effects[5, -1] > 0.5  # it has begun to move, or has moved
        if pair.label == "She and he":
            heads = table[table["site"] == "z"].set_index(["block", "head"])["effect"]
            assert heads.idxmax() == (3, 7) and heads.max() > 0.85


@pytest.mark.parametrize(
    ("label", "before", "after", "says"),
    [
        ("An animal", "cow", "dog", "puppy"),
        ("A fact", "England", "France", "Paris"),
        ("She or he", "girl", "boy", "he"),
        ("A name moves", ", Mary", ", Peter", "Peter"),  # the answer does not follow
    ],
)
def test_where_an_example_is_to_be_changed_the_answer_is_as_it_says(
    world, label, before, after, says
):
    text = OF_THE_WORLD[label].text
    assert text.count(before) == 1
    best = world.trace(text.replace(before, after), keep=()).next_tokens(k=1)
    assert best["token"][0].strip() == says


def test_what_else_is_said_of_the_examples_is_so(world):
    found = {
        label: [token.strip() for token in world.trace(one.text, keep=()).next_tokens(k=8)["token"]]
        for label, one in OF_THE_WORLD.items()
    }
    for label in ("An animal", "A fact", "An opposite", "The next day"):
        best = found[label][0]
        assert best not in OF_THE_WORLD[label].text
        assert OF_THE_WORLD[label].look.lower().startswith(f"*{best.lower()}* is not in the text")
    assert found["An opposite"][1] == "cold" and "cold" in OF_THE_WORLD["An opposite"].text
    days = {row["day"] for row in DAYS}
    assert sum(word in days for word in found["The next day"]) == 7


def test_the_card_says_how_often_it_knows_which_name(world):
    card = (FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    share = names_right(world, read_names(EXAM / "names.tsv"))
    assert f"in {share:.0%} of 100 sentences" in card
