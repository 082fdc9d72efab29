"""Pictures that follow when the browser's light or dark, or the app's theme, changes while a page is open.

Streamlit turns its own page at once and runs nothing; what a page drew for the other mode would stay,
and be unreadable. This invisible component sees its background's colour change, and asks for a run.
It also sees that a page is turned, and shows its top, without the list of pages over it; and while the
first page rests, it fetches what the other pages are made of, and draws a chart that nobody sees.
"""

from functools import cache
from pathlib import Path

import streamlit

from gptviz.ui.components.code import ahead
from gptviz.ui.components.kernel import Component, happened

# What Streamlit fetches when a page first has one: other pages' widgets, then tables
PARTS = (
    "NumberInput", "Selectbox", "Checkbox", "Slider", "ButtonGroup", "TextInput", "Progress", "DataFrame",
)  # fmt: skip

_component = Component("theme_watch")


def follow_theme(page: str) -> None:
    """Run this page again when its theme changes; to be called outside every fragment."""
    data = {"page": page, "ahead": code_ahead(), "charts": charts_file()}
    _component("gptviz_theme_watch", data, {"changed": (happened, None)})


def code_ahead() -> str:
    """Name the module that imports the code of every page; from then on, this process serves all of it."""
    return ahead(tuple(file for file in map(streamlit_file, PARTS) if file))


def charts_file() -> str:
    """Find the file with which Streamlit draws Plotly's charts; "" where this version has none."""
    return streamlit_file("PlotlyChart")


@cache
def streamlit_file(part: str) -> str:
    """Find the script with which Streamlit draws a part of a page; "" where this version has none.

    Its name holds a hash, another one in each version of Streamlit.
    """
    scripts = Path(streamlit.__file__).parent / "static" / "static" / "js"
    for file in scripts.glob(f"{part}.*.js"):
        return file.name
    return ""
