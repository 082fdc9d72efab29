"""Every page in one visit: its pictures are saved as they are seen, it turns dark, and it fits a phone."""

import pytest

from gptviz.figures.theme import palette
from gptviz.ui.shell.navigation import PAGES
from tests.browser.test_pictures import rows_of_buttons, save, texts_of

FIRST_SCREEN = {  # what a page is about, with its lower edge in the first screen
    "overview": "[data-testid=doors]",
    "feed_forward": ".st-key-gelu_dots .js-plotly-plot",
    "residual_stream": ".st-key-stream_ladder .js-plotly-plot",
}

PAPER = """(paper) => [...document.querySelectorAll('.js-plotly-plot')]
  .every((plot) => plot._fullLayout?.paper_bgcolor === paper)"""

# tables and charts that stick out of the page, and scroll in no box of their own
CUT = """(all) => all.filter((one) => {
  for (let box = one.parentElement; box; box = box.parentElement) {
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
    if (scrolls && box.clientWidth < innerWidth) return false;
  }
  return one.getBoundingClientRect().right > innerWidth;
}).map((one) => one.outerHTML.slice(0, 200))"""


def saved(page, folder):
    """Save every picture in sight as SVG, and the first as PNG, which is the SVG drawn by the browser."""
    shown = rows_of_buttons(page).filter(visible=True)
    shown.first.wait_for()
    chart = page.locator(".js-plotly-plot .main-svg").first
    if page.locator(".js-plotly-plot").count():
        chart.wait_for()
    for number, buttons in enumerate(shown.all()):
        for kind in ("png", "svg"):
            button = buttons.get_by_test_id(f"save-{kind}")
            said = f"Save this picture as {kind.upper()}"
            assert button.get_attribute("title") == button.get_attribute("aria-label") == said
        svg = save(buttons, None, folder, kinds=("svg",) if number else ("svg", "png"))
        assert texts_of(svg)
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 1 + shown.count()  # no two pictures of a page have the same name


@pytest.mark.parametrize("name", PAGES)
def test_a_page_saves_its_pictures_turns_dark_and_fits_a_phone(open_page, settled, tmp_path, name):
    page = open_page(name, text="one two three <&> 東京 one two")
    if name in FIRST_SCREEN:
        box = page.locator(FIRST_SCREEN[name]).bounding_box()
        assert box["y"] + box["height"] <= 800
    if name not in ("training", "class"):  # nothing was trained yet: see test_training.py
        saved(page, tmp_path)

    page.emulate_media(color_scheme="dark")
    page.wait_for_function(PAPER, arg=palette("dark").paper)
    page.locator(".gv[data-mode=light]").filter(visible=True).first.wait_for(state="detached")
    app = page.locator("[data-testid=stApp]")
    red, green, blue = bytes.fromhex(palette("dark").paper[1:])
    assert app.evaluate("(n) => getComputedStyle(n).backgroundColor") == f"rgb({red}, {green}, {blue})"

    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("table:visible, .js-plotly-plot:visible").evaluate_all(CUT) == []
