"""What `pip install gptviz` brings: every file, the command, and an app that answers on all pages."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
from importlib.metadata import packages_distributions, requires
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gptviz
from gptviz.extras import APP as APP_MODULES
from gptviz.ui.shell.navigation import PAGES
from tests.browser.conftest import start_server, stop_server

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# ranges, by extra: "" is what every installation has
RANGES = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
RANGES = {extra: [Requirement(one) for one in ranges] for extra, ranges in RANGES.items()}
# what a wheel has beside the files of the package: the app, and the settings that Streamlit reads beside it
APP = {"app.py": "gptviz/app.py", ".streamlit/config.toml": "gptviz/.streamlit/config.toml"}


def ours():
    """The files of the package: those that git has or would take; without git all that are there."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "gptviz"]
        said = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in (ROOT / "gptviz").rglob("*") if "__pycache__" not in path.parts]
        said = [str(path.relative_to(ROOT)) for path in found]
    return {path for path in said if (ROOT / path).is_file()}


def pins(file):
    """The exact versions of a file of requirements, by name."""
    lines = [
        line.partition("#")[0].strip() for line in (ROOT / file).read_text("utf-8").splitlines()
    ]
    exact = [
        re.fullmatch(r"([\w.-]+)(?:\[.*\])?==([\w.]+)", line)
        for line in lines
        if line and line[0] != "-"
    ]
    return {canonicalize_name(found[1]): found[2] for found in exact}


def test_each_pin_lies_in_its_range_and_each_range_has_a_pin():
    pinned = pins("requirements.txt")
    assert {canonicalize_name(one.name) for one in RANGES[""] + RANGES["app"]} == pinned.keys()
    pinned |= pins("requirements-dev.txt")
    for one in chain.from_iterable(RANGES.values()):
        assert pinned[canonicalize_name(one.name)] in one.specifier, one
        # exact versions cannot be installed beside anything else
        assert {part.operator for part in one.specifier} <= {">=", "<"}, one


def test_an_extra_is_imported_by_the_names_that_are_known():
    assert {canonicalize_name(one.name) for one in RANGES["app"]} == APP_MODULES


def required():
    """What `pip install gptviz` brings without an extra, with all that this requires in turn."""
    found = set()
    asked = [(one.name, frozenset(one.extras)) for one in RANGES[""]]
    while asked:
        name, extras = asked.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        for line in requires(name) or ():
            one = Requirement(line)
            wanted = one.marker is None or any(
                one.marker.evaluate({"extra": e}) for e in extras or {""}
            )
            if wanted:
                asked.append((one.name, frozenset(one.extras)))
    return {canonicalize_name(name) for name, _ in found}


# Of what is installed only these are found by what follows: as where nothing else is.
WITHOUT = """
import sys

HIDDEN = {hidden}


class Hiding:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in HIDDEN
        return None if hidden else self._finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self._finder, name)


for module in [name for name in sys.modules if name.partition(".")[0] in HIDDEN]:
    del sys.modules[module]
sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""

ALONE = """
from pathlib import Path

import gptviz
from gptviz import cli
from gptviz.ui.notebook import PICTURES

lm = gptviz.load("mini")
t = lm.trace("The cat sat on the mat")
assert t["attn", 3].shape == (8, 6, 6)
assert len([*lm.generate("The cat", 3)]) == 3
assert len(t.next_tokens(5)) == 5
assert len(t.attribution(" mat")) > 0
assert gptviz.wrap(lm.model, lm.tokenizer).trace("The cat").logits(-1).shape == (8192,)
assert "iframe" in t.show()._repr_html_()
drawn, refused = [], []
# these four take a second text, or many passes
for page in PICTURES.keys() - {"patching", "compare", "circuit", "knock_out"}:
    try:
        drawn.append(t.show(page).to_html(f"{page}.html"))
    except ValueError as error:
        assert str(error).endswith('needs streamlit, which is not installed: pip install "gptviz[app]"')
        refused.append(page)
print("drawn", len(drawn), "refused", len(refused))
package = Path(gptviz.__file__).parent
mini = str(package / "assets/mini")
wanted = [["models"], ["trace", "The cat"], ["info", mini], ["export", "mini.html"]]
assert [cli.main(arguments) for arguments in wanted] == [0] * len(wanted)
wanted = [[], ["app"], ["doctor"], ["guide", "check", str(package / "teach/guides/texts/tour.md")]]
assert [cli.main(arguments) for arguments in wanted] == [1] * len(wanted)
"""


def test_without_the_app_gptviz_is_imported_traces_and_shows(tmp_path):
    """All that is not required is hidden: `dependencies` are enough, and what needs more says so."""
    brought = required()
    hidden = {*APP_MODULES}
    for module, names in packages_distributions().items():
        if not brought & {canonicalize_name(name) for name in names} and module != "gptviz":
            hidden.add(module)
    assert {"ray", "pyarrow"} <= hidden and not {"torch", "plotly", "pandas"} & hidden
    program = tmp_path / "alone.py"
    program.write_text(WITHOUT.format(hidden=hidden) + ALONE)
    told = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert "Traceback" not in told.stderr
    said = told.stderr.splitlines()
    assert len(said) == 4 and all(line.endswith('pip install "gptviz[app]"') for line in said)
    drawn, refused = re.search(r"^drawn (\d+) refused (\d+)$", told.stdout, re.MULTILINE).groups()
    assert int(drawn) >= 8 and int(refused) >= 1


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The package as pip builds it."""
    home = tmp_path_factory.mktemp("wheel")
    source = home / "source"
    shutil.copytree(
        ROOT / "gptviz", source / "gptviz", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / ".streamlit", source / ".streamlit")
    shutil.copytree(ROOT / "pages", source / "pages", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", home, source], check=True
    )
    (built,) = home.glob("*.whl")
    return built


def test_a_wheel_has_every_file(wheel):
    assert {"gptviz/ui/components/kernel.js", "gptviz/assets/mini/model.safetensors"} <= ours()
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    pages = {f"gptviz/pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    assert names == ours() | {*APP.values()} | pages
    assert wheel.name.startswith(f"gptviz-{gptviz.__version__}-")


def test_it_is_cited_as_what_it_is():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (cited["version"], cited["license"]) == (gptviz.__version__, project["license"])
    assert f"## [{cited['version']}] " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def installed(wheel, home):
    """The command of an environment with the wheel in it, and of what it requires what the tests have."""
    env = home / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    pip = [*PIP, "--python", env / "bin" / "python"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    (packages,) = env.glob("lib/python*/site-packages")
    (packages / "requirements.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run([*pip, "check"], check=True)  # all that it requires
    return [str(env / "bin" / "gptviz")], ""


def copied(wheel, home):
    """The package's folder alone, out of the wheel. What stands beside it in a target of pip's, or in a wheel
    that is unpacked, is not read."""
    target = home / "copy"
    with ZipFile(wheel) as packed:
        packed.extractall(
            target, [name for name in packed.namelist() if name.startswith("gptviz/")]
        )
    return [sys.executable, "-m", "gptviz"], target


def editable(wheel, home):
    """`pip install --editable` of a checkout."""
    target = home / "target"
    command = [
        *PIP,
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        target,
        "--editable",
        ROOT,
    ]
    subprocess.run(command, check=True)
    run_site = (
        "import runpy, site, sys; site.addsitedir(sys.argv.pop(1)); runpy.run_module('gptviz')"
    )
    return [sys.executable, "-c", run_site, str(target)], ""


def post(url, what):
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(what).encode(), kinds)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def switch_off_the_best_induction_head(url):
    """The program of docs/agents.md, which knows nothing but the app, against a trace."""
    (program,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/agents.md").read_text("utf-8"), re.DOTALL
    )
    there = {}
    exec(program.replace("http://127.0.0.1:8501", url), there)
    lm = gptviz.load("mini")
    for name, edits in (("probability", [there["edit"]]), ("unchanged probability", [])):
        p = lm.trace(there["TEXT"], edits=edits).logits(-1).double().softmax(-1)
        assert there["first"][name] == pytest.approx(float(p[there["first"]["id"]]), abs=1e-5)
    assert there["first"]["unchanged probability"] > 0.9
    assert there["edit"] == "z.5.0=zero"  # the head that the model's card names


def nodes(tree):
    yield tree
    for child in tree.get("children", ()):
        yield from nodes(child)


def opened(url, page, **params):
    """What the app answers of a page."""
    asked = {"page": page, "query_params": {name: [value] for name, value in params.items()}}
    said = post(f"{url}/_stcore/agent/interact", asked)
    assert (said["status"], said["page"]["title"]) == ("ready", PAGES[page].title)
    assert not {"error", "exception"} & {node["type"] for node in nodes(said["tree"])}


AGENT = ("--server.enableAgentApi", "true")


def test_an_installed_app_answers_on_every_page(tmp_path, wheel):
    command, path = installed(wheel, tmp_path)
    # nothing of this checkout: neither its folder nor a path to it
    process, url = start_server(tmp_path, *AGENT, gptviz=command, PYTHONPATH=path)
    try:
        for name in PAGES:
            opened(url, name, base_steps="50", base_measure="off")
        switch_off_the_best_induction_head(url)
        # the same as an MCP server
        call = {
            "name": "interact",
            "arguments": {"page": "tokens", "query_params": {"text": ["one two"]}},
        }
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        (told,) = post(f"{url}/_stcore/agent/mcp", asked)["result"]["content"]
        assert json.loads(told["text"])["page"]["title"] == "Tokens"
    finally:
        stop_server(process)


@pytest.mark.parametrize("way", [copied, editable])
def test_the_app_travels_with_the_package(tmp_path, wheel, way):
    """It is found wherever the package lies: a folder of its own, a copy, a checkout."""
    command, path = way(wheel, tmp_path)
    process, url = start_server(tmp_path, *AGENT, gptviz=command, PYTHONPATH=str(path))
    try:
        opened(url, "tokens", text="one two")
    finally:
        stop_server(process)


def test_no_module_of_ours_hides_anothers():
    """Streamlit puts the folder of app.py in front of all others: in a wheel that is the package's."""
    ours = {
        path.stem for path in (ROOT / "gptviz").iterdir() if path.suffix == ".py" or path.is_dir()
    }
    ours -= {"__init__", "__main__", "__pycache__"}
    assert "model" in ours
    assert ours & ({*sys.stdlib_module_names} | {*packages_distributions()}) == set()
