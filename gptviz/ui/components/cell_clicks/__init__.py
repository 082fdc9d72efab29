"""Clicks on the cells of a Plotly heatmap, which Streamlit's `on_select` does not report (streamlit#8760).

An invisible component in the page's own document: it asks Plotly itself what was clicked. So a grid of
any size answers at the price of no invisible points over it.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component, record

_component = component("cell_clicks", cell=record(row=among("rows"), column=among("columns")))


def cell_clicks(
    chart: str, rows: int, columns: int, on_pick: Callable[[int, int], Any], mode: Mode = "light"
) -> None:
    """`on_pick(row, column)` runs before the rerun that a click on a cell of the chart's heatmaps causes.

    `chart` is the key that the chart was drawn with; its heatmaps have `rows` and `columns`.
    """
    _component(
        f"{chart}_clicks",
        {"key": chart},
        mode=mode,
        limits={"rows": range(rows), "columns": range(columns)},
        on={"cell": lambda cell: on_pick(cell["row"], cell["column"])},
    )


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """A heatmap of two rows and three columns."""
    cells = {"data": [{"type": "heatmap", "z": [[1, 2, 3], [4, 5, 6]]}], "layout": {"height": 200}}
    st.plotly_chart(cells, key="cells_example")
    cell_clicks("cells_example", 2, 3, lambda row, column: sent("cell", {"row": row, "column": column}), mode)
