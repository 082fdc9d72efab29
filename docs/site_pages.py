"""What `python -m mkdocs build` adds to this folder: files that lie elsewhere, and pages made of the code.

The pages of the app come from the navigation, their scripts' docstrings and what they import; the reference
from what the package hands on. Nothing is written down a second time.
"""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

import gptviz
from gptviz.ui.shell.navigation import BESIDE, PAGES, SECTIONS, page_file

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "measured.md": "benchmarks/README.md",
    "card.md": "gptviz/assets/mini/MODEL_CARD.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add them. mkdocs calls this."""
    made = {name: (ROOT / path).read_text("utf-8") for name, path in ELSEWHERE.items()}
    made |= {"pages.md": "\n".join(pages()), "reference.md": reference(), "analysis.md": analysis()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between files of the repository lead to pages; to what is no page, they are words."""
    name = page.file.src_uri
    here = (ROOT / ELSEWHERE.get(name, f"docs/{name}")).parent
    there = {(ROOT / path): made for made, path in ELSEWHERE.items()}

    def led(link: re.Match[str]) -> str:
        label, target = link.groups()
        path = Path(os.path.normpath(here / target))
        if path in there:
            return f"[{label}]({there[path]})"
        return f"[{label}]({path.name})" if path.parent == ROOT / "docs" else label

    return re.sub(r"\[([^\]\n]*)\]\(([\w-]*[./][\w./-]+)\)", led, markdown)


def pages() -> Iterator[str]:
    """Every page of the app: what it answers, its numbers, its choices, and what comes next."""
    yield "# Every page of the app\n"
    yield "Text, model, token, block, head and changes are in the address of all of them: `text`, `model`,"
    yield "`token`, `block`, `head`, `edits`. A page's own choices stand there too, under the names below.\n"
    for section, doors in (SECTIONS | {"Beside them": BESIDE}).items():
        yield f"## {section}\n"
        for name, door in doors.items():
            yield f"### {door.title} {{: #{name} }}\n"
            yield f"*{door.question}* At `/{name}`.\n"
            yield from page(name)
            yield f"Next: [{PAGES[door.next].title}](#{door.next}), because {door.because}\n"


def page(name: str) -> Iterator[str]:
    """What the script of a page says of itself."""
    script = page_file(name)
    files = sorted(script.parent.glob("*.py")) if script.name == "__main__.py" else [script]
    trees = {file: ast.parse(file.read_text("utf-8")) for file in files}
    yield f"{ast.get_docstring(trees[script])}\n"
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    numbers = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gptviz.analysis."):
            found = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            numbers |= {one: path for one, path in found.items() if one.islower() and "reads" not in path}
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
    objects += [f"::: gptviz.claims.{name}" for name in ("claim", "verify", "check", "Checked")]
    return "\n\n".join(["# Reference", *objects]) + "\n"


def analysis() -> str:
    """Every function that gives a number, with its formula, shapes and source."""
    modules = [path.stem for path in sorted((ROOT / "gptviz" / "analysis").glob("[!_]*.py"))]
    head = [
        "# Every number",
        "What the pages draw, of a model and a trace. *In code* of a page shows the same.",
    ]
    return "\n\n".join([*head, *(f"::: gptviz.analysis.{name}" for name in modules)]) + "\n"
