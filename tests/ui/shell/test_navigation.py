"""The navigation: what is a page is in it, and what is in it is a page."""

import pytest

from gptviz.ui.shell.navigation import PAGES, SCRIPTS


def test_every_page_is_in_the_navigation():
    there = {path.stem for path in SCRIPTS.glob("*.py")}
    assert there == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_the_way_on_is_one_short_sentence(name):
    said = PAGES[name].on_next
    assert said[0].isupper()
    assert said.count(".") == 1 and said.endswith(".")
    assert len(said.split()) <= 12
