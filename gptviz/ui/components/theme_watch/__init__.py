"""Pictures that follow when the browser's light or dark, or the app's theme, changes while a page is open.

Streamlit turns its own page at once and runs nothing; what a page drew for the other mode would stay,
and be unreadable. This invisible component sees its background's colour change, and asks for a run.
It also sees that a page is turned, and shows its top, without the list of pages over it; and while the
first page rests, it fetches and evaluates what Streamlit draws charts with.
"""

from functools import cache
from pathlib import Path

import streamlit

from gptviz.ui.components.kernel import Component, happened

_component = Component("theme_watch")


def follow_theme(page: str) -> None:
    """Run this page again when its theme changes; to be called outside every fragment."""
    data = {"page": page, "charts": charts_file()}
    _component("gptviz_theme_watch", data, {"changed": (happened, None)})


@cache
def charts_file() -> str:
    """Find the file with which Streamlit draws Plotly's charts; "" where this version has none.

    Its name holds a hash, another one in each version of Streamlit.
    """
    scripts = Path(streamlit.__file__).parent / "static" / "static" / "js"
    for file in scripts.glob("PlotlyChart.*.js"):
        return file.name
    return ""
