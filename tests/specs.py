"""What stands on a page that AppTest ran: figures with their arrays decoded, components, tables, words."""

import base64
import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from gptviz.models.loading import UNSAID_MODEL
from gptviz.ui.shell.details import DRAWN


class Reader(HTMLParser):
    """What an HTML consists of: its texts, and its tags with their attributes."""

    def __init__(self, source: str):
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def decoded(value: Any) -> Any:
    """The same JSON with every {"dtype", "bdata", "shape"} as the NumPy array that it stands for."""
    if isinstance(value, dict):
        if "bdata" in value:
            array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            shape = [int(n) for n in str(value.get("shape", array.size)).split(",")]
            return array.reshape(shape)
        return {key: decoded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [decoded(part) for part in value]
    return value


def charts(at: Any) -> list[dict[str, Any]]:
    """The figures of a page, from top to bottom; NaN is no JSON and fails."""
    return [
        decoded(json.loads(chart.proto.spec, parse_constant=_none))
        for chart in at.get("plotly_chart")
    ]


def _none(name: str) -> None:
    pytest.fail(f"{name} in a figure")


def given(at: Any, key: str) -> Any:
    """What the component with this key was given to draw; None where there is none."""
    found = [json.loads(e.proto.json) for e in at.get("bidi_component") if e.key == key]
    assert len(found) <= 1, key
    return found[0] if found else None


def table(at: Any, name: str) -> list[list[str]]:
    """A small table of the page: its rows as lists of texts."""
    (body,) = [e.proto.body for e in at.get("html") if f' data-testid="{name}"' in e.proto.body]
    rows = re.findall(r"<tr class=.*?</tr>", body, re.DOTALL)
    return [
        [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        for row in rows
    ]


def floats(packed: str, kind: str = "<f4") -> Any:
    """The numbers that the browser decodes from base64."""
    return np.frombuffer(base64.b64decode(packed), kind)


def put(at: Any, **values: object) -> Any:
    """The page with these values in its session, as after a click in a picture."""
    for key, value in values.items():
        at.session_state[key] = value
    return at.run()


def opened(at: Any, *keys: str) -> Any:
    """The page with what these keys stand for open: its tables, its programs, its claim, its panels.

    Of a box of details a person has one tab open; here all that are asked for are drawn.
    """
    tabs = {key for key in keys if key.startswith(("numbers_", "map_", "in_code", "claim_offer"))}
    if tabs:
        drawn: set[str] = set()
        if DRAWN in at.session_state:
            drawn = at.session_state[DRAWN]
        at.session_state[DRAWN] = drawn | tabs
    return put(at, **dict.fromkeys({*keys} - tabs, True))


def tab_labels(at: Any) -> list[str]:
    """What stands on the tabs of the page's boxes of details: they are drawn once one of them is open."""
    return [tab.label for tab in at.tabs]


def left_by_program(at: Any, key: str = "in_code") -> dict[str, Any]:
    """The names that the page's program leaves, as somebody runs it in a notebook."""
    left: dict[str, Any] = {}
    exec(opened(at, key).code[-1].value, left)
    return left


def in_numbers(at: Any, name: str) -> pd.DataFrame:
    """The first table of *Details*, once `name` is open."""
    return opened(at, f"numbers_{name}").dataframe[0].value


def number(text: str) -> float:
    """The number that `digits` wrote: "−1.20 × 10⁻⁶" is -1.2e-6."""
    return float(
        text.replace(" × 10", "e").translate(str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789"))
    )


def prose(at: Any) -> str:
    """All sentences of the page, and what stands under its pictures."""
    return "\n".join((*paragraphs(at), *(element.value for element in at.caption)))


def paragraphs(at: Any) -> list[str]:
    """The page's paragraphs, with plain spaces where a line must not end."""
    return [element.value.replace("\xa0", " ") for element in at.markdown]


def words(at: Any) -> str:
    """The same without the tags of its terms."""
    return re.sub(r"<[^>]+>", "", prose(at))


def paragraph(at: Any, part: str) -> str:
    """The only one in which this stands."""
    (found,) = [text for text in paragraphs(at) if part in text]
    return found


def attributes(at: Any, name: str) -> dict[str, str]:
    """What the page's HTML of this name says of itself to a test: its data-attributes."""
    (body,) = [e.proto.body for e in at.get("html") if f' data-testid="{name}"' in e.proto.body]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', body))


def links(at: Any) -> dict[str, Any]:
    """The page's links to other pages, by what stands on them."""
    return {link.proto.label: link.proto for link in at.get("page_link")}


def keys(at: Any, before: str = "") -> list[str]:
    """The page's buttons whose key begins so."""
    return [button.key for button in at.button if (button.key or "").startswith(before)]


def run_app(app, **query):
    """A small app that a test wrote, at this address, or at mini's; it must not fail."""
    query = query or {"model": UNSAID_MODEL}
    at = AppTest.from_function(app, default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = str(value)
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at
