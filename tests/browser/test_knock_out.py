"""The page "Switch parts off" in a real browser: the guess slides from what it was to what is left of it."""

import pytest

from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.conftest import settled
from tests.browser.plots import click
from tests.browser.test_next_token import MOVING, SLIDES, candidates


def test_a_click_on_the_map_mutes_a_part_and_the_bars_slide_from_their_outlines(open_page, mini):
    page = open_page("knock_out", block=4, head=3)
    page.evaluate(SLIDES)
    bars = page.get_by_test_id("candidates")
    click(page, "knock_out_map", 7, 0)
    page.wait_for_url("**head=7**")
    settled(page)
    assert page.evaluate("window.slides") == []  # who wants less motion sees none
    page.emulate_media(reduced_motion="no-preference")
    click(page, "knock_out_map", 1, 0)
    page.wait_for_url("**head=1**")
    settled(page)
    was, now = (
        mini.trace(UNSAID_TEXT, edits=edits).logits(-1).softmax(0) for edits in ([], ["z.0.1=zero"])
    )
    slides = [one for one in page.evaluate("window.slides") if one["token"] != "rest"]
    assert len(slides) > 3 and bars.evaluate(MOVING) > 3
    for one in slides:
        token = int(one["token"])
        assert one["from"] == pytest.approx(float(was[token]), abs=1e-5)
        assert one["to"] == pytest.approx(float(now[token]), abs=1e-5)
        assert one["lasts"] <= 600
    first = candidates(page)[0]
    assert first["outline"] == pytest.approx(float(was.max()), abs=0.02)  # it stays behind
    page.mouse.click(5, 790)
    assert bars.evaluate(MOVING) == 0
    page.evaluate("window.slides = []")
    page.get_by_role("combobox", name="Measured by").click()
    page.get_by_role("option", name="logit difference").click()
    page.wait_for_url("**measure=logit**")
    settled(page)
    assert page.evaluate("window.slides") == []  # the same part is muted
