"""The documents' Python about the bundled model runs as it stands there, and gives what it says."""

import ast
import re
from pathlib import Path

import pytest

import gptviz
from tests.checkpoints import makers

ROOT = Path(__file__).parent.parent
# in one go: what follows uses what went before
TOGETHER = ("README.md", "docs/python.md", "docs/claims.md")
APART = ("docs/start.md", "docs/reader.md", "docs/researcher.md", "docs/models.md")


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
