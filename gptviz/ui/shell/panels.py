"""Room on a page: a part that costs nothing until it is opened, a picture that a phone scrolls sideways."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

HTML = """<style>
.gv-swipe { display: none; font-size: 0.85rem; opacity: 0.75; }
@media (max-width: 700px) {
  .gv-swipe { display: block; }
  .st-key-KEY {
    overflow-x: auto; mask-image: linear-gradient(to right, black calc(100% - 32px), rgba(0, 0, 0, 0.15));
  }
  .st-key-KEY > * { min-width: PIXELSpx; padding-right: 32px; }
}
</style><div class="gv-swipe">Swipe sideways: the picture is wider than the screen →</div>"""


@contextmanager
def panel(title: str, icon: str, key: str) -> Iterator[bool]:
    """What is drawn inside stands in an expander; whether that is open, which it is not at first."""
    box = st.expander(title, icon=icon, on_change="rerun", key=key)
    with box:
        yield bool(box.open)


def sideways(key: str, pixels: int = 640) -> None:
    """The chart of this key keeps a width of at least so many pixels. Call it before the chart."""
    st.html(HTML.replace("KEY", key).replace("PIXELS", str(pixels)))
