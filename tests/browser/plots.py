"""Reading and touching a Plotly figure in a page, by the key of its chart."""

from typing import Any

import numpy as np

from tests.browser.conftest import settled

# _fullData: there Plotly has decoded the typed arrays
READ = """([key, curve, field]) => {
  const value = document.querySelector(`.st-key-${key} .js-plotly-plot`)._fullData[curve][field];
  const isList = (part) => part && typeof part === 'object' && part.length !== undefined;
  const plain = (part) => (isList(part) ? Array.from(part, plain) : part);
  return plain(value);
}"""

PLACE = """([key, xaxis, yaxis, x, y]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  plot.scrollIntoView({ block: 'center' });
  const box = plot.getBoundingClientRect();
  const [across, down] = [plot._fullLayout[xaxis], plot._fullLayout[yaxis]];
  return [box.left + across._offset + across.l2p(x), box.top + down._offset + down.l2p(y)];
}"""

SAID = """(key) => [...document.querySelectorAll(`.st-key-${key} .hoverlayer .hovertext`)]
  .map((label) => label.textContent).join(' ') || null"""


def values(page: Any, key: str, curve: int, field: str) -> np.ndarray:
    """One field (x, y, z, customdata ...) of one trace, as the browser holds it."""
    page.wait_for_selector(f".st-key-{key} .js-plotly-plot .main-svg")
    return np.array(page.evaluate(READ, [key, curve, field]))


def place(
    page: Any, key: str, x: float, y: float, xaxis: str = "xaxis", yaxis: str = "yaxis"
) -> list[float]:
    """Where the point (x, y) of these axes is on the screen, scrolled into view."""
    page.wait_for_selector(f".st-key-{key} .js-plotly-plot .main-svg")
    return page.evaluate(PLACE, [key, xaxis, yaxis, x, y])


def hover(
    page: Any, key: str, x: float, y: float, xaxis: str = "xaxis", yaxis: str = "yaxis"
) -> str:
    """The sentence that appears over the point."""
    left, top = place(page, key, x, y, xaxis, yaxis)
    label = page.locator(f".st-key-{key} .hoverlayer .hovertext")
    page.mouse.move(1, 1)
    label.first.wait_for(state="detached")  # that of the last place
    page.mouse.move(left, top - 1)  # a value may be only two pixels wide
    page.mouse.move(left, top)
    # Plotly looks at most every 50 ms: a look that is still due takes the next click away
    settled(page)
    return page.wait_for_function(SAID, arg=key).json_value()


def click(
    page: Any, key: str, x: float, y: float, xaxis: str = "xaxis", yaxis: str = "yaxis"
) -> str:
    """Point at a place and press there, where it was heard; gives what it said."""
    said = hover(page, key, x, y, xaxis, yaxis)
    page.mouse.down()
    page.mouse.up()
    return said
