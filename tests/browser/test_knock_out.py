"""The page "Knock-out" in Chromium: the story on the map, and a click that opens a part."""

import numpy as np

from gptviz.analysis import knock_out
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.plots import click, hover, values

MILL, TOWN = 2958, 1647


def test_the_map_tells_the_story_and_a_click_opens_a_part(open_page, settled, mini):
    page = open_page("knock_out", against=TOWN)
    cells = values(page, "knock_out_map", 0, "z")  # blocks x (heads, attention, feed-forward)
    table = knock_out(mini, DEFAULT_TEXT, (MILL, TOWN))
    own = mini.trace(DEFAULT_TEXT, keep=[]).logits(-1).double().softmax(0)[MILL].item()
    assert np.allclose(cells.ravel(), own - table["probability"], atol=1e-4)
    assert round(float(cells[4, 3]), 2) == 0.77  # 0.952 -> 0.183
    assert hover(page, "knock_out_map", 3, 4).startswith("block 4 · head 3")

    click(page, "knock_out_map", 3, 4)
    settled(page)
    assert "block=4" in page.url and "head=3" in page.url
    page.get_by_role("link", name="See where block 4, head 3 looks").wait_for()
    click(page, "knock_out_map", 9, 5)
    settled(page)
    assert "block=5" in page.url and "part=feed-forward" in page.url
    page.get_by_text("logit difference", exact=True).click()
    settled(page)
    drawn = values(page, "knock_out_map", 0, "z")
    assert np.allclose(drawn.ravel(), -table["effect"], atol=1e-4) and "measure=logit" in page.url
    texts = ["The cat sat on the", "Once upon a time there"]
    file = {"name": "texts.txt", "mimeType": "text/plain", "buffer": "\r\n".join(texts).encode()}
    page.locator(".st-key-many_file input[type=file]").set_input_files(file)
    page.get_by_text("n = 2)").first.wait_for()
    settled(page)
    means = -mini.knock_out(texts)["effect"].to_numpy()
    assert np.allclose(np.abs(values(page, "many", 0, "x")), np.sort(np.abs(means))[::-1][:12], atol=1e-4)
    page.get_by_role("link", name="See the feed-forward of block 5").click()
    settled(page)
    page.get_by_role("heading", name="Feed-forward", exact=True).wait_for()
    assert "block=5" in page.url
