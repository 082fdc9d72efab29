"""Room on a page: a part that costs nothing until it is opened, a picture that a phone scrolls sideways."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

import streamlit as st

T = TypeVar("T")

STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
SWIPE = '<div class="gv-swipe">Swipe sideways: the picture is wider than the screen →</div>'


@contextmanager
def panel(title: str, icon: str, key: str) -> Iterator[bool]:
    """Return what is drawn inside stands in an expander; whether that is open, which it is not at first."""
    box = st.expander(title, icon=icon, on_change="rerun", key=key)
    with box:
        yield bool(box.open)


def side_by_side(items: Iterable[T], gap: Literal["small", "medium", "large"] = "medium") -> Iterator[T]:
    """Each of these, in a column of its own: what a loop over them draws stands there."""
    items = tuple(items)
    for column, item in zip(st.columns(len(items), gap=gap), items, strict=True):
        with column:
            yield item


def sideways(key: str, pixels: int = 640) -> None:
    """The chart of this key keeps a width of at least so many pixels. Call it before the chart."""
    style = STYLE.replace("KEY", key).replace("PIXELS", str(pixels))
    st.html(f"<style>\n{style}</style>{SWIPE}")
