"""The Attention page in a real browser: point at a head, a cell, a token; read the numbers."""

import json
from typing import Any

import pytest

from tests.browser.conftest import address, by, press, settled

TEXT = "The cat sat on the mat. The cat sat on the mat."
LONG = "Once upon a time a cat sat on the mat, and nobody knew why the cat sat there. " * 12
HEAD = {"text": LONG, "block": 5, "head": 0, "token": 180, "key": 95}


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def number(page: Any, testid: str) -> float:
    return float(page.locator(by(testid)).get_attribute("data-value"))


def shown(page: Any) -> tuple[str | None, str | None]:
    """The query and the key that the matrix marks."""
    matrix = page.locator(by("matrix-head"))
    return matrix.get_attribute("data-query"), matrix.get_attribute("data-key")


def seen(page: Any) -> tuple[int, int, int, int, float]:
    """The window of the matrix: first and last query, first and last key, zoom."""
    data = page.locator(by("matrix-head")).evaluate("(node) => ({...node.dataset})")
    return (*(int(data[key]) for key in ("from", "to", "keysFrom", "keysTo")), float(data["zoom"]))


def point_at(page: Any, query: int, key: int) -> tuple[float, float]:
    """Move the mouse onto a cell, by where the window has it; gives that place."""
    first, last, key_first, _, _ = seen(page)
    cells = page.locator(by("matrix-head")).locator(by("cells-weights"))
    n = last - first + 1
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    x = box["x"] + box["width"] * (key - key_first + 0.5) / n
    y = box["y"] + box["height"] * (query - first + 0.5) / n
    page.mouse.move(x, y)
    return x, y


def test_the_axis_of_the_shortest_tokens_has_room_for_its_name(open_page) -> None:
    matrix = open_page("attention", text="a b c").locator(by("matrix-head"))
    name = matrix.locator(".axis.row").bounding_box()
    whole = matrix.bounding_box()
    assert name["x"] >= whole["x"]


def test_from_a_thumbnail_to_a_cell_and_its_numbers(open_page, trace) -> None:
    page = open_page("attention", text=TEXT)
    press(page.locator(by("head-1-2")))
    page.mouse.click(*point_at(page, 8, 3))
    settled(page)
    assert address(page).items() >= {"block": "1", "head": "2", "token": "8", "key": "3"}.items()
    assert page.locator(by("chip", position=8)).get_attribute("aria-pressed") == "true"
    weights = trace["attn", 1][2]
    q = trace["q", 1][2, 8]
    k = trace["k", 1][2, 3]
    scaled = (q @ k).item() / len(q) ** 0.5
    steps = {
        "scores": (q @ k).item(),
        "scaled": scaled,
        "masked": scaled,
        "weights": weights[8, 3].item(),
    }
    for panel, value in steps.items():
        assert number(page, f"value-{panel}") == pytest.approx(value, rel=1e-4, abs=1e-4)

    says = page.locator(by("says-head"))
    point_at(page, 6, 2)
    assert shown(page) == ("6", "2")
    assert number(page, "says-head") == pytest.approx(weights[6, 2].item(), abs=1e-6)
    assert "(position 6)" in says.inner_text() and "(position 2)" in says.inner_text()
    point_at(page, 2, 6)
    assert "(position 2)" in says.inner_text() and says.get_attribute("data-value") is None
    assert page.locator(by("masked")).first.inner_text() == "masked"


def test_what_a_teacher_points_at_is_in_the_first_screen(open_page) -> None:
    page = open_page("attention", block=4, head=3)
    for width, height in ((1280, 800), (1366, 768)):
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        cells = page.locator(by("matrix-head")).locator(by("cells-weights")).bounding_box()
        boxes = [
            page.locator(by("heads")).locator(".grid").bounding_box(),
            page.get_by_role("spinbutton", name="Block, 0 to 5").bounding_box(),
            cells,
        ]
        assert all(box["y"] + box["height"] <= height for box in boxes), boxes
        assert cells["width"] > 380


def test_a_long_text_is_read_through_a_window(open_page, mini) -> None:
    page = open_page("attention", **HEAD)
    weights = mini.trace(LONG)["attn", 5][0]
    n = len(weights)
    matrix = page.locator(by("matrix-head"))
    assert n >= 225
    tool = lambda name: matrix.locator(by(f"zoom-{name}"))  # noqa: E731

    opened = seen(page)
    assert opened[0] <= 180 <= opened[1] and opened[2] <= 95 <= opened[3] and opened[4] > 3
    # all can be read
    assert matrix.locator(".label.row:not(.focus)").count() == opened[1] - opened[0] + 1
    for query, key in ((180, 95), (opened[0], opened[2]), (opened[1], opened[3])):
        point_at(page, query, key)
        assert shown(page) == (str(query), str(key))
        assert number(page, "says-head") == pytest.approx(weights[query, key].item(), abs=1e-6)

    point_at(page, 181, 96)
    page.mouse.wheel(0, -30)  # scrolls the page and nothing else
    settled(page)  # a wheel's turns come when the browser is free, and move what is pointed at
    assert seen(page) == opened
    point_at(page, 181, 96)
    page.keyboard.down("Control")
    for _ in range(5):
        page.mouse.wheel(0, -50)
    page.keyboard.up("Control")
    matrix.and_(page.locator(f":not([data-zoom='{opened[4]:.2f}'])")).wait_for()
    settled(page)  # all four
    nearer = seen(page)
    assert nearer[4] > opened[4] and nearer[0] <= 181 <= nearer[1] and nearer[2] <= 96 <= nearer[3]

    next_x, _ = point_at(page, 181, 97)
    x, y = point_at(page, 181, 96)
    cell = next_x - x
    page.mouse.down()
    page.mouse.move(x - 2 * cell, y + 3 * cell, steps=4)
    page.mouse.up()
    assert seen(page)[:4] == (nearer[0] - 3, nearer[1] - 3, nearer[2] + 2, nearer[3] + 2)
    assert "token=180" in page.url  # a drag selects nothing

    tool("whole").click()
    assert seen(page) == (0, n - 1, 0, n - 1, 1.0)
    assert tool("out").is_disabled()
    tool("in").click()
    assert 1 < seen(page)[4] < 2
    matrix.locator(by("map")).click(position={"x": 2, "y": 2})
    assert seen(page)[0] == seen(page)[2] == 0
    tool("chosen").click()
    assert seen(page) == opened

    matrix.locator(".plot").focus()
    for _ in range(opened[1] - 180 + 2):  # the window goes along with the keyboard
        page.keyboard.press("ArrowDown")
    assert seen(page)[:2] == (opened[0] + 2, opened[1] + 2)
    page.keyboard.press("0")
    assert seen(page)[4] == 1
    page.keyboard.press("+")
    assert seen(page)[4] > 1

    tool("chosen").click()
    press(page.locator(by("chip", position=200)))
    first, last, _, _, zoom = seen(page)
    assert first <= 200 <= last and zoom > 3


def test_two_fingers_pinch_and_drag_the_window_on_a_phone(open_page) -> None:
    page = open_page("attention", viewport=(390, 800), touch=True, **HEAD)
    matrix = page.locator(by("matrix-head"))
    touches = page.context.new_cdp_session(page)
    cells = matrix.locator(by("cells-weights"))
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2

    def fingers(*moves: tuple[float, float]) -> None:
        """Two fingers, so far to each side and so far down, one place after the other."""
        for i, (apart, down) in enumerate(moves):
            points = [{"x": x + dx, "y": y + down, "id": int(dx > 0)} for dx in (-apart, apart)]
            kind = "touchMove" if i else "touchStart"
            touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touches.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    opened = seen(page)
    fingers((20, 0), *((apart, 0) for apart in range(22, 62, 4)))
    matrix.and_(page.locator(f":not([data-zoom='{opened[4]:.2f}'])")).wait_for()
    nearer = seen(page)
    assert nearer[4] > 1.5 * opened[4]
    fingers(*((20, down) for down in range(0, 64, 4)))
    matrix.and_(page.locator(f":not([data-from='{nearer[0]}'])")).wait_for()
    moved = seen(page)
    assert moved[0] < nearer[0] and moved[4] == nearer[4]  # earlier rows came down from above
    assert "token=180" in page.url  # nothing was selected


def test_arcs_beside_the_matrix_keep_what_is_pointed_at_and_clicked(open_page, trace) -> None:
    page = open_page("attention", text=TEXT, block=5, head=0, arcs="on", mass=100)
    matrix = page.locator(by("matrix-head"))
    arcs = page.locator(by("arcs-head"))
    weights = trace["attn", 5]

    def token(side: str, position: int) -> Any:
        return page.locator(by("arc-token", side=side, position=position))

    def given(side: str = "key") -> list[float]:
        """What stands beside each token of a side."""
        return [float(token(side, k).get_attribute("data-value")) for k in range(len(trace.tokens))]

    one = matrix.bounding_box()
    other = arcs.bounding_box()
    assert one["x"] + one["width"] <= other["x"] and other["x"] + other["width"] <= 1280
    assert max(one["y"], other["y"]) < 560  # both begin in the first screen
    # the grid is below
    assert page.locator(by("head-5-0")).bounding_box()["y"] > one["y"] + one["height"]
    assert int(arcs.get_attribute("data-lines")) == int((weights[0] > 0).sum())
    token("query", 9).hover()
    assert arcs.get_attribute("data-focus") == "9"
    assert given() == pytest.approx(weights[0, 9].tolist(), abs=1e-6)
    assert given("query") == pytest.approx(weights[0, :, 9].tolist(), abs=1e-6)

    press(token("query", 9))
    assert "token=9" in page.url and arcs.get_attribute("data-held") == "1"
    token("query", 4).hover()  # what is held stays
    assert arcs.get_attribute("data-focus") == "9"
    token("query", 8).click(modifiers=["Control"])
    settled(page)
    assert arcs.get_attribute("data-focus") == "8,9"
    sums = weights[:, 8] + weights[:, 9]
    assert given() == pytest.approx(sums[0].tolist(), abs=1e-6)
    page.locator(by("arc-head", head=3)).click()  # beside head 0: the mean of the two
    assert arcs.get_attribute("data-heads") == "0,3"
    assert given() == pytest.approx(sums[[0, 3]].mean(0).tolist(), abs=1e-6)
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert arcs.get_attribute("data-held") == "0" and arcs.get_attribute("data-focus") == ""
    with page.expect_download() as saved:
        arcs.get_by_test_id("save-svg").click()
    assert "Point at a token" not in saved.value.path().read_text("utf-8")  # nobody can, in a file
    page.locator(by("arc-head", head=3)).dblclick()
    settled(page)
    assert "head=3" in page.url and arcs.get_attribute("data-heads") == "3"
    press(token("query", 7))  # one selection for both
    assert "token=7" in page.url and shown(page)[0] == "7"
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    one = matrix.bounding_box()
    other = arcs.bounding_box()
    assert one["y"] + one["height"] <= other["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_output_adds_up_value_by_value_and_a_click_ends_it(open_page, trace) -> None:
    page = open_page("attention", text=TEXT, block=1, head=2, token=8)
    adder = page.locator(by("adder"))
    adder.wait_for()
    steps = page.locator(by("matrix-steps"))
    row = trace["attn", 1][2, 8, :9]
    values = trace["v", 1][2, :9]
    largest = int(row.argmax())
    canvas = steps.locator(by("adding-sum"))
    assert canvas.count() == 0  # who wants no motion sees none, but a sum at each press
    adder.click()
    assert steps.get_attribute("data-adding") == "0"
    first = json.loads(canvas.get_attribute("data-sum"))
    assert first == pytest.approx((row[largest] * values[largest]).tolist(), abs=1e-5)
    sums = [first]
    for _ in range(5):
        adder.click()
        if steps.get_attribute("data-adding") is None:
            break
        sums.append(json.loads(canvas.get_attribute("data-sum")))
    assert canvas.count() == 0 and len(sums) > 1
    assert sums[-1] == pytest.approx(trace["z", 1][2, 8].tolist(), abs=1e-4)
    page.emulate_media(reduced_motion="no-preference")
    adder.click()
    assert steps.get_attribute("data-adding") is not None and "stop" in adder.inner_text()
    page.mouse.click(5, 400)
    assert canvas.count() == 0 and "add up" in adder.inner_text()
