"""The first sentence of every page, as a teacher would say it: short, and with one number at most."""

import re

import pytest

from gptviz.ui.shell.navigation import PAGES
from tests.pages.test_snapshots import FOLDER

MOST_WORDS = 18
NO_SENTENCE = ("(", "[", "#", "|")  # how a snapshot begins a widget, a picture, a heading, a table
ENDS = (".", ":", "?", "!", ".**")


def first_sentence(page: str) -> str:
    """What the page says first below its heading, with the model as it is."""
    lines = (FOLDER / f"{page}.txt").read_text("utf-8").splitlines()
    said = [line[2:].strip() for line in lines if not line.startswith("+")]
    heading = next(index for index, line in enumerate(said) if line.startswith("# "))
    below = said[heading + 1 :]
    prose = next(
        line
        for line in below
        if line.endswith(ENDS) and re.search("[a-z]", line) and not line.startswith(NO_SENTENCE)
    )
    return re.split(r"(?<=[.?!])(?:\*\*)?\s", prose)[0]


def numbers(sentence: str) -> list[str]:
    """The numbers of a sentence; a token in code type, and what a site is called, are names."""
    prose = re.sub(r"`[^`]*`", "", sentence)
    prose = re.sub(
        r"(?i)\b(blocks?|heads?|position|dimension|unit|norm)\s*\d+(·\d+)?|·\s*norm\d", "", prose
    )
    return re.findall(r"\d[\d,.]*", prose)


@pytest.mark.parametrize("page", [name for name in PAGES if (FOLDER / f"{name}.txt").exists()])
def test_the_first_sentence_is_short_and_has_one_number_at_most(page):
    sentence = first_sentence(page)
    assert len(sentence.split()) <= MOST_WORDS, sentence
    assert len(numbers(sentence)) <= 1, sentence
