"""The page "Heads on trial" in Chromium: a click on a point opens its head, and a text that shows more."""

from tests.browser.plots import click, values

CURVES = "document.querySelector('.st-key-{} .js-plotly-plot')._fullData.length"


def test_a_click_opens_a_head_and_an_offer_shows_what_the_text_cannot(open_page, settled):
    page = open_page("heads", text="one two three", across="here_previous", up="here_first")
    not_here = page.locator(".st-key-heads_roles").get_by_text("(not here)")
    assert not_here.count() == 3
    points = {
        (int(b), int(h)): (float(x), float(y))
        for trace in range(page.evaluate(CURVES.format("heads_finder")) - 1)  # the last is the ring
        for (b, h, _), x, y in zip(
            *(values(page, "heads_finder", trace, field) for field in ("customdata", "x", "y")), strict=True
        )
    }
    assert len(points) == 48
    click(page, "heads_finder", *points[4, 3])
    settled(page)
    assert "block=4" in page.url and "head=3" in page.url
    click(page, "heads_here", 6, 5)
    settled(page)
    assert "block=5" in page.url and "head=6" in page.url
    page.get_by_role("button", name="A copied passage: shows").click()
    settled(page)
    assert not_here.count() == 0
