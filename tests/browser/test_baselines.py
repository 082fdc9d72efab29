"""The Baselines page in Chromium: steps move the right table, and the link holds them."""

import numpy as np

from tests.browser.plots import values

QUICK = {"base_steps": 50}


def test_steps_and_the_link(open_page, settled):
    page = open_page("baselines", base_step=400, **QUICK)
    counted, learnt = (values(page, "baselines_pairs", i, "z") for i in (0, 1))
    assert np.abs(counted - learnt).max() < 0.2 and len(counted) == 30
    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    settled(page)
    page.get_by_text("Learnt, before the first step").wait_for()
    assert "base_step=0" in page.url
    assert np.abs(counted - values(page, "baselines_pairs", 1, "z")).max() > 0.5
