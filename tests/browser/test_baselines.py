"""The Baselines page in Chromium: steps move the right table, a click follows a character, links hold it."""

import numpy as np

from gptviz.analysis.tokens import chapter
from gptviz.lessons.bigram import count
from tests.browser.plots import click, values

QUICK = {"base_steps": 50, "base_hidden": 16}


def test_steps_clicks_and_the_link(open_page, settled):
    page = open_page("baselines", base_step=400, **QUICK)
    counted, learnt = (values(page, f"baselines_{name}", 0, "z") for name in ("counted", "learnt"))
    assert np.abs(counted - learnt).max() < 0.2 and len(counted) == 30
    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    settled(page)
    page.get_by_text("before the first step").wait_for()
    assert "base_step=0" in page.url
    assert np.abs(counted - values(page, "baselines_learnt", 0, "z")).max() > 0.5
    labels = page.evaluate(
        "() => Object.values(document.querySelector('.st-key-baselines_counted .js-plotly-plot')"
        "._fullLayout.yaxis.labelalias)"
    )
    click(page, "baselines_counted", 3, labels.index("w"))
    settled(page)
    assert "base_char=w" in page.url
    after = {name: i for i, name in enumerate(count(chapter()).characters)}
    share = count(chapter()).probabilities[after["w"]].max()
    assert values(page, "baselines_row", 0, "y")[0] == np.float32(share)
    page.reload()
    settled(page)
    assert values(page, "baselines_row", 0, "y")[0] == np.float32(share)


def test_a_phone_needs_no_scrolling_sideways(open_page):
    page = open_page("baselines", viewport=(390, 844), color_scheme="dark", **QUICK)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
