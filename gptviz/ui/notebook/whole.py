"""All pictures of a page, in its order and with its words: its own script is run, and what it draws is kept.

Streamlit runs it as in its own tests, without a server: widgets have what the page begins with.
"""

import json
import logging
import re
import sys
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from typing import Any

import torch

from gptviz.extras import needs_app
from gptviz.ui.notebook.sheet import Sheet

SHELL = ("prompt", "chips", "changes", "near", "seat", "cell_clicks", "guide_look", "theme_watch")
SECONDS = 600  # that a page may take


def of_page(s: Sheet, name: str, **choices: Any) -> None:
    """Draw them: `choices` are the page's, by their names in the address ("ln_norm"); None is its default.

    Raises ValueError where the app runs in this process or is not installed, and for a choice that the page
    does not take.
    """
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").addFilter(lambda _: False)
    with needs_app(f"t.show({name!r})"):
        from streamlit.runtime import Runtime
        from streamlit.testing.v1 import AppTest

        from gptviz.ui import works
        from gptviz.ui.runs import runs
        from gptviz.ui.shell.navigation import PAGES, page_file
        from gptviz.ui.shell.page import GIVEN

    if Runtime.exists():
        raise ValueError("the app runs in this process: open the page there, or draw it in another process")
    works.without_server()
    at = AppTest.from_file(str(page_file(name)), default_timeout=SECONDS)
    at.context = {"theme": s.mode}
    at.session_state[GIVEN] = s.t
    choices = {key: value for key, value in choices.items() if value is not None}
    asked = {"text": s.text, "token": s.position, "shown": s.shown, "whole": "on", **choices}
    for key, value in asked.items():
        at.query_params[key] = str(value)
    # what a server sets for itself, and Streamlit, which makes its script the main module
    main = sys.modules["__main__"]
    threads = torch.get_num_threads()
    interval = sys.getswitchinterval()
    dark: list[Any] = []
    try:
        at.run()
        panels = {box.key for box in at.expander if box.key}
        closed = [key for key in panels if not key.startswith(("numbers_", "in_code"))]
        for key in closed:
            at.session_state[key] = True
        if closed:
            at.run()
        light = list(_leaves(at.main))
        if s.follows and not at.exception:
            at.context = {"theme": "dark"}
            at.run()
            dark = list(_leaves(at.main))
    finally:
        for kept in (runs(), works.line()):
            kept.forget(f"given|{id(s.t)}")
        sys.modules["__main__"] = main
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)
    for problem in at.exception:
        raise ValueError(f"this page cannot be drawn: {problem.message}")
    for key, value in choices.items():
        if key not in at.session_state or str(at.session_state[key]) != str(value):
            raise ValueError(
                f"the page {name!r} cannot be drawn with {key}={value!r}: it has no such choice. In the app "
                "its address has the names of its choices, and what each of them may be"
            )
    title = PAGES[name].title
    question = PAGES[name].question
    if title.endswith("?"):
        s.title = f"{title} {question}"
    else:
        s.title = f"{title}: {question}"
    parts = _parts(s, light)
    if dark:
        for part, other in zip(parts, _parts(s, dark), strict=True):
            _take_dark(part, other)
    s.parts += parts


def _parts(s: Sheet, elements: list[Any]) -> list[dict[str, Any]]:
    """A page's elements as a picture's parts: no section without a picture, no heading over nothing."""
    sections: list[list[dict[str, Any]]] = [[]]
    for element in elements:
        if element.type == "subheader":
            sections.append([])
        _take(s, sections[-1], element)
    drawn = [section for section in sections if any("text" not in part for part in section)]
    parts = [part for section in drawn or sections for part in section]
    followed = pairwise((*parts, {"heading": True}))
    return [one for one, other in followed if not (one.get("heading") and other.get("heading"))]


def _take_dark(part: dict[str, Any], other: dict[str, Any]) -> None:
    """Keep of the same part on dark paper what is not as on light paper."""
    if "figure" in part:
        part["dark"] = {"figure": other["figure"]}
    elif "draw" in part:
        data = {key: value for key, value in other["data"].items() if value != part["data"].get(key)}
        part["dark"] = {"data": data}
    elif "html" in part and part["html"] != other["html"]:
        part["dark"] = {"html": other["html"]}


def _leaves(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        yield from _leaves(child) if hasattr(child, "children") else [child]


def _take(s: Sheet, section: list[dict[str, Any]], element: Any) -> None:
    """Take a page's element into a picture: a figure, a component, a heading or a sentence; or nothing."""
    if element.type in ("subheader", "markdown", "caption"):
        text = _plain(element.value)
        if text and text != "Try:" and not s.title.endswith(text):
            section.append({"text": text, "heading": element.type == "subheader" or element.value[0] == "#"})
    elif element.type == "html" and "<table" in element.proto.body:
        section.append({"html": element.proto.body})
    elif element.type == "plotly_chart":
        section.append({"figure": json.loads(element.proto.spec)})
    elif element.type == "bidi_component":
        name = element.proto.component_name.removeprefix("gptviz.")
        data = json.loads(element.proto.json)
        if name == "chart":  # the buttons of the figure before it
            saved = data["saved"] | {"lines": [*s.lines]}
            section[-1] |= {"saved": saved, "key": data["key"], "alt": saved["title"], "title": ""}
        elif name not in SHELL:
            section.append({"draw": name, "data": data})


def _plain(markdown: str) -> str:
    """Its words, without marks, and without what a click or a slider does in the app."""
    markdown = re.sub(r"`([^`]*)`", _code, markdown)
    text = unescape(re.sub(r"<style.*?</style>|<[^>]+>", "", markdown, flags=re.DOTALL))
    text = re.sub(r"; a click[^.;]*|\s*(A click|Click|Move the slider)\b[^.]*\.", "", text)
    return re.sub(r"\\([^\w\s])|\*+|`|^#+ |:material/\w+:", r"\1", text).strip()


def _code(found: re.Match[str]) -> str:
    """A token, say; one like "," is quoted, as otherwise it would be the sentence's."""
    if re.search(r"\w", found[1]):
        return found[1]
    return f"“{found[1]}”"
