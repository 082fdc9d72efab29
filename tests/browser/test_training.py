"""The training page in Chromium, with a worker of its own: it trains, scrubs, stays, and opens elsewhere."""

import pytest

from tests.browser.conftest import details, press, settled, went
from tests.browser.plots import values

TINY = {
    "n_layers": 2,
    "n_heads": 2,
    "emb_dim": 16,
    "context_length": 16,
    "batch_size": 8,
    "steps": 60,
}


@pytest.mark.timeout(450)
def test_it_trains_scrubs_stays_and_opens_in_another_page(open_page):
    page = open_page("training", **{f"tr_{name}": value for name, value in TINY.items()})
    press(page.get_by_text("Choose everything yourself"))
    page.get_by_role("button", name="Train it", exact=True).click()
    # its process gives way to everything else here: beside other tests it waits for a core
    page.get_by_text("Done: step 60 of 60").wait_for(timeout=240_000)
    settled(page)
    # nobody touched the slider: it followed the last snapshot
    assert "training_step" not in page.url
    assert values(page, "training_curves", 1, "x").tolist() == [0, 20, 40, 60]
    loss = values(page, "training_curves", 1, "y")
    last = page.get_by_test_id("training-sample").text_content()
    assert page.get_by_test_id("head-1-1").count() == 1

    with page.expect_download() as saving:
        page.get_by_test_id("save-svg").filter(visible=True).first.click()
    assert saving.value.suggested_filename.startswith("gptviz-training")

    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    settled(page)
    assert "training_step=0" in page.url
    assert page.get_by_test_id("training-sample").text_content() != last
    page.get_by_test_id("head-0-1").click()
    page.get_by_role("heading", name="Block 0, head 1").wait_for()

    went(page, "again")
    page.get_by_role("heading", name="Block 0, head 1").wait_for()
    assert values(page, "training_curves", 1, "y").tolist() == loss.tolist()

    with page.expect_download() as saving:
        page.get_by_role("button", name="All three files").click()
    # as it is called where it is unpacked
    folder = saving.value.suggested_filename.removesuffix(".zip")

    page.get_by_role("button", name="Open it in the other pages").click()
    page.get_by_text("All pages now show this model").wait_for()
    settled(page)
    page.get_by_role("link", name="Attention", exact=True).last.click()
    page.get_by_test_id("chips").wait_for()
    settled(page)
    assert "model=upload" in page.url and page.get_by_test_id("chip").count() == 16
    details(page, "Code")
    page.get_by_text(f"gptviz.load('{folder}')").first.wait_for()


def test_a_form_that_was_refused_stays_open(open_page):
    page = open_page("training")
    # whose prompt is in the form that is shut
    page.goto(f"{page.url.partition('?')[0]}?tr_task=own&text=a")
    settled(page)
    press(page.get_by_text("Choose everything yourself"))
    press(page.get_by_role("button", name="Train it", exact=True))
    page.get_by_text("it takes at least").wait_for()
    assert page.get_by_role("button", name="Train it", exact=True).is_visible()
