"""The navigation: what is a page is in it, and what is in it is a page."""

from gptviz.ui.shell.navigation import PAGES, UI


def test_every_page_is_in_the_navigation():
    there = {path.stem for path in (UI / "pages").glob("*.py")}
    there |= {path.parent.name for path in (UI / "pages").glob("*/__main__.py")}
    assert there == set(PAGES)
