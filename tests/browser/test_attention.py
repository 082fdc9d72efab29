"""The Attention page in a real browser: click a head, a cell, a token; follow the link; read the numbers."""

from typing import Any

import pytest

import gptviz
from tests.browser.conftest import press

TEXT = "The cat sat on the mat. The cat sat on the mat."


@pytest.fixture(scope="module")
def trace():
    return gptviz.load("mini").trace(TEXT)


def by_id(name: str) -> str:
    return f'[data-testid="{name}"]'


def click_cell(page: Any, panel: str, row: int, column: int, n_tokens: int, hover: bool = False) -> None:
    """Click (or only point at) a cell of a matrix, by where it lies on its canvas."""
    cells = page.locator(by_id(f"cells-{panel}")).first
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    x, y = box["width"] * (column + 0.5) / n_tokens, box["height"] * (row + 0.5) / n_tokens
    act = cells.hover if hover else cells.click
    act(position={"x": x, "y": y})


def number(page: Any, testid: str) -> float:
    return float(page.locator(by_id(testid)).get_attribute("data-value"))


def shown_matrix(page: Any, name: str = "head") -> tuple[str | None, str | None]:
    matrix = page.locator(by_id(f"matrix-{name}"))
    return matrix.get_attribute("data-query"), matrix.get_attribute("data-key")


def test_from_a_thumbnail_to_a_cell_a_link_a_label_and_the_keyboard(open_page, settled, trace) -> None:
    n = len(trace.tokens)
    page = open_page("attention", text=TEXT)
    press(page.locator(by_id("head-1-2")))
    assert page.locator(by_id("head-1-2")).get_attribute("aria-pressed") == "true"
    assert "block=1" in page.url and "head=2" in page.url

    click_cell(page, "weights", 8, 3, n)
    settled(page)
    assert shown_matrix(page) == ("8", "3")
    assert "token=8" in page.url and "key=3" in page.url
    assert number(page, "says-head") == pytest.approx(trace["attn", 1][2, 8, 3].item(), abs=1e-6)
    assert page.locator('[data-testid="chip"][data-position="8"]').get_attribute("aria-pressed") == "true"

    q, k = trace["q", 1][2, 8], trace["k", 1][2, 3]  # the same four numbers under the steps
    score = (q @ k).item()
    for panel, value in (
        ("scores", score),
        *((name, score / len(q) ** 0.5) for name in ("scaled", "masked")),
    ):
        assert number(page, f"value-{panel}") == pytest.approx(value, rel=1e-4, abs=1e-4)
    assert number(page, "value-weights") == pytest.approx(trace["attn", 1][2, 8, 3].item(), abs=1e-5)

    weights, says = trace["attn", 1][2], page.locator(by_id("says-head"))
    click_cell(page, "weights", 6, 2, n, hover=True)
    assert number(page, "says-head") == pytest.approx(weights[6, 2].item(), abs=1e-6)
    assert "(position 6)" in says.inner_text() and "(position 2)" in says.inner_text()
    click_cell(page, "weights", 2, 6, n, hover=True)
    assert "(position 2)" in says.inner_text() and says.get_attribute("data-value") is None
    assert page.locator(by_id("masked")).first.inner_text() == "masked"

    matrix = page.locator(by_id("matrix-head"))
    press(matrix.locator(".label.row[data-index='5']:not(.focus)"))
    assert shown_matrix(page)[0] == "5" and "token=5" in page.url
    matrix.locator(".plot").focus()
    key = int(shown_matrix(page)[1])
    page.keyboard.press("ArrowUp" if key < 5 else "ArrowLeft")
    page.keyboard.press("Enter")
    settled(page)
    assert shown_matrix(page) == (("4", str(key)) if key < 5 else ("5", "4"))


def test_what_a_teacher_points_at_is_in_the_first_screen_and_stays_where_it_is(open_page, settled) -> None:
    page = open_page("attention")
    page.locator(by_id("head-4-3")).click()
    for width, height in ((1280, 800), (1366, 768)):
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        boxes = [
            page.locator(f"{by_id('heads')} .grid").bounding_box(),
            page.get_by_role("spinbutton", name="Block, 0 to 5").bounding_box(),
            page.locator(by_id("cells-weights")).first.bounding_box(),
        ]
        assert all(box["y"] + box["height"] <= height for box in boxes), boxes
        assert page.locator(f"{by_id('matrix-head')} {by_id('cells-weights')}").bounding_box()["width"] > 380

    grid, says = page.locator(by_id("heads")), page.locator(by_id("heads-says"))
    before = grid.bounding_box()
    for head in range(8):
        page.locator(by_id(f"head-4-{head}")).hover()
        assert says.get_attribute("data-head") == str(head)
        assert grid.bounding_box() == before
    page.locator(by_id("head-1-0")).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert (says.get_attribute("data-block"), says.get_attribute("data-head")) == ("2", "1")


LONG = "Once upon a time a cat sat on the mat, and nobody knew why the cat sat there. " * 12


def seen(page: Any, name: str = "head") -> tuple[int, int, int, int, float]:
    """The window of a matrix: first and last query, first and last key, zoom."""
    data = page.locator(by_id(f"matrix-{name}")).evaluate("(node) => ({...node.dataset})")
    return (*(int(data[key]) for key in ("from", "to", "keysFrom", "keysTo")), float(data["zoom"]))


def point_at(page: Any, query: int, key: int) -> None:
    """Move the mouse onto a cell, by where the window has it."""
    first, last, key_first, _, _ = seen(page)
    cells, n = page.locator(by_id("matrix-head")).locator(by_id("cells-weights")), last - first + 1
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    across, down = (key - key_first + 0.5) / n, (query - first + 0.5) / n
    page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)


def test_a_long_text_is_read_through_a_window(open_page, settled) -> None:
    trace = gptviz.load("mini").trace(LONG)
    n = len(trace.tokens)
    assert n >= 225
    page = open_page("attention", text=LONG, block=5, head=0, token=180, key=95)
    matrix = page.locator(by_id("matrix-head"))
    tool = lambda name: matrix.locator(by_id(f"zoom-{name}"))  # noqa: E731
    weights = trace["attn", 5][0]

    opened = seen(page)
    assert opened[0] <= 180 <= opened[1] and opened[2] <= 95 <= opened[3] and opened[4] > 3
    assert matrix.locator(".label.row:not(.focus)").count() == opened[1] - opened[0] + 1  # all can be read
    for query, key in ((180, 95), (opened[0], opened[2]), (opened[1], opened[3])):
        point_at(page, query, key)
        assert shown_matrix(page) == (str(query), str(key))
        assert number(page, "says-head") == pytest.approx(weights[query, key].item(), abs=1e-6)

    point_at(page, 181, 96)
    page.mouse.wheel(0, -30)  # scrolls the page and nothing else
    settled(page)  # a wheel's turns come when the browser is free, and move what is pointed at
    assert seen(page) == opened
    point_at(page, 181, 96)
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -50)
    page.keyboard.up("Control")
    matrix.and_(page.locator(f":not([data-zoom='{opened[4]:.2f}'])")).wait_for()
    settled(page)  # all four
    nearer = seen(page)
    assert nearer[4] > opened[4] and nearer[0] <= 181 <= nearer[1] and nearer[2] <= 96 <= nearer[3]

    point_at(page, 181, 96)
    start = matrix.locator(by_id("cells-weights")).bounding_box()
    cell = start["width"] / (nearer[1] - nearer[0] + 1)
    page.mouse.down()
    x, y = start["x"] + (96 - nearer[2] + 0.5) * cell, start["y"] + (181 - nearer[0] + 0.5) * cell
    page.mouse.move(x - 2 * cell, y + 3 * cell, steps=4)
    page.mouse.up()
    assert seen(page)[:4] == (nearer[0] - 3, nearer[1] - 3, nearer[2] + 2, nearer[3] + 2)
    assert "token=180" in page.url  # a drag selects nothing

    tool("whole").click()
    assert seen(page) == (0, n - 1, 0, n - 1, 1.0)
    assert tool("out").is_disabled()
    tool("in").click()
    assert 1 < seen(page)[4] < 2
    matrix.locator(by_id("map")).click(position={"x": 2, "y": 2})
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
    press(page.locator('[data-testid="chip"][data-position="200"]'))
    first, last, _, _, zoom = seen(page)
    assert first <= 200 <= last and zoom > 3


def test_two_fingers_pinch_and_drag_the_window_on_a_phone(open_page) -> None:
    page = open_page(
        "attention", text=LONG, viewport=(390, 800), touch=True, block=5, head=0, token=180, key=95
    )
    matrix, touches = page.locator(by_id("matrix-head")), page.context.new_cdp_session(page)
    cells = matrix.locator(by_id("cells-weights"))
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def fingers(kind: str, *at: tuple[float, float]) -> None:
        points = [{"x": x + dx, "y": y + dy, "id": i} for i, (dx, dy) in enumerate(at)]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    opened = seen(page)
    fingers("touchStart", (-20, 0), (20, 0))
    for apart in range(22, 62, 4):
        fingers("touchMove", (-apart, 0), (apart, 0))
    matrix.and_(page.locator(f":not([data-zoom='{opened[4]:.2f}'])")).wait_for()
    nearer = seen(page)
    assert nearer[4] > 1.5 * opened[4]
    fingers("touchEnd")

    fingers("touchStart", (-20, 0), (20, 0))
    for by in range(4, 64, 4):
        fingers("touchMove", (-20, by), (20, by))
    fingers("touchEnd")
    matrix.and_(page.locator(f":not([data-from='{nearer[0]}'])")).wait_for()
    moved = seen(page)
    assert moved[0] < nearer[0] and moved[4] == nearer[4]  # earlier rows came down from above
    assert "token=180" in page.url  # nothing was selected


def test_arcs_beside_the_matrix_keep_what_is_pointed_at_and_clicked(open_page, settled, trace) -> None:
    page = open_page("attention", text=TEXT, block=5, head=0, arcs="on", mass=100)
    arcs, weights = page.locator(by_id("arcs-head")), trace["attn", 5]

    def token(side: str, position: int) -> Any:
        return page.locator(f'{by_id("arc-token")}[data-side="{side}"][data-position="{position}"]')

    def value(side: str, position: int) -> float:
        return float(token(side, position).get_attribute("data-value"))

    matrix = page.locator(by_id("matrix-head"))
    one, other = matrix.bounding_box(), arcs.bounding_box()
    assert one["x"] + one["width"] <= other["x"] and other["x"] + other["width"] <= 1280
    assert max(one["y"], other["y"]) < 560  # both begin in the first screen
    assert page.locator(by_id("head-5-0")).bounding_box()["y"] > one["y"] + one["height"]  # the grid is below
    n = len(trace.tokens)
    assert int(arcs.get_attribute("data-lines")) == int((weights[0] > 0).sum())
    token("query", 9).hover()
    assert arcs.get_attribute("data-focus") == "9"
    assert value("key", 3) == pytest.approx(weights[0, 9, 3].item(), abs=1e-6)
    assert value("query", 11) == pytest.approx(weights[0, 11, 9].item(), abs=1e-6)

    press(token("query", 9))
    assert "token=9" in page.url and arcs.get_attribute("data-held") == "1"
    token("query", 4).hover()  # what is held stays
    assert arcs.get_attribute("data-focus") == "9"
    token("query", 8).click(modifiers=["Control"])
    settled(page)
    assert arcs.get_attribute("data-focus") == "8,9"
    sums = weights[0, 8] + weights[0, 9]
    assert [value("key", k) for k in range(n)] == pytest.approx(sums.tolist(), abs=1e-6)

    page.locator(f'{by_id("arc-head")}[data-head="3"]').click()  # beside head 0: the mean of the two
    assert arcs.get_attribute("data-heads") == "0,3"
    both = (sums + weights[3, 8] + weights[3, 9]) / 2
    assert [value("key", k) for k in range(n)] == pytest.approx(both.tolist(), abs=1e-6)
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert arcs.get_attribute("data-held") == "0" and arcs.get_attribute("data-focus") == ""
    page.locator(f'{by_id("arc-head")}[data-head="3"]').dblclick()
    settled(page)
    assert "head=3" in page.url and arcs.get_attribute("data-heads") == "3"
    press(token("query", 7))  # one selection for both
    assert "token=7" in page.url and matrix.get_attribute("data-query") == "7"
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    one, other = matrix.bounding_box(), arcs.bounding_box()
    assert one["y"] + one["height"] <= other["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
