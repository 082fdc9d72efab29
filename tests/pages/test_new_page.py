"""CONTRIBUTING's example of a new page, taken from there and run: its numbers, its picture, its program."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gptviz.digits import significant
from gptviz.ui.shell import navigation
from gptviz.ui.shell.details import DRAWN
from gptviz.ui.shell.navigation import Door
from tests.pages.conftest import visit
from tests.specs import charts, left_by_program, prose

TEXT = "Sam and the dog and the cat"
EDIT = "q.0=zero,k.2=zero"
FILES = dict(
    re.findall(
        r"^`((?:gptviz/)?\w+/[\w/]*\w+\.py|pages/\w+\.py)`: .*?\n```python\n(.*?)```",
        (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page's script; the module with its numbers can be imported as if it were the package's."""
    for name, code in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(code, "utf-8")
    module = "gptviz.analysis.key_norms"
    spec = importlib.util.spec_from_file_location(
        module, tmp_path / "gptviz" / "analysis" / "key_norms.py"
    )
    monkeypatch.setitem(sys.modules, module, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(sys.modules[module])
    door = Door(
        "Key norms", "straighten", "How long are keys?", "attention", "a query looks at keys."
    )
    monkeypatch.setitem(navigation.PAGES, "key_norms", door)
    script = tmp_path / "pages" / "key_norms.py"
    files = navigation.page_file
    monkeypatch.setattr(
        navigation, "page_file", lambda name: script if name == "key_norms" else files(name)
    )
    return script


def test_two_files_of_sixty_lines_are_a_page(page, mini):
    assert list(FILES) == ["gptviz/analysis/key_norms.py", "pages/key_norms.py"]
    assert sum(bool(line.strip()) for code in FILES.values() for line in code.splitlines()) <= 60
    query = {"text": TEXT, "token": 3, "block": 2, "head": 5, "edits": EDIT}
    at = visit(page, {DRAWN: {"numbers_key-norms"}}, **query)
    now, was = (
        np.concatenate(
            [mini.trace(TEXT, edits=edits)["k", b].norm(dim=-1).numpy() for b in range(6)]
        )
        for edits in (EDIT.split(","), [])
    )
    (drawn,) = charts(at)
    assert np.allclose(drawn["data"][0]["z"], now - was, atol=1e-4)
    assert f"**0 (unchanged {significant(float(was[21, 3]))})**" in prose(at)
    assert np.allclose(at.dataframe[0].value["unchanged 2 · 5"], was[21], atol=1e-4)
    program = left_by_program(at)
    assert np.allclose(program["picture"], now, atol=1e-4)
    assert np.allclose(program["unchanged"], was, atol=1e-4)
