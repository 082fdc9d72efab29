"""The page "Why this token?" in Chromium: a target that is typed, and the picture of paths."""

from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.conftest import address, press, settled, typed
from tests.browser.plots import hover, values


def test_a_typed_target_is_taken_or_answered_and_its_paths_are_drawn(open_page, mini):
    page = open_page("why", text=UNSAID_TEXT)
    box = page.get_by_role("combobox", name="Answer")
    typed(box, "parrots")
    answer = page.get_by_test_id("stAlert")
    answer.wait_for()
    assert "`" not in answer.inner_text() and "ots" in answer.inner_text()
    assert "target" not in address(page)
    typed(box, "·wood")
    wood = mini.tokenizer.encode_single_token(b" wood")
    assert address(page)["target"] == str(wood) and not answer.is_visible()

    press(page.locator(".st-key-why_paths_box summary").first)
    x, y = (values(page, "why_paths", 0, axis) for axis in "xy")
    assert page.locator(".st-key-why_paths .shapelayer path").count() == len(x)
    widest = len(x) - 1  # the last that is drawn lies on top
    assert "logits" in hover(page, "why_paths", float(x[widest]), float(y[widest]))
    # the picture scrolls, and the page does not
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".st-key-why_paths")
    assert box.evaluate("e => e.scrollWidth") >= 600 > box.evaluate("e => e.clientWidth")
