"""The components in one script, for a page that no server stands behind: a file, a notebook's frame.

The same files as in the app (`code.py`), each in a scope of its own instead of a module, since a page that is
opened from a disk can import none. No Streamlit is needed, and nothing is fetched.
"""

import json
import re
from pathlib import Path

from gptviz.ui.components.code import own, scope, stylesheet

_DRAW = Path(__file__).with_name("draw.js")
_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?\s*\Z")


def bundle(*names: str) -> str:
    """The text of a classic script with `gv` (kernel.js, saving.js), and these components.

    `gvDraw(element, "chips", data, send)` draws one: see draw.js.
    """
    preact, kernel = scope()
    parts = [f"const preact = {_scoped(preact)};", kernel, "const gvComponents = {};"]
    for name in names:
        component = f"[{_scoped(own(name, '.js'))}, {json.dumps(stylesheet(name))}]"
        parts.append(f"gvComponents[{json.dumps(name)}] = {component};")
    return "\n".join([*parts, _DRAW.read_text("utf-8")])


def script(javascript: str) -> str:
    """The same as an element of HTML: what would end it early is written in another way."""
    safe = re.sub("</(?=script)", r"<\\/", javascript, flags=re.IGNORECASE).replace("<!--", r"<\x21--")
    return f"<script>\n{safe}\n</script>"


def _scoped(module: str) -> str:
    """A module as an expression: what it exports by default, or an object of all that it exports."""
    body = re.sub(r"^export default ", "return ", module, flags=re.MULTILINE)
    listed = _EXPORTS.search(body)
    if listed:
        pairs = [part.strip().split(" as ") for part in listed[1].split(",")]
        given = ", ".join(f"{pair[-1]}: {pair[0]}" for pair in pairs)
        body = f"{body[: listed.start()]}return {{ {given} }};"
    return f"(() => {{\n{body}\n}})()"
