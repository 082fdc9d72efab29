"""What `python -m mkdocs build` adds to this folder: files that lie elsewhere, and pages made of the code.

The pages of the app come from the navigation, their scripts' docstrings and what they import; the reference
from what the package hands on; the gallery from `views.toml`, by which its pictures are taken. Nothing is
written down a second time. A hand-out of the bundled model lies beside the pages, as `demo.html`.
"""

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mkdocs.structure.files import File
from PIL import Image

import gptviz
from gptviz.teach import guides
from gptviz.teach.claims import DEFAULT_TEXT
from gptviz.teach.handout import handout
from gptviz.ui.shell.navigation import PAGES, SECTIONS, UNLISTED, page_file

ROOT = Path(__file__).resolve().parents[1]
VIEWS = tomllib.loads((ROOT / "docs" / "views.toml").read_text("utf-8"))
DEMO = "demo.html"
ELSEWHERE = {
    "features.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "measured.md": "benchmarks/README.md",
    "card.md": "gptviz/assets/mini/MODEL_CARD.md",
    "card_world.md": "gptviz/assets/mini-world/MODEL_CARD.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add them. mkdocs calls this."""
    made = {name: (ROOT / path).read_text("utf-8") for name, path in ELSEWHERE.items()}
    made |= {"pages.md": "\n".join(pages(config.extra["app"])), "reference.md": reference()}
    made |= {"analysis.md": analysis(), DEMO: demo()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Links between files of the repository lead to pages; to what is no page, they are words.

    A picture is shown light or dark, as the reader's site is. The gallery gets its pictures.
    """
    name = page.file.src_uri
    if name == "gallery.md":
        usual = "http://localhost:8501"  # as it is written there
        markdown = "\n".join(
            [markdown.replace(usual, config.extra["app"]), "", *gallery(config.extra["app"])]
        )
    here = (ROOT / ELSEWHERE.get(name, f"docs/{name}")).parent
    there = {(ROOT / path): made for made, path in ELSEWHERE.items()}

    def led(link: re.Match[str]) -> str:
        label, target = link.groups()
        path = Path(os.path.normpath(here / target))
        if path in there:
            return f"[{label}]({there[path]})"
        if path.parent == ROOT / "docs" / "pictures":
            return f"[{label}](pictures/{path.name})"
        if path.parent == ROOT / "docs":
            return f"[{label}]({path.name})"
        return label

    linked = re.sub(r"\[([^\]\n]*)\]\(([\w-]*[./][\w./-]+)\)", led, markdown)
    return re.sub(r"!\[([^\]\n]*)\]\(pictures/(\w+)\.webp\)", in_both_modes, linked)


def in_both_modes(picture: re.Match[str]) -> str:
    """The two files of a picture; the theme shows one of them. Their sizes keep the text from jumping."""
    alt, name = picture.groups()
    shown = ""
    for mode, file in (("light", f"{name}.webp"), ("dark", f"{name}-dark.webp")):
        width, height = Image.open(ROOT / "docs" / "pictures" / file).size
        size = f'width="{width}" height="{height}" loading="lazy"'
        shown += f"![{alt}](pictures/{file}#only-{mode}){{ {size} }}"
    return shown


@cache
def demo() -> str:
    """The hand-out that *Try it now* opens: with the tour, unless a link names a page of it."""
    return handout(gptviz.load(), DEFAULT_TEXT, guide=guides.find("tour"))


def gallery(app: str) -> Iterator[str]:
    """Every page of the app as a picture, then what stands beside the pages."""
    for section, doors in (SECTIONS | {"Not in the list": UNLISTED}).items():
        yield f"## {section}\n"
        for name, door in doors.items():
            yield f"### {door.title} {{: #{name} }}\n"
            yield from shown(name, app)
    yield "## More views\n"
    for name, view in VIEWS.items():
        if name not in PAGES:
            yield f"### {view['title']} {{: #{name} }}\n"
            yield from shown(name, app)


def shown(name: str, app: str) -> Iterator[str]:
    """A view's sentence and picture, and the links that open it."""
    view = VIEWS[name]
    yield f"{view['says']}\n"
    yield f"![{view['alt']}](pictures/{name}.webp)\n"
    links = []
    if "page" in view:
        links.append(f"[Open in the app]({address(app, view)})")
        if "then" in view:
            links[-1] += f", then {view['then']}"
    if "demo" in view:
        links.append(f"[Try it here]({demo_address(view)})")
    if name in PAGES:
        links.append(f"[What the page has](pages.md#{name})")
    else:
        links.append(f"[How it is done]({view['told']})")
    yield f"{' · '.join(links)}\n"


def address(app: str, view: dict[str, Any]) -> str:
    """What opens a view in the app."""
    choices = view.get("choices", {})
    if choices:
        return f"{app}/{view['page']}?{urlencode(choices)}"
    return f"{app}/{view['page']}"


def demo_address(view: dict[str, Any]) -> str:
    """What opens a view in the hand-out, which has the app's names for what is chosen."""
    return f"{DEMO}#{urlencode({'page': view['demo']} | view.get('choices', {}))}"


def pages(app: str) -> Iterator[str]:
    """Every page of the app: what it answers, its numbers, its choices, and what comes next."""
    yield "# Every page of the app\n"
    yield "Every address contains text, model, token, block, head and changes: `text`, `model`, `token`, `block`,"
    yield "`head`, `edits`. It also contains the page's own choices, under the names below.\n"
    for section, doors in (SECTIONS | {"Not in the list": UNLISTED}).items():
        yield f"## {section}\n"
        for name, door in doors.items():
            yield f"### {door.title} {{: #{name} }}\n"
            yield f"*{door.question}* At `/{name}`.\n"
            view = VIEWS[name]
            yield f"![{view['alt']}](pictures/{name}.webp)\n"
            yield f"[Open this view in the app]({address(app, view)})\n"
            yield from page(name)
            yield f"Next: [{PAGES[door.next].title}](#{door.next}). {door.on_next}\n"


def page(name: str) -> Iterator[str]:
    """What the script of a page says of itself."""
    script = page_file(name)
    files = [script, *sorted((ROOT / "gptviz" / "ui" / "parts" / name).glob("*.py"))]
    trees = {file: ast.parse(file.read_text("utf-8")) for file in files}
    yield f"{ast.get_docstring(trees[script])}\n"
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    numbers = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gptviz.analysis."):
            found = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            numbers |= {
                one: path for one, path in found.items() if one.islower() and "reads" not in path
            }
    if numbers:
        yield f"Its numbers: {', '.join(f'[`{name}`][{numbers[name]}]' for name in sorted(numbers))}.\n"
    chosen = {
        node.args[0].value: None
        for node in nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("Param")
        and isinstance(node.args[0], ast.Constant)
    }
    if chosen:
        yield f"In its address: {', '.join(f'`{one}`' for one in chosen)}.\n"


def reference() -> str:
    """Everything public, by mkdocstrings."""
    names = sorted(gptviz.__all__, key=str.isupper)  # values after functions and classes
    objects = [f"::: gptviz.{name}" for name in names]
    objects += [
        f"::: gptviz.teach.claims.{name}" for name in ("claim", "verify", "check", "Checked")
    ]
    return "\n\n".join(["# Reference", *objects]) + "\n"


def analysis() -> str:
    """Every function that gives a number, with its formula, shapes and source."""
    modules = [path.stem for path in sorted((ROOT / "gptviz" / "analysis").glob("[!_]*.py"))]
    head = [
        "# Every number",
        "The functions that compute what the pages draw, from a model and a trace.",
        "The tab *Code* of *Details* shows them, too.",
    ]
    return "\n\n".join([*head, *(f"::: gptviz.analysis.{name}" for name in modules)]) + "\n"
