"""The Positions page in Chromium: the arrows turn with the slider."""

import numpy as np

from tests.browser.plots import values

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"

TURNED = """(at) => Math.abs(document.querySelector('.st-key-position_dials_0 .js-plotly-plot')
  ._fullData[3].x[1] - Math.cos(at)) < 1e-6"""


def test_arrows_turn_and_the_angle_between_them_stays(open_page, settled):
    page = open_page("positions", viewport=(390, 844), text=TEXT, pos_scheme="rope")

    def arrow(curve):
        return np.arctan2(
            values(page, "position_dials_0", curve, "y")[1], values(page, "position_dials_0", curve, "x")[1]
        )

    before = arrow(3), arrow(2)  # the first pair's query, and its key
    assert np.isclose((before[0] - before[1]) % (2 * np.pi), 3)
    page.get_by_role("slider", name="Position of the query").press("ArrowRight")
    settled(page)
    assert "pos_at=9" in page.url
    page.locator(".st-key-position_dials_0").get_by_text("between: 3.00 rad").first.wait_for()
    page.wait_for_function(TURNED, arg=9)
    assert np.isclose((arrow(3) - before[0]) % (2 * np.pi), 1)
    assert np.isclose((arrow(3) - arrow(2)) % (2 * np.pi), 3)
