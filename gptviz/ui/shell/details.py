"""What opens on demand at the end of a page: *In numbers* and *In code*.

Both are lazy: nothing is computed before somebody opens them.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from csv import QUOTE_NONNUMERIC
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

ROOT = Path(__file__).resolve().parents[3]

# What a spreadsheet would take for a formula, and the apostrophe that keeps it from doing so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def in_numbers(
    table: pd.DataFrame | Callable[[], pd.DataFrame], file_name: str, caption: str = "", what: str = ""
) -> None:
    """An expander with the table behind the picture, and its download as CSV.

    `table` may be a function, which runs only when the expander is open. `file_name` ("attention.csv"
    or "attention") is unique on its page. `what` tells one table of a page from another.
    """
    stem = file_name.removesuffix(".csv")
    box = st.expander(
        f"In numbers: {what}" if what else "In numbers",
        icon=":material/table:",
        on_change="rerun",
        key=f"numbers_{stem}",
    )
    if not box.open:
        return
    with box:
        frame = table() if callable(table) else table
        if caption:
            st.caption(caption)
        st.dataframe(frame, hide_index=True, key=f"table_{stem}")
        st.download_button(
            "CSV",
            csv(frame),
            file_name=f"{stem}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"csv_{stem}",
            help="Every digit. A text that a spreadsheet could run as a formula has an apostrophe before it.",
        )


def csv(frame: pd.DataFrame) -> bytes:
    """The table as UTF-8 CSV that loses nothing and runs nothing.

    Numbers are written with the digits that give the same number back. A text that begins as a
    formula does (= + - @, a tab, a line break), or with an apostrophe, gets an apostrophe before it: take
    one off, and it is the text again.
    """
    safe = frame.copy()
    for column in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[column].dtype):
            safe[column] = [_harmless(value) for value in safe[column]]
    # every text is quoted: a lone \r is a line break to a reader, but not to pandas' writer
    return safe.to_csv(index=False, quoting=QUOTE_NONNUMERIC).encode("utf-8-sig")


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value


def in_code(
    sources: Sequence[Callable[..., Any]],
    snippet: str,
    shapes: Mapping[str, str] | None = None,
    key: str = "in_code",
) -> None:
    """An expander with the lines of the model that computed the picture, the shapes that its variables
    have for this prompt, and the Python that gives the same numbers."""
    box = st.expander("In code", icon=":material/code:", on_change="rerun", key=key)
    if not box.open:
        return
    with box:
        for function in sources:
            where, lines = source(function)
            st.caption(where)
            st.code(lines, language="python")
        if shapes:
            st.caption("The shapes, for this prompt")
            st.markdown("  \n".join(f"`{name}`  {shape}" for name, shape in shapes.items()))
        st.caption("The same numbers in Python: `picture` holds what is drawn above")
        st.code(snippet, language="python")


def source(function: Callable[..., Any]) -> tuple[str, str]:
    """Where a function stands, "GPTModel.forward: gptviz/model.py, lines 12 to 20", and its lines."""
    file = Path(inspect.getsourcefile(function) or "")
    lines, first = inspect.getsourcelines(function)
    last = first + len(lines) - 1
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    width = len(str(last))
    numbered = [f"{first + i:{width}}  {line[margin:].rstrip()}".rstrip() for i, line in enumerate(lines)]
    shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
    return f"{function.__qualname__}: {shown}, lines {first} to {last}", "\n".join(numbered)
