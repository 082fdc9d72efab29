"""The Compare page in Chromium: a link of both sides, clicks on heads and pairs, and the way there."""

import numpy as np

from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.plots import click, values


def test_both_sides_stand_in_the_link_and_clicks_choose(open_page, settled, mini):
    page = open_page("compare", vs="edits", edits="z.4.3=zero")
    own = mini.trace(DEFAULT_TEXT)
    grid = values(page, "compare_heads", 0, "z")
    assert np.unravel_index(grid.argmax(), grid.shape) == (5, 0)
    click(page, "compare_heads", 3, 5)
    settled(page)
    assert "block=5" in page.url and "head=3" in page.url
    click(page, "compare_streams", 10, 6)  # the tenth pair, at the end
    settled(page)
    assert "token=10" in page.url
    left, right = (values(page, "compare_next", side, "x") for side in (0, 1))
    best = own.logits(10).double().softmax(dim=0).max().item()
    assert right.max() == np.float64(best) or abs(right.max() - best) < 1e-6
    assert left.shape == right.shape

    page.get_by_role("radio", name="the text").click()
    settled(page)
    box = page.get_by_role("textbox", name="The other text")
    box.fill("Four green parrots sang behind the old mill.")
    box.press("Enter")
    settled(page)
    assert "vs=text" in page.url and "vs_text=Four" in page.url
    right_chips = page.locator(".st-key-chips_right [data-testid=chip]")
    right_chips.last.wait_for()
    page.reload()
    settled(page)
    assert box.input_value() == "Four green parrots sang behind the old mill."
    right_chips.nth(2).click()
    settled(page)
    assert "token=" in page.url
