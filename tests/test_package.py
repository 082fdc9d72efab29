"""What `pip install gptviz` brings: every file, the command, and an app that answers on all pages."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
from email import message_from_string
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
import yaml
from setuptools import Distribution

import gptviz
from gptviz.ui.shell.navigation import PAGES
from tests.browser.conftest import start_server, stop_server

ROOT = Path(__file__).parent.parent


def installed():
    """The files that setuptools takes into a wheel, as pyproject.toml says it; the current folder is ours."""
    package = Distribution({"script_name": "setup.py"})
    package.parse_config_files()
    package.include_package_data = False  # the globs of pyproject.toml alone, and no egg-info
    build = package.get_command_obj("build_py")
    build.ensure_finalized()
    modules = [Path(path) for _, _, path in build.find_all_modules()]
    data = [Path(folder, name) for _, folder, _, names in build.data_files for name in names]
    return {str((ROOT / path).resolve().relative_to(ROOT)) for path in modules + data}


def ours():
    """The files of the package: those that git has or would take; without git all that are there."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "gptviz"]
        said = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in (ROOT / "gptviz").rglob("*") if "__pycache__" not in path.parts]
        said = [str(path.relative_to(ROOT)) for path in found]
    return {path for path in said if (ROOT / path).is_file()}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_an_installed_gptviz_has_every_file():
    assert {"gptviz/ui/components/kernel.js", "gptviz/assets/mini/model.safetensors"} <= ours()
    assert installed() == ours()


def test_it_is_cited_as_what_it_is():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert f"## [{cited['version']}] " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def installed_wheel(home):
    """An environment with the wheel in it, and of what it requires only what is installed for the tests."""
    source, env = home / "source", home / "env"
    shutil.copytree(ROOT / "gptviz", source / "gptviz", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".streamlit", source / ".streamlit")
    for name in ("app.py", "pyproject.toml", "README.md", "LICENSE", "requirements.txt"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", home, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    (wheel,) = home.glob("*.whl")
    command = [*pip, "--python", env / "bin" / "python", "install", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True)
    (packages,) = env.glob("lib/python*/site-packages")
    (packages / "requirements.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run([*pip, "--python", env / "bin" / "python", "check"], check=True)  # all that it requires
    return env


def post(url, what):
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(what).encode(), kinds)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def switch_off_the_best_induction_head(url):
    """The program of docs/agents.md, which knows nothing but the app, against a trace."""
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/agents.md").read_text("utf-8"), re.DOTALL)
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


def test_the_wheels_own_app_answers_on_every_page(tmp_path):
    fresh = installed_wheel(tmp_path)
    (found,) = fresh.glob("lib/python*/site-packages/gptviz-*.dist-info")
    asked = message_from_string((found / "METADATA").read_text("utf-8")).get_all("Requires-Dist")
    lines = [line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    assert [one for one in asked if "extra ==" not in one] == [line for line in lines if line]
    files = {path.name: path.locate() for path in PathDistribution(found).files}
    assert (files["app.py"].parent / ".streamlit" / "config.toml").is_file() and "py.typed" in files

    options = ("--server.enableAgentApi", "true")
    # nothing of this checkout: neither its folder nor a path to it
    process, url = start_server(tmp_path, *options, gptviz=fresh / "bin" / "gptviz", PYTHONPATH="")
    try:
        for name, door in PAGES.items():
            asked = {"page": name, "query_params": {"base_steps": ["50"], "base_measure": ["off"]}}
            said = post(f"{url}/_stcore/agent/interact", asked)
            assert (said["status"], said["page"]["title"]) == ("ready", door.title)
            assert not {"error", "exception"} & {node["type"] for node in nodes(said["tree"])}
        switch_off_the_best_induction_head(url)
        # the same as an MCP server
        call = {"name": "interact", "arguments": {"page": "tokens", "query_params": {"text": ["one two"]}}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        (told,) = post(f"{url}/_stcore/agent/mcp", asked)["result"]["content"]
        assert json.loads(told["text"])["page"]["title"] == "Tokens"
    finally:
        stop_server(process)
