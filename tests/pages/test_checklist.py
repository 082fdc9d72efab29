"""CONTRIBUTING's checklist for a new page, read from there and held against every page there is."""

import re
from pathlib import Path

import pytest

from gptviz.ui.shell.navigation import PAGES

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.search(
    r"^## A new page\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)[1]
STEPS = [step for step in re.split(r"^\d+\. ", SECTION, flags=re.MULTILINE)[1:]]
FILES = re.findall(r"`(\w+/[\w/]*NAME[\w/.]*)`", SECTION)


def test_the_checklist_names_what_a_page_is_made_of():
    assert {
        "pages/NAME.py",
        *(f"gptviz/ui/views/NAME/{file}.py" for file in ("__init__", "view", "words", "snippet")),
        "tests/pages/test_NAME.py",
        "tests/browser/test_NAME.py",
    } == set(FILES)
    assert any("gptviz/ui/shell/navigation.py" in step for step in STEPS)
    assert any("*In numbers*" in step and "*In code*" in step for step in STEPS)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_its_files(name, file):
    path = ROOT / file.replace("NAME", name)
    assert path.is_file()
    lines = path.read_text("utf-8").splitlines()
    if file.startswith("pages/"):
        assert len(lines) <= 20
    if file.startswith("tests/"):
        assert any(line.startswith("def test_") for line in lines)


def test_every_file_of_pages_is_in_the_navigation():
    assert {path.stem for path in (ROOT / "pages").glob("*.py")} == set(PAGES)


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
