"""The box that the prompt is typed into: Enter runs it, Shift+Enter is a line break.

What is typed and not yet run is a draft, which the browser keeps (prompt.js): it outlives a click, a reload
and a turned page. A turned page runs it: whoever types a text and then asks for a page wants it on that page.
"""

from collections.abc import Callable
from typing import Any

from gptviz.ui.components import kernel

_component = kernel.Component("prompt")


def prompt(text: str, page: str, back: bool, on_run: Callable[[str], Any]) -> None:
    """Draw the box with this text in it; `on_run(text)` is called with a text that is run.

    `page` tells one page from another, and `back` says that this run is the browser's back or forward
    button's: the draft of the page before is then not run.
    """
    data = {"text": text, "page": page, "back": back}
    _component("prompt", data, {"run": (kernel.text(), on_run)})
