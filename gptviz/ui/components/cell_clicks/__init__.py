"""Clicks on the cells of a Plotly heatmap, which Streamlit's `on_select` does not report (streamlit#8760).

An invisible component in the page's own document: it asks Plotly itself what was clicked. So a grid of
any size answers at the price of no invisible points over it.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

JS = """
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const clicked = (event) => {
    const cell = event.points.find((point) => point.data.type === 'heatmap');
    if (cell) setTriggerValue('cell', { row: cell.pointNumber[0], column: cell.pointNumber[1] });
  };
  // whenever the pointer comes over it: Streamlit may have put another chart in the place of the first
  const listen = (event) => {
    const plot = event.target.closest?.(`.st-key-${data.key} .js-plotly-plot`);
    if (!plot?.on || plot.gptvizClicked === clicked) return;
    if (plot.gptvizClicked) plot.removeListener('plotly_click', plot.gptvizClicked);
    plot.gptvizClicked = clicked;
    plot.on('plotly_click', clicked);
  };
  if (parentElement.gptvizListen) document.removeEventListener('pointerover', parentElement.gptvizListen);
  parentElement.gptvizListen = listen;
  document.addEventListener('pointerover', listen);
  return () => document.removeEventListener('pointerover', listen);
}
"""

_component = st.components.v2.component("gptviz.cell_clicks", js=JS)


def cell_clicks(chart: str, rows: int, columns: int, on_pick: Callable[[int, int], Any]) -> None:
    """`on_pick(row, column)` runs before the rerun that a click on a cell of the chart's heatmaps causes.

    `chart` is the key that the chart was drawn with; its heatmaps have `rows` and `columns`.
    """
    key = f"{chart}_clicks"

    def picked() -> None:
        value = st.session_state[key].cell
        row, column = _whole(value, "row"), _whole(value, "column")
        if 0 <= row < rows and 0 <= column < columns:  # a late click may follow a smaller picture
            on_pick(row, column)

    _component(key=key, data={"key": chart}, on_cell_change=picked)


def _whole(value: Any, name: str) -> int:
    """A number out of what the browser sent, -1 for anything else."""
    number = value.get(name) if isinstance(value, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else -1
