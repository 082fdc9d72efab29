"""The documents: as a site, built strictly, with every page and every public name, for no network; their
Python about the bundled model, which runs as it stands there and gives what it says; and their links.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gptviz
from gptviz.ui.shell.navigation import PAGES
from tests.checkpoints import makers

ROOT = Path(__file__).parent.parent
# in one go: what follows uses what went before
TOGETHER = ("README.md", "docs/python.md", "docs/claims.md")
APART = ("docs/start.md", "docs/reader.md", "docs/researcher.md", "docs/models.md")


def test_the_site_is_whole_and_asks_nobody(tmp_path):
    """A link that leads nowhere, a name that is not there, is an error; with --quiet it would be none."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    built = {str(file.relative_to(tmp_path)): file.read_text("utf-8") for file in tmp_path.rglob("*.html")}
    for name, door in PAGES.items():
        assert f'id="{name}"' in built["pages/index.html"] and door.question in built["pages/index.html"]
    for name in gptviz.__all__:
        assert re.search(rf'id="gptviz\.([\w.]+\.)?{name}"', built["reference/index.html"]), name
    assert 'id="gptviz.analysis.norms.norm_grids"' in built["analysis/index.html"]
    assert {f"{file.stem}/index.html" for file in (ROOT / "docs").glob("*.md")} <= built.keys()
    loads = r"<(?:script|img|iframe|link|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
    assert [found for text in built.values() for found in re.findall(loads, text)] == []
    styles = "".join(file.read_text("utf-8") for file in tmp_path.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//|@import", styles)


def run(names, there):
    """Every block of Python, line by line; what `# -> ` says of an expression is what it gives."""
    for name in names:
        for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL):
            lines = block.splitlines()
            for node in ast.parse(block).body:
                code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                _, said, value = lines[node.end_lineno - 1].partition("  # -> ")
                if not said:
                    exec(compile(code, name, "exec"), there)
                    continue
                found = eval(code.partition("  # -> ")[0], there)
                shown = found if isinstance(found, str) else repr(found)
                assert shown == value, f"{name}: {code}"
    return there


def test_the_documented_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a file
    there = run(TOGETHER, {})
    assert len(there["steps"]) == 3 and len(there["greedy"]) == 60 and len(there["best"].ids) == 8
    assert there["found"].agrees and there["found"].kl_bits > 0


@pytest.mark.parametrize("name", APART)
def test_a_page_of_its_own_runs(name, tmp_path, monkeypatch):
    # which somebody trained
    makers.save_book(tmp_path / "model.pth", vocab_size=50257, n_embd=24, n_head=12, n_layer=1)
    monkeypatch.chdir(tmp_path)
    assert run([name], {"gptviz": gptviz})


def test_every_link_of_the_documents_leads_to_a_file():
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", file.read_text("utf-8")):
            assert (file.parent / link).exists(), f"{file.name}: {link}"
