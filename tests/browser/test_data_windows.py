"""The Data windows page in Chromium: the window slides, a click opens one, the link opens it again."""

from tests.browser.conftest import press


def placed(page, kind):
    cells = page.locator(f"[data-testid=window-{kind}]")
    return cells.evaluate_all(
        "all => all.map(n => [Number(n.dataset.window), Number(n.dataset.position), n.textContent])"
    )


def test_windows_slide_and_open(open_page, settled):
    page = open_page("data_windows", viewport=(390, 844), color_scheme="dark", dw_text="book")
    page.get_by_test_id("windows").wait_for()
    inputs, targets = placed(page, "input"), placed(page, "target")
    assert [cell[:2] for cell in inputs] == [[w, w + i] for w in range(8) for i in range(4)]
    assert [cell[1:] for cell in targets] == [[1, "·H"], [2, "AD"], [3, "·always"], [4, "·thought"]]

    press(page.locator("[data-testid=window][data-window='5']"))
    assert "dw_window=5" in page.url
    opened = placed(page, "target")
    assert [cell[:2] for cell in opened] == [[5, 6 + i] for i in range(4)]
    upper, lower = (
        page.locator(f"[data-testid=window-{kind}][data-window='5'][data-position='7']")
        for kind in ("input", "target")
    )
    assert abs(upper.bounding_box()["x"] - lower.bounding_box()["x"]) < 1  # the same token, in one column
    page.get_by_role("slider", name="Slide the window").press("ArrowRight")
    settled(page)
    page.locator("[data-testid=windows][data-selected='6']").wait_for()
