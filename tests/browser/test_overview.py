"""The Overview in a real browser."""

from urllib.parse import parse_qs, urlsplit

import pytest

from gptviz.ui.shell.examples import EXAMPLES
from gptviz.ui.shell.navigation import PAGES

BLOCK = ("layernorm", "attention", "feed_forward")
DOORS = ("tokens", "embeddings", *BLOCK, "next_token")
TEXT = "The king loved his daughter"


def test_each_picture_is_a_door_to_its_page(open_page, settled):
    page = open_page(text=TEXT, token=1)
    for name in DOORS:
        door = page.locator(f"[data-testid=door][data-page={name}]")
        assert urlsplit(door.get_attribute("href")).path == f"./{name}"
        door.click()
        settled(page)
        assert page.get_by_role("heading", level=1).inner_text() == PAGES[name].title
        assert urlsplit(page.url).path == f"/{name}"
        query = parse_qs(urlsplit(page.url).query)
        assert query["text"] == [TEXT] and query["token"] == ["1"]
        page.go_back()
        settled(page)


def test_the_bars_are_the_models_probabilities_and_an_example_is_one_click_away(open_page, settled, mini):
    page = open_page(text="Hi")
    page.get_by_role("button", name=[*EXAMPLES][-1]).click()
    settled(page)
    text = page.get_by_role("textbox", name="Prompt").input_value()
    assert text == [*EXAMPLES.values()][-1]
    for position in (None, 1):
        if position is not None:
            page.get_by_test_id("chip").nth(position).click()
            settled(page)
        expected = mini.trace(text, keep=()).next_tokens(k=5, position=-1 if position is None else position)
        page.locator(f"[data-testid=door-bar][data-id='{expected['id'][4]}']").wait_for()
        bars = page.get_by_test_id("door-bar").all()
        assert [int(bar.get_attribute("data-id")) for bar in bars] == expected["id"].tolist()
        shown = [float(bar.get_attribute("data-probability")) for bar in bars]
        assert shown == pytest.approx(expected["probability"].tolist(), rel=1e-4)
        widths = "(bars) => bars.map((bar) => bar.querySelector('.fill').clientWidth / bar.clientWidth)"
        drawn = page.get_by_test_id("door-bar").evaluate_all(widths)  # of a whole one, on every text
        assert drawn == pytest.approx(shown, abs=0.015)


def test_the_pictures_are_drawn(open_page):
    page = open_page(text=TEXT, edits="z.4.3=zero")
    images = page.locator("[data-testid=door] img")
    # three strips of embeddings, three of the feed-forward and the unchanged ones of these, and the heads
    assert images.count() == 10
    assert images.evaluate_all("(all) => all.every((image) => image.complete && image.naturalWidth > 0)")
    assert page.locator("[data-testid=door] svg polyline").count() == 4
    heads = page.get_by_test_id("door-head")
    changed = [head for head in heads.all() if head.get_attribute("data-changed") == "true"]
    assert heads.count() == 48 and [head.get_attribute("data-block") for head in changed] == ["4"]
    box = changed[0].locator("rect").bounding_box()  # the fourth of eight, in the fifth row of six
    picture = images.nth(3).bounding_box()
    assert (box["x"] + box["width"] / 2 - picture["x"]) / picture["width"] == pytest.approx(3.5 / 8, abs=0.02)
    assert page.get_by_test_id("door-head").nth(40).get_attribute("data-moved") != "0"
    around = page.get_by_test_id("door-around").bounding_box()  # over the three parts of a block
    parts = [page.locator(f"[data-testid=door][data-page={name}]").bounding_box() for name in BLOCK]
    assert around["x"] == pytest.approx(parts[0]["x"], abs=1)
    assert around["x"] + around["width"] == pytest.approx(parts[-1]["x"] + parts[-1]["width"], abs=1)
