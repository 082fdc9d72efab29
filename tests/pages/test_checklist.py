"""What every page has, held against every page there is."""

import pytest

from gptviz.ui.shell.navigation import PAGES, UI


def test_every_page_is_in_the_navigation():
    there = {path.stem for path in (UI / "pages").glob("*.py")}
    there |= {path.parent.name for path in (UI / "pages").glob("*/__main__.py")}
    assert there == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_in_numbers_and_in_code(run_page, name):
    """Each is there, and draws its table or its code when it is opened."""
    at = run_page(name, text="one two three")
    boxes = [box for box in at.expander if box.label.startswith(("In numbers", "In code"))]
    assert {box.label.partition(":")[0] for box in boxes} == {"In numbers", "In code"}
    for box in boxes:
        at.session_state[box.key] = True
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    opened = {box.key: box for box in at.expander if box.key}
    for box in boxes:
        drawn = opened[box.key]
        assert len(drawn.code) if box.label.startswith("In code") else len(drawn.dataframe), box.label
