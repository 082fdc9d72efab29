"""The Attention by hand page in Chromium: a typed number moves what comes after it, and is in the link."""

from tests.browser.conftest import by, press, typed, went


def cell(page, sheet, row, column, of="cell"):
    place = by(of, sheet=sheet, row=row, column=column)
    return page.get_by_test_id("worksheet-by_hand").locator(place)


def field(page, sheet, row, column):
    return cell(page, sheet, row, column, "number")


def test_a_number_is_typed_and_everything_after_it_moves(open_page):
    page = open_page("attention_by_hand")
    assert cell(page, "context0", 1, 2).inner_text() == "0.8610"
    typed(field(page, "x", 1, 2), "0")
    cell(page, "scores0", 1, 1).filter(has_text="0.3965").wait_for()  # 0.53² + 0.34²
    assert "hand_changed=x12_0" in page.url
    typed(field(page, "x", 0, 0), "nan")
    page.get_by_test_id("stAlert").get_by_text("nan").wait_for()
    assert field(page, "x", 0, 0).input_value() == "0.34"
    press(cell(page, "weights0", 0, 2))  # follow the first word
    assert "hand_query=0" in page.url
    cell(page, "scores0", 0, 1).hover()
    said = page.get_by_test_id("worksheet-by_hand").get_by_test_id("says").inner_text()
    assert said == "Hello · shiny = 0.34 × 0.53 + 0.22 × 0.34 + 0.54 × 0 = 0.2550"
    went(page, "again")
    cell(page, "scores0", 1, 1).filter(has_text="0.3965").wait_for()
    press(page.get_by_role("button", name="Reset"))
    cell(page, "context0", 1, 2).filter(has_text="0.8610").wait_for()


def test_a_click_to_save_a_picture_that_is_not_drawn_yet_is_kept_until_it_is(open_page):
    page = open_page("scaling", viewport=(390, 844), text="Sam and the dog")
    hide = "(layers, [now, then]) => layers.forEach((layer) => layer.classList.replace(now, then))"
    layers = page.locator(".st-key-scaling_variance .main-svg")
    count = layers.count()
    layers.evaluate_all(hide, ["main-svg", "not-yet"])
    buttons = page.locator(".st-key-scaling_variance_save")
    with page.expect_download() as saving:
        buttons.get_by_test_id("save-svg").click()
        page.locator(".st-key-scaling_variance .not-yet").evaluate_all(
            hide, ["not-yet", "main-svg"]
        )
    assert count and saving.value.suggested_filename.endswith(".svg")
    page = open_page("scaling", sc_p=0.2)  # an older address, of another step
    page.locator("div.st-key-scaling_drop_after").wait_for()
