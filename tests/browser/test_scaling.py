"""The Scaling page in Chromium: d slides, and the cost of attention is measured on request."""

import numpy as np

from gptviz.lessons import scaling as lesson
from tests.browser.plots import values


def test_d_slides_and_a_measurement_is_made(open_page, settled):
    page = open_page("scaling", viewport=(390, 844), text="Sam and the dog", sc_d=64)
    assert np.allclose(values(page, "scaling_variance", 0, "y"), lesson.by_size()["variance"])
    page.get_by_role("slider", name="d, the numbers").press("ArrowRight")
    settled(page)
    assert "sc_d=128" in page.url
    page.get_by_role("button", name="Measure on this machine").click()
    page.locator(".st-key-scaling_cost_bytes .js-plotly-plot").wait_for()
    settled(page)
    tokens = values(page, "scaling_cost_bytes", 1, "x")
    assert np.allclose(values(page, "scaling_cost_bytes", 1, "y"), 2 * 4 * 8 * tokens**2)
    assert page.get_by_role("button", name="Measure on this machine").is_visible()

    # a click on a picture that is not drawn yet is kept until it is
    hide = "(layers, [now, then]) => layers.forEach((layer) => layer.classList.replace(now, then))"
    layers = page.locator(".st-key-scaling_variance .main-svg")
    count = layers.count()
    layers.evaluate_all(hide, ["main-svg", "not-yet"])
    buttons = page.locator(".st-key-scaling_variance_save")
    with page.expect_download() as saving:
        buttons.get_by_test_id("save-svg").click()
        page.locator(".st-key-scaling_variance .not-yet").evaluate_all(hide, ["not-yet", "main-svg"])
    assert count and saving.value.suggested_filename.endswith(".svg")
