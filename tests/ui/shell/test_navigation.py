"""The navigation: what is a page is in it, and what is in it is a page."""

from gptviz.ui.shell.navigation import PAGES, SCRIPTS


def test_every_page_is_in_the_navigation():
    there = {path.stem for path in SCRIPTS.glob("*.py")}
    assert there == set(PAGES)
