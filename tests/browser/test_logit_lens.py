"""The Logit lens page in Chromium: what a cell lists, the window over a long text, and a stop."""

import numpy as np
import torch

from gptviz.analysis import logit_lens
from tests.browser.conftest import address, by, press, settled

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
LONG = "Once upon a time a cat sat on the mat, and nobody knew why the cat sat there. " * 12


def cell(page, row, position):
    return page.locator(by("lens-cell", row=row, position=position))


def seen(page):
    """The columns in sight, and of how many."""
    data = page.get_by_test_id("lens").evaluate("(node) => ({...node.dataset})")
    return tuple(int(data[name]) for name in ("from", "to", "of"))


def test_a_cell_lists_its_ten_with_bars_and_has_a_ring_where_it_is_chosen(open_page, mini):
    page = open_page("logit_lens", text=TEXT)
    trace = mini.trace(TEXT)
    assert page.get_by_test_id("lens-cell").count() == 13 * len(trace)
    top = torch.softmax(logit_lens(trace, mini.model, 14), dim=-1)[11].topk(10)
    cell(page, 11, 14).hover()
    listed = page.get_by_test_id("lens-top").evaluate_all(
        "(rows) => rows.map((row) => [row.dataset.id, row.dataset.probability,"
        " row.querySelector('i').clientWidth / row.querySelector('.bar').clientWidth].map(Number))"
    )
    ids, probabilities, widths = zip(*listed, strict=True)
    assert [*ids] == top.indices.tolist()
    assert np.allclose(probabilities, top.values, atol=1e-5) and np.allclose(
        widths, top.values, atol=0.02
    )
    press(cell(page, 11, 14))
    assert (address(page)["token"], address(page)["lens_row"]) == ("14", "11")
    cell(page, 11, 14).and_(page.locator(".ring")).wait_for()


def test_a_long_text_is_read_through_a_window(open_page, mini):
    page = open_page("logit_lens", text=LONG, token=150)
    n = len(mini.encode(LONG))
    first, last, count = seen(page)
    assert count == n >= 225 and first <= 150 <= last and 10 <= last - first < 40
    top = logit_lens(mini.trace(LONG), mini.model, last)[-1].argmax().item()
    assert int(cell(page, 12, last).get_attribute("data-id")) == top
    for row in (0, 12):  # what stands there can be read
        assert (
            cell(page, row, first).inner_text()
            and cell(page, row, first).bounding_box()["width"] >= 38
        )

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


def test_reading_the_rest_can_be_stopped(open_page):
    """GPT-2 124M's size: 25 rows of 50,257 logits for each column."""
    page = open_page("logit_lens", text="a b c d " * 100, model="gpt2-untrained")

    def read():
        return int(page.get_by_test_id("lens").get_attribute("data-read"))

    unasked = read()
    count = seen(page)[2]
    assert 0 < unasked < 100 < count
    page.get_by_role("button", name="Read all").click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Read all").wait_for()
    settled(page)
    assert unasked <= read() < count and page.get_by_role("button", name="Stop").count() == 0
