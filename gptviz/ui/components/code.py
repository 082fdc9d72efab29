"""The components' JavaScript and CSS: the app sends each to a browser once, elsewhere all are one script.

Streamlit sends a component's JavaScript and CSS with each message about it, 35 kB a chip strip that has moved
by one token. What it is given here is a line that imports the real module from our own server
(`gptviz/server/serving.py`), under a name that changes with its text, so that a browser keeps it for ever.

A page that no server stands behind, a file or a notebook's frame, has the same files as one script, each in a
scope of its own instead of a module, since a page that is opened from a disk can import none. No Streamlit is
needed, and nothing is fetched.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

from gptviz.figures.theme import PALETTES

PATH = "component-code"
_HERE = Path(__file__).parent
_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?\s*\Z")  # what a module ends with

# Where the server is, seen from the browser, only Streamlit's own script knows: a proxy may have put all of
# it below a path. A module that is given as a text has no address to start from.
_IMPORT = """const own = document.querySelector('script[src*="/static/js/"]').src;
const { default: run } = await import(new URL('../../%s/%s', own).href);
export default run;
"""

_served: dict[str, str] = {}  # file name -> its text


def javascript(name: str) -> str:
    """The short module that Streamlit is given for the component of components/`name`."""
    return _IMPORT % (PATH, _component(name))


@cache
def ahead(others: tuple[str, ...]) -> str:
    """The name of a module whose `pieces` import every component, and `others` of Streamlit's own files.

    Each is a function, so that what calls them says when.
    """
    names = sorted({file.parent.name for file in _HERE.glob("*/*.js")})
    files = [f"./{_component(name)}" for name in names]
    files += [f"../static/js/{other}" for other in others]
    pieces = ", ".join(f"() => import({json.dumps(file)})" for file in files)
    return _serve("ahead", f"export const pieces = [{pieces}];")


def component_files(names: Iterable[str]) -> list[str]:
    """The files of these components, and what they import."""
    preact, _ = scope()
    return [*map(_component, names), _kernel(), _serve("preact", preact)]


def served(file: str) -> str | None:
    """The text behind a name that `javascript` has given away, or None."""
    return _served.get(file)


def kernel() -> str:
    """The JavaScript module that every component imports: see `scope`."""
    preact, gv_code = scope()
    return f"import * as preact from './{_serve('preact', preact)}';\n{gv_code}\nexport {{ gv }};"


def scope() -> tuple[str, str]:
    """Preact's module, and what uses it: palettes, kernel.css, kernel.js and saving.js in one scope."""
    files = ("preact.js", "kernel.css", "kernel.js", "saving.js")
    preact, css, *texts = ((_HERE / file).read_text("utf-8") for file in files)
    palettes = {mode: asdict(colors) for mode, colors in PALETTES.items()}
    constants = f"const gvPalettes = {json.dumps(palettes)}, gvStyles = {json.dumps(css)};"
    return preact, "\n".join([constants, *texts])


def own(name: str, ending: str) -> str:
    """The text of a component's own files; the one with the component's name is the last."""
    files = sorted(
        (_HERE / name).glob(f"*{ending}"), key=lambda file: (file.stem == name, file.name)
    )
    return "\n".join(file.read_text("utf-8") for file in files)


def _drawn(name: str) -> str:
    """A component as an expression: its files in a scope of their own, with its stylesheet."""
    return f"gv.styled({_scoped(own(name, '.js'))}, {json.dumps(own(name, '.css'))})"


@cache
def _component(name: str) -> str:
    text = f"import {{ gv }} from './{_kernel()}';\nexport default {_drawn(name)};"
    return _serve(name, text)


@cache
def _kernel() -> str:
    return _serve("kernel", kernel())


def _serve(name: str, text: str) -> str:
    file = f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
    _served[file] = text
    return file


# ---- without a server: one script ----


def bundle(*names: str) -> str:
    """The text of a classic script with `gv` (kernel.js, saving.js), and these components.

    `gvDraw(element, "chips", data, send)` draws one: see draw.js.
    """
    preact, gv_code = scope()
    components = ",\n".join(f"{json.dumps(name)}: {_drawn(name)}" for name in names)
    parts = [
        f"const preact = {_scoped(preact)};",
        gv_code,
        f"const gvComponents = {{ {components} }};",
    ]
    return "\n".join([*parts, (_HERE / "draw.js").read_text("utf-8")])


def script(text: str) -> str:
    """Wrap a script's text in an HTML element; what would end the element early is escaped."""
    safe = re.sub("</(?=script)", r"<\\/", text, flags=re.IGNORECASE).replace("<!--", r"<\x21--")
    return f"<script>\n{safe}\n</script>"


def _scoped(module: str) -> str:
    """A module as an expression: what it exports by default, or an object of all that it exports."""
    body = re.sub(r"^export default ", "return ", module, flags=re.MULTILINE)
    match = _EXPORTS.search(body)
    if match:
        pairs = [part.strip().split(" as ") for part in match[1].split(",")]
        exports = ", ".join(f"{pair[-1]}: {pair[0]}" for pair in pairs)
        body = f"{body[: match.start()]}return {{ {exports} }};"
    return f"(() => {{\n{body}\n}})()"
