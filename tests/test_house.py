"""The rules of the house: which room may import which, and that nothing unfinished is lying about."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gptviz"
SOURCES = sorted([*PACKAGE.rglob("*.py"), ROOT / "app.py"])

# each room may import from itself and from those below it
FLOORS = [
    {"app", "cli", "__main__"},
    {"ui"},
    {"figures"},
    {"lessons"},
    {"training"},
    {"analysis"},
    {"catalog"},
    {"loading", "convert"},
    {"checkpoints"},
    {"engine"},
    {"tokenizer", "fast"},
    {"both"},
    {"model", "digits", "disk_cache", "leash"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# the rooms of `ui`, in the same way: views -> shell -> runs -> models, components -> what all may use
UI_FLOORS = [
    {"pages"},
    {"views", "serving"},
    {"sheet"},
    {"shell"},
    {"heads"},
    {"measuring"},
    {"runs", "training"},
    {"models", "components"},
    {"words", "tables", "glossary", "settings", "root", "worker"},
]
UI_FLOOR = {room: floor for floor, rooms in enumerate(UI_FLOORS) for room in rooms}

# a component draws what it is given: colours, and how a token looks
COMPONENTS_KNOW = (
    "gptviz.figures",
    "gptviz.tokenizer",
    "gptviz.engine.trace.Token",
    "gptviz.digits",
    "gptviz.ui.components",
)

SCRIPT = re.compile(r".*__main__|gptviz\.ui\.pages\.[^.]+")  # to be run, not imported


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    if relative.parts[0] != "gptviz":
        return relative.parts[0].removesuffix(".py")
    return relative.parts[1].removesuffix(".py")


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


@cache
def imports(path: Path) -> list[str]:
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = room_of(path)
    if room == "__init__":
        return
    assert room in FLOOR, f"{room} is a new room: give it a floor"
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "streamlit":
            assert room in {"ui", "app"}, f"{room} imports streamlit"
        if top == "plotly":
            assert room == "figures", f"{room} imports plotly"
        if top == "gptviz" and rest:
            target = rest.split(".")[0]
            if target in FLOOR:
                assert FLOOR[target] >= FLOOR[room], f"{room} imports {target}, which is above it"


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "ui").rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_the_rooms_of_ui_import_one_way(path):
    room = path.relative_to(PACKAGE / "ui").parts[0].removesuffix(".py")
    if room == "__init__":
        return
    assert room in UI_FLOOR, f"ui/{room} is a new room: give it a floor"
    for name in imports(path):
        target = name.removeprefix("gptviz.ui.").split(".")[0]
        if name.startswith("gptviz.ui.") and target in UI_FLOOR and target != room:
            assert UI_FLOOR[target] > UI_FLOOR[room], f"ui/{room} imports ui/{target}"


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "ui" / "components").rglob("*.py")), ids=lambda p: p.parent.name
)
def test_components_know_only_the_theme_and_how_tokens_look(path):
    known = {name for name in imports(path) if name.startswith(COMPONENTS_KNOW)}
    ours = {name for name in imports(path) if name.startswith("gptviz.") and name != "gptviz.engine.trace"}
    assert not ours - known, f"{path.parent.name} knows {sorted(ours - known)}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "ui").rglob("words.py")), ids=lambda p: p.parent.name)
def test_words_are_functions_of_numbers(path):
    for name in imports(path):
        assert name.split(".")[0] not in ("streamlit", "plotly")
        assert not name.startswith("gptviz.ui.") or name.startswith(("gptviz.ui.words", "gptviz.ui.glossary"))


def test_the_model_can_be_read_alone():
    assert {name.split(".")[0] for name in imports(PACKAGE / "model.py")} == {"torch"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_are_finished(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", text)
    for node in nodes(path):
        if isinstance(node, ast.ExceptHandler):
            assert not all(isinstance(step, ast.Pass) for step in node.body), (
                f"{path}:{node.lineno} swallows an error"
            )
