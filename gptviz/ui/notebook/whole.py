"""All pictures of a page, in its order and with its words: its own script is run, and what it draws is kept.

Streamlit runs it as in its own tests, without a server: widgets have their first values.
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

SHELL = (
    "prompt",
    "chips",
    "changes",
    "lazy_section",
    "class_cookie",
    "cell_clicks",
    "guide_look",
    "theme_watch",
)
SECONDS = 600  # that a page may take
DRAWINGS = 5  # in light and in dark, until both show the same works done


def of_page(s: Sheet, name: str, **choices: Any) -> None:
    """Draw a page whole: `choices` are its own, by their names in the address ("ln_norm"); None: its default.

    Raises ValueError where the app runs in this process or is not installed, and for a choice that the page
    does not take.
    """
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").addFilter(
        lambda _: False
    )
    with needs_app(f"t.show({name!r})"):
        from streamlit.runtime import Runtime
        from streamlit.testing.v1 import AppTest

        from gptviz.ui import jobs
        from gptviz.ui.runs import runs
        from gptviz.ui.shell.navigation import PAGES, page_file
        from gptviz.ui.shell.page import GIVEN

    if Runtime.exists():
        raise ValueError(
            "the app runs in this process: open the page there, or draw it in another process"
        )
    jobs.without_server()
    app = AppTest.from_file(str(page_file(name)), default_timeout=SECONDS)
    app.context = {"theme": s.mode}
    app.session_state[GIVEN] = s.t
    choices = {key: value for key, value in choices.items() if value is not None}
    parameters = {"text": s.text, "token": s.position, "shown": s.shown, "whole": "on", **choices}
    for key, value in parameters.items():
        app.query_params[key] = str(value)
    # what a server sets for itself, and Streamlit, which makes its script the main module
    main = sys.modules["__main__"]
    threads = torch.get_num_threads()
    interval = sys.getswitchinterval()
    dark: list[Any] = []
    try:
        app.run()
        panels = {box.key for box in app.expander if box.key}
        closed = [key for key in panels if not key.startswith("details")]
        for key in closed:
            app.session_state[key] = True
        if closed:
            app.run()
        light = list(_below_the_heading(app.main))
        for _ in range(DRAWINGS):
            if not s.follows or app.exception:
                break
            app.context = {"theme": "dark"}
            app.run()
            dark = list(_below_the_heading(app.main))
            if app.exception or _kinds(s, light) == _kinds(s, dark):
                break
            # work that the page had begun was done meanwhile, and the dark one shows what came of it
            app.context = {"theme": s.mode}
            app.run()
            light = list(_below_the_heading(app.main))
    finally:
        for store in (runs(), jobs.queue()):
            store.forget(f"given|{id(s.t)}")
        sys.modules["__main__"] = main
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)
    for problem in app.exception:
        raise ValueError(f"this page cannot be drawn: {problem.message}")
    for key, value in choices.items():
        if key not in app.session_state or str(app.session_state[key]) != str(value):
            raise ValueError(
                f"the page {name!r} cannot be drawn with {key}={value!r}: it has no such choice. In the app "
                "its address has the names of its choices, and what each of them may be"
            )
    s.title = PAGES[name].question
    parts = _parts(s, light)
    if dark:
        for part, dark_part in zip(parts, _parts(s, dark), strict=True):
            _take_dark(part, dark_part)
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
    return [
        this_part
        for this_part, next_part in followed
        if not (this_part.get("heading") and next_part.get("heading"))
    ]


def _kinds(s: Sheet, elements: list[Any]) -> list[set[str]]:
    """What each of a page's parts has: two drawings of the same page have the same."""
    return [{*part} for part in _parts(s, elements)]


def _take_dark(part: dict[str, Any], dark_part: dict[str, Any]) -> None:
    """Keep what differs of the same part in dark mode."""
    if "figure" in part:
        part["dark"] = {"figure": dark_part["figure"]}
    elif "draw" in part:
        data = {
            key: value for key, value in dark_part["data"].items() if value != part["data"].get(key)
        }
        part["dark"] = {"data": data}
    elif "html" in part and part["html"] != dark_part["html"]:
        part["dark"] = {"html": dark_part["html"]}


def _below_the_heading(block: Any) -> Iterator[Any]:
    """A page's elements without its head, which is the name, the question and what can be clicked there."""
    elements = list(_leaves(block))
    headings = (place for place, element in enumerate(elements) if element.type == "title")
    yield from elements[next(headings, -1) + 1 :]


def _leaves(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        yield from _leaves(child) if hasattr(child, "children") else [child]


def _take(s: Sheet, section: list[dict[str, Any]], element: Any) -> None:
    """Take a page's element into a picture: a figure, a component, a heading or a sentence; or nothing."""
    if element.type in ("subheader", "markdown", "caption"):
        text = _plain(element.value)
        if text and text != "Try:":
            section.append(
                {"text": text, "heading": element.type == "subheader" or element.value[0] == "#"}
            )
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
            if "paths" in data:  # a file has them, and no other place of the machine
                data["known"] = []
            section.append({"draw": name, "data": data})


def _plain(markdown: str) -> str:
    """Markdown as plain words, without marks and without what a click or a slider does in the app."""
    markdown = re.sub(r"`([^`]*)`", _code, markdown)
    text = unescape(re.sub(r"<style.*?</style>|<[^>]+>", "", markdown, flags=re.DOTALL))
    text = re.sub(r"; a click[^.;]*|\s*(A click|Click|Move the slider)\b[^.]*\.", "", text)
    return re.sub(r"\\([^\w\s])|\*+|`|^#+ |:material/\w+:", r"\1", text).strip()


def _code(match: re.Match[str]) -> str:
    """The words of a piece of code; a token like "," is quoted, or it would punctuate the sentence."""
    if re.search(r"\w", match[1]):
        return match[1]
    return f"“{match[1]}”"
