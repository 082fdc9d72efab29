"""How a page begins: its head in the script, and the title on its way to the screen."""

import ast
import threading
from functools import cache
from pathlib import Path
from statistics import median
from types import FrameType

import pytest

import gptviz
from gptviz.ui.shell.navigation import PAGES, page_file
from tests.pages.conftest import run_page

PACKAGE = Path(gptviz.__file__).parent
MOST = 10  # modules of ours that a reader has to open to follow the title
NAMES = 15  # of ours that a median page imports
WITHOUT_TEXT = {"anatomy", "attention_by_hand", "baselines", "class", "training"}
DOORS = {"gptviz.ui.sheet", "gptviz.ui.words"}  # modules that a page has whole


@cache
def script(name: str) -> ast.Module:
    return ast.parse(page_file(name).read_text("utf-8"))


def called(statement: ast.stmt) -> tuple[str, str]:
    """The name that a statement assigns, and the function that it calls: ("frame", "sheet.start_page")."""
    if not isinstance(statement, ast.Assign | ast.Expr) or not isinstance(
        statement.value, ast.Call
    ):
        return "", ""
    assigned = ""
    if isinstance(statement, ast.Assign):
        assigned = ast.unparse(statement.targets[0])
    return assigned, ast.unparse(statement.value.func)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_in_three_visible_lines(name):
    steps = [called(statement) for statement in script(name).body]
    first = steps.index(("frame", "sheet.start_page"))
    if name in WITHOUT_TEXT:
        return
    assert steps[first + 1] == ("prompt", "sheet.read_text")
    last = steps.index(("scene", "sheet.trace"))
    assert last <= first + 5, "what the pass keeps is worked out in a line or two"


def imported(name: str) -> list[tuple[str, str]]:
    """The names of ours that a page imports, each with its module."""
    found = []
    for node in ast.walk(script(name)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "gptviz":
            found += [(str(node.module), alias.name) for alias in node.names]
    return found


def test_a_median_page_imports_few_names_of_ours():
    assert median(len(imported(name)) for name in PAGES) <= NAMES


def test_pages_name_the_sheet_and_the_words_by_their_modules():
    assert [(name, found) for name in PAGES for found in imported(name) if found[0] in DOORS] == []


def modules_before_the_title(name: str) -> list[str]:
    """Our modules in which a function runs from `start_page` until Streamlit is given the title, in order."""
    modules: dict[str, None] = {}
    begun = False
    ended = False

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal begun, ended
        if event != "call" or ended:
            return
        path = Path(frame.f_code.co_filename)
        begun = begun or frame.f_code.co_name == "start_page"
        ended = begun and path.name == "heading.py" and frame.f_code.co_name == "title"
        if begun and path.is_relative_to(PACKAGE):
            modules[str(path.relative_to(PACKAGE))] = None

    threading.setprofile(seen)  # of the thread in which AppTest runs the script
    try:
        run_page(name)
    finally:
        threading.setprofile(None)
    assert ended
    return [*modules]


def test_the_title_is_on_the_screen_after_at_most_ten_modules():
    modules = modules_before_the_title("layernorm")
    assert modules[0] == "ui/shell/page.py"
    assert len(modules) <= MOST, modules
