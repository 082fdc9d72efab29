"""What a browser would make live of a stranger's words: links, pictures, HTML.

`BAIT` is Markdown and HTML of every kind that asks another machine for something, or leads there. `live(at)`
names what of it a page would not show as text.
"""

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from markdown_it import MarkdownIt

from tests.specs import Reader

HOST = "bait.invalid"
BAIT = (
    f"![x](https://{HOST}/a.png)[in](https://{HOST}/b)<https://{HOST}/c> www.{HOST} https://{HOST}/d "
    f"a@{HOST} <img src=https://{HOST}/e> <a href=https://{HOST}/f>g</a>"
)
TICKED = f"` {BAIT} `x"  # gets out of code that a single backtick begins

# what Streamlit draws as it is, of each kind of element: nothing in these is Markdown
PLAIN = {
    "Code": {"code_text"},
    "Text": {"body"},
    "TextArea": {"default", "value", "placeholder"},
    "TextInput": {"default", "value", "placeholder"},
    "ChatInput": {"default", "value", "placeholder"},
    "Selectbox": {"options", "raw_value", "placeholder"},
    "MultiSelect": {"options", "raw_values", "placeholder"},
    "BidiComponent": {"json", "id"},  # Preact's, which writes texts
    "PageLink": {"query_string", "page", "page_script_hash"},
    "DownloadButton": {"url"},
    "Dataframe": {"columns", "placeholder"},
}
NAMES = {"alt", "id", "form_id", "anchor", "query_param_key", "raw_value", "raw_values", "icon"}

# what a browser's Markdown makes a link of though nobody marked it: mdast-util-gfm-autolink-literal
_ADDRESS = re.compile(r"(?:^|\s|[^\w\s\u2060])(?:https?://|www\.)[-.\w]*" + HOST, re.IGNORECASE)
_MAIL = re.compile(r"(?:^|\s|[^\w\s\u2060])[-.\w+]+@" + HOST)
_markdown = MarkdownIt("commonmark")


def live(at: Any) -> list[str]:
    """Every element of the page in which the bait does something, a line each."""
    return [line for side in (at.main, at.sidebar) for line in _below(side)]


def _below(node: Any) -> Iterator[str]:
    for child in node.children.values():
        proto = getattr(child, "proto", None)
        if isinstance(proto, Message):
            for kind, name, text, html in _texts(proto):
                yield from (
                    f"{kind}.{name}: {found} in {text[:200]!r}" for found in alive(text, html)
                )
        if hasattr(child, "children"):
            yield from _below(child)


def _texts(proto: Message, html: bool = False) -> Iterator[tuple[str, str, str, str]]:
    """(kind of element, field, text, how it is read) of every text of an element that has the bait in it."""
    kind = proto.DESCRIPTOR.name
    for field, value in proto.ListFields():
        many = (
            field.is_repeated
            if hasattr(field, "is_repeated")
            else not isinstance(value, str | Message)
        )
        values = value if many and not isinstance(value, str | Message) else [value]
        for one in values if hasattr(values, "__iter__") else ():
            if isinstance(one, Message):
                yield from _texts(one)
            elif (
                isinstance(one, str)
                and "bait" in one
                and field.name not in PLAIN.get(kind, set()) | NAMES
            ):
                read = "markdown"
                if kind == "Html" or getattr(proto, "allow_html", False):
                    read = "html" if kind == "Html" else "both"
                yield kind, field.name, one, "plotly" if kind == "PlotlyChart" else read


def alive(text: str, read: str = "markdown") -> list[str]:
    """What of the bait in a text is live, where it is read as Markdown, as HTML, as both or by Plotly."""
    if read == "plotly":  # it knows a link, and no picture
        return re.findall(r"<a .{0,30}bait", text.replace('\\"', '"'))
    if read == "html":
        return _tags(text)
    found = []
    for token in (
        child for block in _markdown.parse(text) for child in (block, *(block.children or ()))
    ):
        target = str(token.attrs.get("href", token.attrs.get("src", "")))
        if token.type in ("link_open", "image") and HOST in target:
            found.append(token.type)
        elif token.type in ("html_inline", "html_block") and read == "both":
            found += _tags(token.content)
        elif token.type == "text" and (
            _ADDRESS.search(token.content) or _MAIL.search(token.content)
        ):
            found.append("address")
    return found


def _tags(html: str) -> list[str]:
    """The tags that lead to the bait's host."""
    return [
        tag
        for tag, attrs in Reader(html).tags
        if any(HOST in (value or "") for value in attrs.values())
    ]
