"""The bundled model that has read of the small world: its tokens, what it knows, and what its card says."""

import re
from pathlib import Path

import pytest

import gptviz
from gptviz.files.disk_cache import ASSETS
from gptviz.training.examine import names_right, read_names
from gptviz.training.world.tables import DAYS, MONTHS, PEOPLE
from gptviz.ui.shell.prompt import OF_THE_WORLD

FOLDER = ASSETS / "mini-world"
EXAM = Path(__file__).parents[1] / "training" / "exam"
# what the model has to say after each of the page's examples
SAYS = {
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
    text = OF_THE_WORLD[label]
    ids = world.encode(text)
    assert 6 <= len(ids) <= 16
    assert all(re.fullmatch(rb" ?[A-Za-z]+|\W+| ?\d+", token.raw) for token in world.tokens(ids))
    best = world.trace(text, keep=()).next_tokens(k=2)
    assert best["token"][0].strip() == SAYS[label]
    assert best["probability"][0] > 1.5 * best["probability"][1]


def test_the_card_says_how_often_it_knows_which_name(world):
    card = (FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    share = names_right(world, read_names(EXAM / "names.tsv"))
    assert f"in {share:.0%} of 100 sentences" in card
