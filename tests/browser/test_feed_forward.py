"""The Feed-forward page in Chromium: drawn values, clicks, the sample and the link."""

import numpy as np
import pytest

from gptviz.analysis import feed_forward as numbers
from tests.browser.plots import click, hover, values

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def test_the_dots_are_the_pass_and_a_click_chooses_a_unit_and_a_token(open_page, settled, mini, trace):
    page = open_page("feed_forward", text=TEXT, token=3, block=2)
    assert np.allclose(
        np.sort(values(page, "gelu_dots", 2, "x")), trace["mlp_pre", 2][3].sort().values, atol=1e-5
    )
    before, after = trace["mlp_pre", 2][3], trace["mlp_act", 2][3]
    unit = int(before.argmax())
    sentence = hover(page, "gelu_dots", before[unit].item(), after[unit].item())
    size = numbers.units(mini, trace, 2, 3).writes[unit]
    assert sentence.startswith(f"unit {unit}:") and f"size {size:.3g}" in sentence
    click(page, "gelu_dots", before[unit].item(), after[unit].item())
    settled(page)
    page.get_by_role("heading", name=f"Unit {unit} of block 2").wait_for()
    assert f"ff_unit={unit}" in page.url
    bars = values(page, "unit_over_text", 0, "y")
    assert np.allclose(bars, trace["mlp_act", 2][:, unit], atol=1e-5)
    place = int(np.argsort(-bars)[0 if np.argmax(bars) != 3 else 1])
    click(page, "unit_over_text", place, float(bars[place]) / 2)
    settled(page)
    assert f"token={place}" in page.url and f"ff_unit={unit}" in page.url


def test_the_sample_is_behind_a_switch_and_in_the_link(open_page, settled):
    page = open_page("feed_forward", text=TEXT, block=2, ff_unit=7)
    page.get_by_text("In other texts: read the sample").click()
    page.locator("[data-testid=excerpts] mark").nth(5).wait_for()
    settled(page)
    assert "ff_sample=on" in page.url
    shown = page.get_by_test_id("excerpts").inner_text()
    page.reload()
    settled(page)
    page.locator("[data-testid=excerpts] mark").nth(5).wait_for()
    assert page.get_by_test_id("excerpts").inner_text() == shown
