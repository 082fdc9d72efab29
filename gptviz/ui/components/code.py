"""The components' JavaScript: each file goes to a browser once, and not with every change of its data.

Streamlit sends a component's JavaScript with each message about it, 30 kB a chip strip that has moved by one
token. What it is given here is a line that imports the real module from our own server (`ui/serving.py`),
under a name that changes with its text, so that a browser keeps it for ever.
"""

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

from gptviz.figures.theme import PALETTES

PATH = "component-code"
_HERE = Path(__file__).parent

# Where the server is, seen from the browser, only Streamlit's own script knows: a proxy may have put all of
# it below a path. A module that is given as a text has no address to start from.
_IMPORT = """const own = document.querySelector('script[src*="/static/js/"]').src;
const { default: run } = await import(new URL('../../%s/%s', own).href);
export default run;
"""

_served: dict[str, str] = {}  # file name -> its text


def javascript(name: str) -> str:
    """The short module that Streamlit is given for the component of components/`name`."""
    return _IMPORT % (PATH, _serve(name, f"import {{ gv }} from './{_kernel()}';\n{own(name, '.js')}"))


def served(file: str) -> str | None:
    """The text behind a name that `javascript` has given away, or None."""
    return _served.get(file)


def kernel() -> str:
    """Return what all components stand on, as a module: palettes, kernel.js and saving.js in one scope."""
    preact, rest = scope()
    return f"import * as preact from './{_serve('preact', preact)}';\n{rest}\nexport {{ gv }};"


def scope() -> tuple[str, str]:
    """Preact's module, and what uses it: palettes, kernel.js and saving.js."""
    preact, *texts = ((_HERE / file).read_text("utf-8") for file in ("preact.js", "kernel.js", "saving.js"))
    palettes = {mode: asdict(colors) for mode, colors in PALETTES.items()}
    return preact, "\n".join([f"const gvPalettes = {json.dumps(palettes)};", *texts])


def own(name: str, ending: str) -> str:
    """The text of a component's own files; the one with the component's name is the last."""
    files = sorted((_HERE / name).glob(f"*{ending}"), key=lambda file: (file.stem == name, file.name))
    return "\n".join(file.read_text("utf-8") for file in files)


def stylesheet(name: str) -> str:
    """The kernel's CSS and the component's own: it belongs into the component's shadow, and is short."""
    return "\n".join([(_HERE / "kernel.css").read_text("utf-8"), own(name, ".css")])


@cache
def _kernel() -> str:
    return _serve("kernel", kernel())


def _serve(name: str, text: str) -> str:
    file = f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
    _served[file] = text
    return file
