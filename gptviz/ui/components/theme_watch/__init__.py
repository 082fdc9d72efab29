"""Pictures that follow when the browser's light or dark, or the app's theme, changes while a page is open.

Streamlit turns its own page at once and runs nothing; what a page drew for the other mode would stay,
and be unreadable. This invisible component sees its background's colour change, and asks for a run.
"""

import streamlit as st

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import component, happened

_component = component("theme_watch")


def mode_shown() -> Mode:
    """Light or dark, as the browser shows the page."""
    return "dark" if st.context.theme.type == "dark" else "light"


def follow_theme() -> None:
    """Run the page again when its theme changes; to be called outside every fragment."""
    _component("gptviz_theme_watch", {}, "light", {"changed": (happened, None)})
