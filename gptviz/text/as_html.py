"""What a notebook shows of a value that is no picture: a small table, or the value as it is printed."""

from collections.abc import Mapping
from html import escape
from typing import Any


def table(rows: Mapping[str, object]) -> str:
    """An HTML table with a name and a value in each row."""
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{of(value)}</td></tr>" for name, value in rows.items()
    )
    return f"<table>{cells}</table>"


def of(value: Any) -> str:
    """A text as it is; anything else as it shows itself in a notebook, or prints itself."""
    if isinstance(value, str):
        return escape(value)
    shows = getattr(value, "_repr_html_", None)
    if shows is not None:
        return str(shows())
    return f"<code>{escape(repr(value))}</code>"
