"""What opens on demand: panels on a page, and at its end one box, *Details*, with its tables and its programs.

All are lazy: nothing is computed before they are opened. And a picture that a phone scrolls sideways.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from csv import QUOTE_NONNUMERIC
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import pandas as pd
import streamlit as st

from gptviz.analysis.shapes import Shapes, record_shapes
from gptviz.fast import kernels
from gptviz.model import MultiHeadAttention

ROOT = Path(__file__).resolve().parents[3]

# What a spreadsheet would take for a formula, and the apostrophe that keeps it from doing so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def csv(frame: pd.DataFrame) -> bytes:
    """The table as UTF-8 CSV that loses nothing and runs nothing.

    Numbers are written with the digits that give the same number back. A text that begins as a
    formula does (= + - @, a tab, a line break), or with an apostrophe, gets an apostrophe before it: take
    one off, and it is the text again. So do names of columns, of which two may be the same.
    """
    safe = frame.set_axis([_harmless(name) for name in frame.columns], axis=1)
    for column, dtype in enumerate(safe.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            safe.isetitem(column, [_harmless(value) for value in safe.iloc[:, column]])
    # every text is quoted: a lone \r is a line break to a reader, but not to pandas' writer
    return safe.to_csv(index=False, quoting=QUOTE_NONNUMERIC).encode("utf-8-sig")


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value


class Tab(NamedTuple):
    """A tab of a box of details: its kind, what stands on it, its key, and what draws it when it is opened."""

    kind: str
    label: str
    key: str
    draw: Callable[[], None]


KINDS = ("Table", "Map", "Code", "Claim")  # in this order they stand in a box

# keys of tabs, in the session: drawn without being opened, for somebody who reads all of a page at once
DRAWN = "gptviz_details_drawn"

# of the box that is being filled
_tabs: ContextVar[list[Tab] | None] = ContextVar("tabs", default=None)


@contextmanager
def details(of: str = "") -> Iterator[None]:
    """Draw one box with a tab for each table and program that is named inside the `with`.

    `of` tells a box of one part of a page from the one at its end: "the gradients".
    """
    tabs: list[Tab] = []
    before = _tabs.set(tabs)
    try:
        yield
    finally:
        _tabs.reset(before)
    if tabs:
        _draw_box(of, sorted(tabs, key=lambda one: KINDS.index(one.kind)))


def tab(kind: str, what: str, key: str, draw: Callable[[], None]) -> None:
    """Name a tab, "Table" or "Table: what", for the box of details around this call."""
    tabs = _tabs.get()
    if tabs is None:
        raise RuntimeError(f"{key} is a tab: name it inside a `with sheet.details():`")
    label = kind
    if what:
        label = f"{kind}: {what}"
    tabs.append(Tab(kind, label, key, draw))


def _draw_box(of: str, tabs: Sequence[Tab]) -> None:
    """Draw the box, closed at first. Of its tabs the one in front is worked out, and no other."""
    title = "Details"
    key = "details"
    if of:
        title = f"Details: {of}"
        key = f"details_{of.replace(' ', '_')}"
    drawn = st.session_state.get(DRAWN, ())
    at_once = [one.key for one in tabs if one.key in drawn]
    with panel(title, ":material/table:", key) as is_open:
        if not (is_open or at_once):
            return
        for one, place in zip(tabs, _tab_row(key, [one.label for one in tabs]), strict=True):
            if one.key in at_once or (is_open and place.open):
                with place, st.container(key=one.key):
                    one.draw()


def _tab_row(key: str, labels: list[str]) -> Sequence[Any]:
    """The tabs, with the one in front that was there before, even if it is called otherwise now.

    Streamlit takes tabs with another label for other ones, and shows the first.
    """
    row = f"{key}_tabs"
    place = f"{key}_front"
    front = st.session_state.get(row)
    if front not in labels:
        before = min(st.session_state.get(place, 0), len(labels) - 1)
        front = labels[before]
    st.session_state[place] = labels.index(front)
    st.session_state[row] = front
    return st.tabs(labels, key=row, on_change="rerun")


def in_code(
    sources: Sequence[Callable[..., Any]],
    snippet: str,
    key: str = "in_code",
    run: Callable[[], object] | None = None,
    what: str = "",
) -> None:
    """Name a tab *Code*: the lines of the model that computed the picture, the shapes that their variables have
    for this prompt, and the Python that gives the same numbers.

    `run` calls some of the sources: their shapes are recorded while it runs, when the tab is opened.
    """
    tab("Code", what, key, lambda: _draw_code(sources, snippet, run))


def _draw_code(
    sources: Sequence[Callable[..., Any]], snippet: str, run: Callable[[], object] | None
) -> None:
    if run:
        recorded = record_shapes(sources, run)
    else:
        recorded = {}
    for function in sources:
        where, lines = source(function)
        st.caption(where)
        st.code(lines, language="python")
        if function.__qualname__ in recorded:
            st.markdown(shapes_words(recorded[function.__qualname__]))
    if MultiHeadAttention.forward in sources and kernels.enabled():
        st.caption(
            "On a CPU in float32, a faster version of these lines runs (gptviz/fast). It gives the same "
            "numbers, up to rounding."
        )
    st.caption(
        "The same numbers in Python. Save it as a file and run it: `picture` contains what is drawn above."
    )
    st.code(snippet, language="python")


def shapes_words(shapes: Shapes) -> str:
    """A line a variable, with every shape that it had: `queries` (1, 7, 256) → (1, 8, 7, 32)."""
    lines = [
        f"`{name}` {' → '.join(str(shape) for shape in seen)}" for name, seen in shapes.items()
    ]
    return "Shapes in this run:  \n" + "  \n".join(lines)


def source(function: Callable[..., Any]) -> tuple[str, str]:
    """A function's place, "GPTModel.forward: gptviz/model.py, lines 12 to 20", and its lines."""
    function = inspect.unwrap(function)  # of what keeps its results
    file = Path(inspect.getsourcefile(function) or "")
    lines, first = inspect.getsourcelines(function)
    last = first + len(lines) - 1
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    width = len(str(last))
    numbered = [
        f"{first + i:{width}}  {line[margin:].rstrip()}".rstrip() for i, line in enumerate(lines)
    ]
    place = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
    return f"{function.__qualname__}: {place}, lines {first} to {last}", "\n".join(numbered)


# ---- room on a page ----

T = TypeVar("T")

STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
SWIPE = '<div class="gv-swipe">Swipe sideways: the picture is wider than the screen →</div>'


@contextmanager
def panel(title: str, icon: str, key: str) -> Iterator[bool]:
    """Draw the block inside an expander, closed at first; yield whether it is open."""
    box = st.expander(title, icon=icon, on_change="rerun", key=key)
    with box:
        yield bool(box.open)


def side_by_side(
    items: Iterable[T], gap: Literal["small", "medium", "large"] = "medium"
) -> Iterator[T]:
    """Yield each item inside a column of its own: what the loop draws stands there."""
    items = tuple(items)
    for column, item in zip(st.columns(len(items), gap=gap), items, strict=True):
        with column:
            yield item


def sideways(key: str, pixels: int = 640) -> None:
    """Keep the chart of this key at least so many pixels wide. Call it before the chart."""
    style = STYLE.replace("KEY", key).replace("PIXELS", str(pixels))
    st.html(f"<style>\n{style}</style>{SWIPE}")
