"""The documents: as a site, built strictly, with every page and every public name, for no network; their
pictures; their Python about the bundled model, which runs as it stands there and gives what it says; and
their links.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image, ImageStat

import gptviz
from gptviz.teach import handout
from gptviz.ui.shell.navigation import PAGES
from tests.models.checkpoints import makers

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
VIEWS = tomllib.loads((ROOT / "docs" / "views.toml").read_text("utf-8"))
LARGEST = 1_700_000  # bytes of all pictures together: they are taken anew, and stay in the history
# in one go: what follows uses what went before
TOGETHER = ("README.md", "docs/python.md", "docs/claims.md")
APART = (
    "docs/start.md",
    "docs/reader.md",
    "docs/researcher.md",
    "docs/name_circuit.md",
    "docs/copied_word.md",
    "docs/models.md",
    "docs/own_model.md",
    "docs/attention_weights.md",
    "docs/notebook.md",
)


def test_the_site_is_whole_and_asks_nobody(tmp_path):
    """A link that leads nowhere, a name that is not there, is an error; with --quiet it would be none."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    built = {
        str(file.relative_to(tmp_path)): file.read_text("utf-8")
        for file in tmp_path.rglob("*.html")
    }
    for name, door in PAGES.items():
        assert (
            f'id="{name}"' in built["pages/index.html"]
            and door.question in built["pages/index.html"]
        )
    for name in gptviz.__all__:
        assert re.search(rf'id="gptviz\.([\w.]+\.)?{name}"', built["reference/index.html"]), name
    assert 'id="gptviz.analysis.norms.norm_grids"' in built["analysis/index.html"]
    pages = {file.stem for file in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {f"{page}/index.html" for page in pages} <= built.keys()
    loads = r"<(?:script|img|iframe|link|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
    assert [found for text in built.values() for found in re.findall(loads, text)] == []
    styles = "".join(file.read_text("utf-8") for file in tmp_path.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//|@import", styles)
    demo_is_whole(built["demo.html"], built["try/index.html"] + built["handout/index.html"])
    pictures_are_shown(tmp_path, built)
    gallery_shows_every_page(built["gallery/index.html"])


def demo_is_whole(demo, told):
    """The hand-out that *Try it now* leads to; its size and its pages are what the site says of them."""
    given = json.loads(
        re.search(r'<script type="application/json" id="given">(.*?)</script>', demo)[1]
    )
    assert given["name"] == "mini-world" and given["guide"] is not None
    assert set(re.findall(r"of (\d+) MB", told)) == {f"{len(demo.encode()) / 1e6:.0f}"}
    asked = [parse_qs(fragment) for fragment in re.findall(r"demo\.html#([^\"]*)", unescape(told))]
    pages = {one["page"][0] for one in asked if "page" in one}
    assert pages == set(handout.PAGES)


def pictures_are_shown(folder, built):
    """Every one is there, in the light and in the dark, and says in words what it shows."""
    shown = set()
    for name, text in built.items():
        if name == "demo.html":
            continue
        for image in re.findall(r"<img\b[^>]*>", text):
            source, _, only = re.search(r'src="([^"]*)"', image)[1].partition("#")
            assert (folder / name).parent.joinpath(source).resolve().is_file(), f"{name}: {image}"
            assert len(re.search(r'alt="([^"]*)"', image)[1].split()) > 4, f"{name}: {image}"
            assert only == ("only-dark" if source.endswith("-dark.webp") else "only-light"), (
                f"{name}: {image}"
            )
            shown.add(Path(source).name)
    assert shown == {file.name for file in PICTURES.iterdir()}


def gallery_shows_every_page(text):
    """Each with its picture, and with a link that opens what the picture was taken of."""
    links = [
        urlsplit(unescape(link))
        for link in re.findall(r'href="(http://localhost:8501/[^"]*)"', text)
    ]
    opened = {(link.path[1:], link.query) for link in links}
    assert {page for page, _ in opened} == set(PAGES)
    for name, view in VIEWS.items():
        assert f"pictures/{name}.webp#only-light" in text, name
        if "page" in view:
            choices = {key: [str(value)] for key, value in view.get("choices", {}).items()}
            assert any(
                page == view["page"] and parse_qs(query) == choices for page, query in opened
            ), name


def test_every_view_has_its_two_pictures_and_no_other_is_kept():
    """They are small: a model that is trained anew has them all taken anew."""
    assert set(PAGES) <= VIEWS.keys()
    both = {f"{name}{mode}.webp" for name in VIEWS for mode in ("", "-dark")}
    assert {file.name for file in PICTURES.iterdir()} == both
    for name in VIEWS:
        light, dark = (Image.open(PICTURES / f"{name}{mode}.webp") for mode in ("", "-dark"))
        assert light.width == dark.width <= 1280, name
        bright, dim = (ImageStat.Stat(image.convert("L")).mean[0] for image in (light, dark))
        assert bright > 160 and dim < 100, name
    assert sum(file.stat().st_size for file in PICTURES.iterdir()) < LARGEST


def test_every_view_is_opened_by_the_pages_address_or_by_a_function():
    """`python -m docs.pictures` knows what to do for each."""
    from docs.pictures import OWN

    assert OWN.keys() <= VIEWS.keys()
    for name, view in VIEWS.items():
        assert name in OWN or {"page", "ends"} <= view.keys(), name


def run(names, there):
    """Every block of Python, line by line; what `# -> ` says of an expression is what it gives."""
    for name in names:
        for block in re.findall(
            r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL
        ):
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
