"""The Loss page in Chromium: bars and the tinted text select a position, and the link keeps it."""

import pytest

from tests.browser.plots import click, hover, values

TEXT = "Sam and the dog and the cat"


def test_a_click_on_a_bar_or_on_the_text_works_its_position_out(open_page, settled, mini):
    page = open_page("loss", text=TEXT)
    heights = values(page, "loss_bars", 0, "y")
    assert len(heights) == len(mini.encode(TEXT)) - 1
    assert "After `" in hover(page, "loss_bars", 2, heights[2] / 2)
    click(page, "loss_bars", 2, heights[2] / 2)
    settled(page)
    assert "token=2" in page.url
    page.get_by_role("heading", name="(position 2) came").wait_for()
    chip = page.locator(".st-key-loss_text [data-testid=surprise-chip][data-position='5']")
    assert float(chip.get_attribute("data-bits")) == pytest.approx(heights[4] / 0.6931472, rel=1e-4)
    assert chip.locator("small").inner_text() == f"{heights[4]:.1f}"
    chip.click()
    settled(page)
    page.get_by_role("heading", name="(position 4) came").wait_for()
    assert "token=4" in page.url
