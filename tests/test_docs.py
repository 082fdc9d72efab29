"""The documentation as a site: built strictly, with every page and every public name, for no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import gptviz
from gptviz.ui.shell.navigation import PAGES

ROOT = Path(__file__).parent.parent


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
