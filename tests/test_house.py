"""The rules of the house: which room may import which, and that nothing unfinished is lying about.

Each rule is one test, which names all that break it.
"""

import ast
import graphlib
import pkgutil
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import gptviz

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gptviz"
UI = PACKAGE / "ui"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"])

# each room may import from itself and from the floors below it
FLOORS = [
    {"app", "__main__"},
    {"pages"},
    {"cli", "claims"},
    {"server"},
    {"teach.handout"},  # it is written of the components' JavaScript
    {"ui"},
    {"jobs"},
    {"figures"},
    {"teach"},
    {"lessons"},
    {"book"},
    {"training"},
    {"analysis"},
    {"models"},
    {"engine"},
    {"tokenizer", "fast"},
    {"both"},
    {"model", "llama", "digits", "files", "text", "parent_watch", "extras"},
]
MODELS_FLOORS = [{"catalog", "convert"}, {"wrapping"}, {"loading"}, {"checkpoints"}]
# the rooms of `ui`, in the same way: sheet -> shell -> runs -> models, components -> what all may use
UI_FLOORS = [
    {"parts"},
    {"many", "notebook"},
    {"sheet"},
    {"shell", "teach"},
    {"heads"},
    {"jobs"},
    {"runs", "training"},
    {"lens_cells"},
    {"models", "components"},
    {"waiting"},
    {"words", "buttons", "tables", "settings", "memory"},
]
# every page's frame asks whether the class has moved, and the class's bar stands in that frame
NEIGHBOURS = {"shell": {"teach"}, "teach": {"shell"}}
# a component draws what it is given: colours, and how a token looks
COMPONENTS_KNOW = (
    "gptviz.figures",
    "gptviz.both",
    "gptviz.tokenizer",
    "gptviz.engine.tokens",
    "gptviz.digits",
    "gptviz.ui.components",
)

SCRIPT = re.compile(r".*__main__")  # to be run, not imported


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in SOURCES}


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


@cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports, those for types too; of what is no module of ours, the dotted name."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return found


def below(floors: list[set[str]], inside: Path) -> list[str]:
    """What a room of this folder imports from a room that does not lie below it."""
    floor_of = {room: floor for floor, rooms in enumerate(floors) for room in rooms}
    prefix = f"{module_of(inside)}." if inside != ROOT else ""
    broken = []

    def room_of(module: str) -> str:
        """The room or, where that has a floor of its own, the room in a room ("teach.handout")."""
        room, _, rest = module.removeprefix(prefix).removeprefix("gptviz.").partition(".")
        inner = f"{room}.{rest.partition('.')[0]}"
        return inner if inner in floor_of else room

    for module, path in MODULES.items():
        if not module.startswith(prefix) or module == "gptviz":
            continue
        floor = floor_of.get(room_of(module))
        if floor is None:
            broken.append(f"{module} is in a new room: give it a floor")
            continue
        others = {name for name in imports(path) if name.startswith(prefix or "gptviz.")}
        above = {room for room in floor_of if floor_of[room] <= floor} - {room_of(module)}
        if inside == UI:
            above -= NEIGHBOURS.get(room_of(module), set())
        broken += [f"{module} imports {name}" for name in others if room_of(name) in above]
    return broken


def test_rooms_import_from_below():
    assert below(FLOORS, ROOT) == []
    assert below(UI_FLOORS, UI) == []
    assert below(MODELS_FLOORS, PACKAGE / "models") == []


def test_no_two_files_import_each_other_round_a_circle():
    graph = {
        module: {name for name in imports(path) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # says which files, where there is a circle


def test_no_page_imports_from_another():
    """A page's parts are its own: `gptviz/ui/parts/NAME` is imported by `pages/NAME.py` and by itself."""
    broken = []
    for module, path in MODULES.items():
        page = re.match(r"(?:pages|gptviz\.ui\.parts)\.([^.]+)", module)
        for name in imports(path):
            part = re.match(r"gptviz\.ui\.parts\.([^.]+)", name)
            if part and not (page and page[1] == part[1]):
                broken.append(f"{module} imports {name}")
    assert broken == []


def test_streamlit_plotly_and_torch_stay_where_they_belong():
    broken = []
    for module, path in MODULES.items():
        tops = {name.split(".")[0] for name in imports(path)}
        if "streamlit" in tops and not re.match(r"app$|pages\.|gptviz\.(ui|server)\b", module):
            broken.append(f"{module} imports streamlit")
        if "plotly" in tops and not module.startswith("gptviz.figures"):
            broken.append(f"{module} imports plotly")
    assert broken == []
    for model in ("model.py", "llama.py"):
        assert {name.split(".")[0] for name in imports(PACKAGE / model)} == {"torch"}


def test_ray_is_imported_only_by_its_folder_and_where_it_is_set():
    """What needs Ray stands in `gptviz/jobs/ray`. Two functions import it, when GPTVIZ_RAY says so."""
    may = {"gptviz.ui.jobs", "gptviz.server.doctor"}
    broken = []
    for module, path in MODULES.items():
        if module.startswith("gptviz.jobs.ray"):
            continue
        if not any(re.match(r"(gptviz\.jobs\.)?ray\b", name) for name in imports(path)):
            continue
        top = ast.parse(path.read_text(encoding="utf-8")).body
        at_once = [
            ast.unparse(node) for node in top if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        if module not in may or re.search(r"\bray\b", " ".join(at_once)):
            broken.append(module)
    assert broken == []
    script = "import sys, gptviz.server.serving, gptviz.server.doctor; sys.exit('gptviz.jobs.ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


def test_components_know_only_the_theme_and_how_tokens_look():
    broken = []
    for path in (UI / "components").rglob("*.py"):
        ours = {name for name in imports(path) if name.split(".")[0] == "gptviz"}
        broken += [f"{path} knows {n}" for n in ours if not n.startswith(COMPONENTS_KNOW)]
    assert broken == []


def test_everything_is_finished_and_no_error_is_swallowed():
    broken = []
    for path in SOURCES:
        if re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", path.read_text(encoding="utf-8")):
            broken.append(f"{path} is not finished")
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler) and all(
                isinstance(step, ast.Pass) for step in node.body
            ):
                broken.append(f"{path}:{node.lineno} swallows an error")
    assert broken == []


def test_nobody_but_the_engine_runs_a_model():
    """Apart from training, which computes losses, no module of the package has a pass of its own."""
    broken = []
    for module, path in MODULES.items():
        if re.match(r"gptviz\.((model|llama)$|engine\.(forward|past)$|training\b)", module):
            continue
        calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
        runs = ("final_hidden", "out_head", "trf_blocks", "lm.model")
        broken += [
            f"{path}:{call.lineno}" for call in calls if ast.unparse(call.func).endswith(runs)
        ]
    assert broken == []


def test_a_position_that_is_not_named_is_the_last():
    broken = []
    for path in SOURCES:
        for node in (node for node in nodes(path) if isinstance(node, ast.arguments)):
            plain = node.posonlyargs + node.args
            defaults = [None] * (len(plain) - len(node.defaults)) + node.defaults + node.kw_defaults
            for name, default in zip(plain + node.kwonlyargs, defaults, strict=True):
                if (
                    name.arg == "position"
                    and default
                    and ast.unparse(default) not in ("-1", "None")
                ):
                    broken.append(f"{path}:{name.lineno}")
    assert broken == []


def test_no_function_hides_a_module():
    """`import gptviz.a.b as m` gives the module b, whatever the package a hands on by name."""
    names = [m.name for m in pkgutil.walk_packages(gptviz.__path__, "gptviz.")]
    names = [name for name in names if not SCRIPT.fullmatch(name)]
    for name in names:
        import_module(name)
    packages = [(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in names]
    assert [n for p, n in packages if not isinstance(getattr(p, n), ModuleType)] == []


# what a page says with Streamlit, all of it Markdown
SAYS = {"error", "warning", "info", "success", "caption", "markdown", "toast", "write", "progress"}
PLAINLY = {"escaped", "as_code", "say"}  # `classroom.say` and its like escape where they draw


def said_bare(node: ast.AST, name: str) -> bool:
    """Whether a sentence has the error of this name in it as Markdown."""
    if isinstance(node, ast.Name):
        return node.id == name
    if name_called(node) in PLAINLY:
        return False
    return any(said_bare(child, name) for child in ast.iter_child_nodes(node))


def name_called(node: ast.AST) -> str:
    """The name of the function that is called, "" for what is no call."""
    called = node.func if isinstance(node, ast.Call) else None
    return str(getattr(called, "attr", getattr(called, "id", "")))


def test_what_an_error_says_is_no_markdown():
    """It quotes what somebody has typed, and what stands in an address or a file."""
    broken = []
    for path in sorted([*UI.rglob("*.py"), *(ROOT / "pages").glob("*.py")]):
        for handler in nodes(path):
            if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
                continue
            for node in ast.walk(handler):
                says = isinstance(node, ast.Call) and name_called(node) in SAYS
                if says and any(said_bare(given, handler.name) for given in node.args):
                    broken.append(f"{module_of(path)}:{node.lineno}")
    assert not broken


def test_what_a_failed_work_says_is_no_markdown():
    """Its error quotes what was typed, too: `work.error` stands in no sentence as it is."""
    broken = []
    for path in sorted([*UI.rglob("*.py"), *(ROOT / "pages").glob("*.py")]):
        for node in nodes(path):
            says = isinstance(node, ast.Call) and name_called(node) in SAYS
            if says and any(error_bare(given) for given in node.args):
                broken.append(f"{module_of(path)}:{node.lineno}")
    assert not broken


def error_bare(node: ast.AST) -> bool:
    """Whether a sentence has some `.error` in it as Markdown."""
    if isinstance(node, ast.Attribute) and node.attr == "error":
        return True
    if name_called(node) in PLAINLY:
        return False
    return any(error_bare(child) for child in ast.iter_child_nodes(node))
