"""Clicks on the cells of a Plotly heatmap, which Streamlit's `on_select` does not report (streamlit#8760).

An invisible component in the page's own document: it asks Plotly itself what was clicked. So a grid of
any size answers at the price of no invisible points over it.
"""

from collections.abc import Callable
from typing import Any

from gptviz.ui.components.kernel import Component, among, parts

_component = Component("cell_clicks")

MOST = 64  # traces of a chart


def cell_clicks(
    chart: str, rows: int, columns: int, on_pick: Callable[..., Any], panels: int = 0
) -> None:
    """`on_pick(row, column)` runs before the rerun that a click on a cell of the chart's heatmaps causes.

    `chart` is the key that the chart was drawn with; its heatmaps have `rows` and `columns`. If the chart
    has several `panels`, it is `on_pick(row, column, panel)`.
    """

    def picked(row: int, column: int, panel: int) -> Any:
        if panels:
            return on_pick(row, column, panel)
        return on_pick(row, column)

    panel = among(range(panels or MOST))
    events = {
        "cell": parts(picked, row=among(range(rows)), column=among(range(columns)), panel=panel)
    }
    _component(f"{chart}_clicks", {"key": chart}, events)
