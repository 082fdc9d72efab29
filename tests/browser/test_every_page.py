"""Every page in one visit: its pictures are saved; on paper there are no buttons; dark, on a phone and on a
projector nobody is shut out."""

import pytest

from gptviz.figures.theme import palette, rgb
from gptviz.ui.shell.navigation import PAGES
from tests.browser.axe import shut_out
from tests.browser.conftest import press, settled
from tests.browser.test_pictures import rows_of_buttons, save, texts_of

FIRST_SCREEN = {  # what a page is about, with its lower edge in the first screen
    "overview": "[data-testid=machine] .stage",
    "embeddings": ".st-key-embedding_neighbors .js-plotly-plot",
    "feed_forward": ".st-key-expansion .js-plotly-plot",
    "anatomy": ".st-key-anatomy_model .js-plotly-plot",
    "loss": ".st-key-loss_bars .js-plotly-plot",
    "positions": ".st-key-position_dials .dials",
    "baselines": ".st-key-baselines_scale .js-plotly-plot",
    "residual_stream": ".st-key-stream_path svg[data-drawn]",
}

# For a projector all type is larger, and the frame another, the same for all: a phone is narrower still.
# That each page's script runs so is seen in tests/pages/test_any_address.py.
PRESENTED = ("attention", "generate")

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

# what still moves where somebody has asked that nothing does, and what would be animated at each change, if
# only for a moment, without having asked for it: of a chart that is drawn anew every line, each for itself
MOVES = """() => {
  const found = [], look = (root) => root.querySelectorAll('*').forEach((one) => {
    const style = getComputedStyle(one);
    const times = `${style.transitionDuration}, ${style.animationDuration}`;
    const slow = Math.max(...times.split(',').map(parseFloat)) > 0.001 || style.scrollBehavior === 'smooth';
    const unasked = root === document && style.transitionProperty === 'all';
    if (slow || unasked) found.push(one.outerHTML.slice(0, 160));
    if (one.shadowRoot) look(one.shadowRoot);
  });
  look(document);
  return found;
}"""


# buttons that can be seen: without choices, and without those that are a part of a picture or name one
BUTTONS = """() => {
  const choice = '[data-testid=stButtonGroup], [data-testid=stSelectbox], [data-testid=stMultiSelect]';
  const part = '[data-walk] *, .label, .name, .token, .branch, .switch, .head, .door';
  const found = [], look = (root) => root.querySelectorAll('*').forEach((one) => {
    if (one.shadowRoot) look(one.shadowRoot);
    if (!one.matches('button, [role=button]') || !one.checkVisibility()) return;
    const drawn = root !== document && one.matches(part);
    if (!drawn && !one.closest(choice)) found.push(one.outerHTML.slice(0, 200));
  });
  look(document);
  return found;
}"""


def printed(page):
    """What is read, over the whole page; no sidebar, and nothing that only a click can use."""
    page.emulate_media(media="print")
    assert page.evaluate(BUTTONS) == []
    for place in ("stSidebar", "stHeader", "stToolbar"):
        assert not page.get_by_test_id(place).filter(visible=True).count(), place
    main = page.get_by_test_id("stMainBlockContainer").bounding_box()
    assert main["x"] <= 1 and main["width"] >= 0.98 * page.evaluate("innerWidth")
    page.emulate_media(media="screen")


def turned(page):
    """Dark and on a phone: nothing sticks out, nothing moves, nobody is shut out."""
    page.emulate_media(color_scheme="dark")
    # at once: a chart is drawn anew for either
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(PAPER, arg=palette("dark").paper)
    page.locator(".gv[data-mode=light]").filter(visible=True).first.wait_for(state="detached")
    app = page.locator("[data-testid=stApp]")
    paper = f"rgb{rgb(palette('dark').paper)}"
    assert app.evaluate("(n) => getComputedStyle(n).backgroundColor") == paper
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.get_by_test_id("stMain").evaluate("(n) => n.scrollWidth - n.clientWidth") <= 0
    assert page.locator("table:visible, .js-plotly-plot:visible").evaluate_all(CUT) == []
    assert page.evaluate(MOVES) == []
    assert shut_out(page) == []


def presented(page):
    page.set_viewport_size({"width": 1280, "height": 800})
    press(page.get_by_role("button", name="Present"))
    assert shut_out(page) == []


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
        assert texts_of(svg) and "Point at a" not in str(texts_of(svg))  # nobody can, in a file
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 1 + shown.count()  # no two pictures of a page have the same name


@pytest.mark.parametrize("name", PAGES)
def test_a_page_saves_its_pictures_turns_and_shuts_nobody_out(open_page, tmp_path, name):
    page = open_page(name, text="one two three <&> 東京 one two")
    heading = page.get_by_role("heading", level=1)
    assert heading.inner_text() == PAGES[name].question
    lines = "(h1) => h1.clientHeight / parseFloat(getComputedStyle(h1).lineHeight)"
    assert round(heading.evaluate(lines)) == 1  # in one line
    if name in FIRST_SCREEN:
        box = page.locator(FIRST_SCREEN[name]).bounding_box()
        assert box["y"] + box["height"] <= 800
    if name not in ("training", "class"):  # nothing was trained yet: see test_training.py
        saved(page, tmp_path)
    assert shut_out(page) == []
    printed(page)
    turned(page)
    if name in PRESENTED:
        presented(page)


def test_the_guides_bar_shuts_nobody_out(open_page):
    """With its question, on the page that waits for the answer; then answered."""
    page = open_page("next_token", guide="tour", step=1)
    assert shut_out(page) == []
    page.get_by_role("textbox", name="Which word").fill("hot")
    press(page.get_by_role("button", name="That is my guess"))
    assert shut_out(page) == []
    turned(page)
    presented(page)
