"""Pictures that follow when the browser's light or dark, or the app's theme, changes while a page is open.

Streamlit turns its own page at once and runs nothing; what a page drew for the other mode would stay,
and be unreadable. This invisible component sees its background's colour change, and asks for a run.
It also sees that a page is turned, and shows its top, without the list of pages over it.
"""

from gptviz.ui.components.kernel import Component, happened

_component = Component("theme_watch")


def follow_theme(page: str) -> None:
    """Run this page again when its theme changes; to be called outside every fragment."""
    _component("gptviz_theme_watch", {"page": page}, {"changed": (happened, None)})
