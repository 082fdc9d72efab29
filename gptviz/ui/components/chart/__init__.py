"""A chart in a page, and the buttons that save it as PNG and SVG, offline.

The buttons are a component in the page's own document: it takes the layers that Plotly drew, as they
are on the screen, and puts them into one standalone SVG; the kernel's saving.js does the rest.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from gptviz.figures import Figure
from gptviz.figures.theme import palette
from gptviz.ui.components.kernel import Component, mode_shown
from gptviz.ui.components.saved import Saved

_buttons = Component("chart")

CONFIG = {"displaylogo": False, "displayModeBar": False, "scrollZoom": False, "doubleClick": False}


def chart(
    fig: Figure,
    key: str,
    alt: str,
    pick: Callable[[Mapping[str, Any]], Any] | None,
    saved: Saved,
    height: str | None = None,
) -> None:
    """Draw `fig` as wide as the page, with buttons under it that save it; see `Scene.chart`.

    `alt` says what the chart shows, with what is selected, for those who do not see it. `height` is CSS,
    where the screen decides and not the figure.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key):
        raise ValueError(
            f"a chart's key is {key!r}; it names a CSS class: letters, digits and _ only"
        )

    def picked() -> None:
        assert pick is not None
        # none where a choice is taken back
        for point in st.session_state[key].selection.points[:1]:
            pick(point)

    if pick is None:
        selecting: dict[str, Any] = {}
    else:
        selecting = {"on_select": picked, "selection_mode": ("points",)}
    if height is not None:
        st.html(
            f"<style>.st-key-{key}, .st-key-{key} .stPlotlyChart {{ height: {height}; }}</style>"
        )
        selecting["height"] = "stretch"
    # Streamlit gives Plotly each chart twice, as new objects, and other numbers as a new chart: what is said
    # to be the same is drawn once.
    fig = fig.laid_out(datarevision=1, clickmode="event" if pick is None else "event+select")
    st.plotly_chart(fig, theme=None, key=key, alt=alt, config=CONFIG, **selecting)
    _buttons(f"{key}_save", {"key": key, "paper": palette(mode_shown()).paper}, saved=saved)
