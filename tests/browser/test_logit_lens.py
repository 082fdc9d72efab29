"""The Logit lens page in Chromium: cells, clicks, links and the window, against the model's own."""

import math

import numpy as np
import pytest
import torch

from gptviz.analysis import logit_lens
from tests.browser.conftest import address, press

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
LONG = "Once upon a time a cat sat on the mat, and nobody knew why the cat sat there. " * 12


def cell(page, row, position):
    return page.locator(f"[data-testid=lens-cell][data-row='{row}'][data-position='{position}']")


def seen(page):
    """The columns in sight, and of how many."""
    data = page.get_by_test_id("lens").evaluate("(node) => ({...node.dataset})")
    return tuple(int(data[name]) for name in ("from", "to", "of"))


def test_a_cell_says_its_ten_and_a_click_sets_it_beside_the_end(open_page, mini):
    page, trace = open_page("logit_lens", text=TEXT), mini.trace(TEXT)
    assert page.get_by_test_id("lens-cell").count() == 13 * len(trace)
    p = torch.softmax(logit_lens(trace, mini.model, 14), dim=-1)
    cell(page, 11, 14).hover()
    tops = page.get_by_test_id("lens-top").evaluate_all(
        "(rows) => rows.map((row) => ({...row.dataset,"
        " width: row.querySelector('i').clientWidth / row.querySelector('.bar').clientWidth}))"
    )
    assert all(abs(top["width"] - float(top["probability"])) < 0.02 for top in tops)
    assert [int(top["id"]) for top in tops] == p[11].topk(10).indices.tolist()
    assert np.allclose([float(top["probability"]) for top in tops], p[11].topk(10).values, atol=1e-5)
    numbers = page.get_by_test_id("lens-numbers").locator("span")
    entropy = float(numbers.first.get_attribute("data-value"))
    assert entropy == pytest.approx(torch.special.entr(p[11]).sum().item() / math.log(2), abs=1e-3)

    press(cell(page, 11, 14))
    assert (address(page)["token"], address(page)["lens_row"]) == ("14", "11")
    assert page.locator("[data-testid=chip][data-position='14']").get_attribute("aria-pressed") == "true"
    press(page.get_by_role("radio", name="Entropy"))
    share = float(cell(page, 0, 14).get_attribute("data-color"))
    assert share == pytest.approx(torch.special.entr(p[0]).sum().item() / math.log(8192), abs=1e-3)
    cell(page, 11, 14).and_(page.locator(".ring")).wait_for()


def test_a_long_text_is_read_through_a_window(open_page, settled, mini):
    page = open_page("logit_lens", text=LONG, token=150)
    n = len(mini.encode(LONG))
    first, last, count = seen(page)
    assert count == n >= 225 and first <= 150 <= last and 10 <= last - first < 40
    top = logit_lens(mini.trace(LONG), mini.model, last)[-1].argmax().item()
    assert int(cell(page, 12, last).get_attribute("data-id")) == top
    for row in (0, 12):  # what stands there can be read
        assert cell(page, row, first).inner_text() and cell(page, row, first).bounding_box()["width"] >= 38

    page.get_by_test_id("lens-in").click()
    nearer = seen(page)
    assert nearer[1] - nearer[0] < last - first and nearer[0] <= 150 <= nearer[1]
    page.get_by_test_id("lens-out").click()
    page.get_by_test_id("lens-after").click()
    assert seen(page)[0] > nearer[0]
    page.get_by_test_id("lens-map").click(position={"x": 3, "y": 10})
    assert seen(page)[0] == 0 and address(page)["token"] == "150"  # looking selects nothing
    page.get_by_test_id("lens-chosen").click()
    assert seen(page)[0] <= 150 <= seen(page)[1]

    page.locator(".grid").focus()
    for _ in range(seen(page)[1] - 150 + 2):  # the window goes along with the keyboard
        page.keyboard.press("ArrowRight")
    assert page.get_by_test_id("lens-tip").is_visible()
    at = page.get_by_test_id("lens").get_attribute("data-position")
    assert seen(page)[1] == int(at)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    settled(page)
    assert address(page)["token"] == at


def test_the_rest_is_read_on_demand_and_can_be_stopped(open_page, settled):
    """GPT-2 124M's size: 25 rows of 50,257 logits for each column."""
    page = open_page("logit_lens", text="a b c d " * 100, model="gpt2-untrained")

    def read():
        return int(page.get_by_test_id("lens").get_attribute("data-read"))

    unasked, count = read(), seen(page)[2]
    assert 0 < unasked < 100 < count
    page.get_by_role("button", name="Read all").click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Read all").wait_for()
    settled(page)
    assert unasked <= read() < count and page.get_by_role("button", name="Stop").count() == 0
