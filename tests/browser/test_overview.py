"""The one picture in a real browser: falling into it and coming back, by every way there is."""

import pytest

from gptviz.analysis import machine
from gptviz.teach.guides import find
from gptviz.tokenizer import show_token
from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.conftest import address, by, settled

HEAD = "block.4.head.3"


def door(page, at):
    return page.locator(by("place-door", at=at)).last


def arrived(page, at):
    page.locator(by("machine", at=at)).wait_for()
    page.locator(".layer.before").wait_for(state="detached")
    settled(page)


def test_one_falls_by_clicks_from_the_machine_to_a_number_and_back(open_page, mini):
    page = open_page(model="mini")
    weights = mini.trace(UNSAID_TEXT)["attn", 4][3, 15]
    arrived(page, "")
    for at in ("block.4", "block.4.attention", HEAD, f"{HEAD}.cell.15.14"):
        place = door(page, at)
        if at.endswith("14"):
            cells = page.locator(by("place-door", kind="cell")).evaluate_all(
                "all => all.map((one) => [one.dataset.at, Number(one.dataset.value)])"
            )
            expected = {
                f"{HEAD}.cell.15.{key}": float(weight) for key, weight in enumerate(weights)
            }
            assert dict(cells) == pytest.approx(expected, abs=1e-6)
        place.click(position={"x": 3, "y": 3})
        arrived(page, at)
        assert address(page)["at"] == at
    assert address(page)["block"] == "4" and address(page)["head"] == "3"
    for at in (HEAD, "block.4.attention", "block.4"):
        page.go_back()
        arrived(page, at)
    page.get_by_test_id("place-more").click()
    page.wait_for_url("**/residual_stream?**")
    settled(page)
    assert page.get_by_role("heading", level=1).inner_text() == PAGES["residual_stream"].question
    page.get_by_role("link", name="In the picture").click()
    arrived(page, "block.4")
    page.locator(by("place-crumb", at="")).click()
    arrived(page, "")


def test_by_keyboard_wheel_and_two_fingers(open_page):
    page = open_page(at="block.4", viewport=(1280, 900))
    arrived(page, "block.4")
    box = door(page, "block.4.attention")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    arrived(page, "block.4.attention")
    door(page, HEAD).focus()
    page.keyboard.press("Escape")
    arrived(page, "block.4")

    where = door(page, "block.4.feed_forward").bounding_box()
    x = where["x"] + where["width"] / 2
    y = where["y"] + where["height"] / 2
    page.mouse.move(x, y)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -180)  # at once: a slow machine would rest between several
    arrived(page, "block.4.feed_forward")
    page.mouse.wheel(0, 180)
    page.keyboard.up("Control")
    arrived(page, "block.4")

    touch = page.context.new_cdp_session(page)

    def pinch(kind, apart):
        points = [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}] if apart else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    pinch("touchStart", 20)
    for apart in (25, 32, 40, 50):
        pinch("touchMove", apart)
    pinch("touchEnd", 0)
    arrived(page, "block.4.feed_forward")


def test_play_goes_the_way_of_one_token_and_shows_nothing_before_it_is_made(open_page):
    page = open_page(at="machine")
    arrived(page, "")
    page.get_by_test_id("play-play").click()
    page.get_by_test_id("play-pause").click()
    steps = find("way").steps
    for number, step in enumerate(steps):
        said = page.locator(by("play-says", step=number))
        said.wait_for()
        assert said.inner_text() == step.text
        if not number:
            assert page.locator("[data-testid=place-door]:not(.token)").count() == 0
            assert page.get_by_test_id("place-says").inner_text() == step.text
        if number + 1 < len(steps):
            page.get_by_test_id("play-next").click()
    arrived(page, "")
    assert page.locator("[data-testid=place-door].bar").count() == 10
    page.get_by_test_id("play-end").click()
    page.get_by_test_id("play-play").wait_for()


def heights(page):
    """Where the line of controls and the picture stand, and how high that is."""
    line = page.get_by_test_id("beats").bounding_box()
    stage = page.locator(".stage").bounding_box()
    return [round(line["y"]), round(stage["y"]), round(stage["height"])]


def test_a_guess_is_played_once_by_itself_and_nothing_moves_but_the_picture(open_page, mini):
    page = open_page(model="mini")
    beats = page.get_by_test_id("beats")
    still = page.locator(by("beats", how="rest", played=0))
    still.wait_for()  # without movement it is at its end
    assert page.locator("[data-beat=thread]").count() <= 3
    before = heights(page)
    assert before[2] == 420
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Next word").click()
    page.locator(by("beats", how="playing", played=1)).wait_for()
    assert heights(page) == before
    page.locator(by("beats", how="rest", played=1)).wait_for()
    winner = int(mini.trace(f"{UNSAID_TEXT} mill").logits(-1).argmax())
    shown = mini.decode([winner]).replace(" ", "·")
    assert page.locator("[data-beat=winner]").text_content() == shown
    chip = page.get_by_test_id("chip").nth(3)
    chip.click()  # a rerun of the same text
    page.locator(by("chip", position=3) + "[aria-pressed=true]").wait_for()
    settled(page)
    assert beats.get_attribute("data-played") == "1" and heights(page) == before
    page.locator(by("beat", beat=1)).click()
    page.locator(by("beats", how="paused", beat=1)).wait_for()
    # on, and at once no further: nothing of time is lost
    page.get_by_test_id("beats-how").evaluate("(how) => { how.click(); how.click(); }")
    page.locator(by("beats", how="paused", beat=1)).wait_for()
    assert heights(page) == before
    page.get_by_test_id("look-inside").click()
    page.get_by_test_id("play-play").wait_for()
    settled(page)
    assert address(page)["at"] == "machine"
    page.get_by_test_id("play-guess").click()
    page.locator(by("beats", how="rest")).wait_for()
    settled(page)
    assert "at" not in address(page) or not address(page)["at"]
    page = open_page(at=HEAD)
    arrived(page, HEAD)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Guess", exact=True).click()
    page.locator(by("beats", how="rest")).wait_for()
    settled(page)
    assert "at" not in address(page) or not address(page)["at"]


@pytest.mark.parametrize(
    "width, height, present", [(1280, 800, False), (1280, 800, True), (390, 844, False)]
)
def test_a_caption_of_any_length_moves_nothing(open_page, width, height, present):
    # in the browser, presented, and on a phone, where the second and third caption take two lines
    choices = {"present": "true"} if present else {}
    page = open_page(viewport=(width, height), **choices)
    page.locator(by("beats", how="rest")).wait_for()
    caption = page.get_by_test_id("guess-caption")
    links = page.locator(".st-key-gv_guess_links")
    stage = page.locator(".stage")
    seen = set()
    said = set()
    for beat in range(4):
        page.locator(by("beat", beat=beat)).click()
        seen.add(tuple(tuple(part.bounding_box().values()) for part in (caption, stage, links)))
        said.add(caption.inner_text())
    assert len(said) == 4 and len(seen) == 1
    line = caption.evaluate("(one) => parseFloat(getComputedStyle(one).lineHeight)")
    box = caption.bounding_box()
    assert box["height"] >= 2 * line - 1
    assert box["y"] + box["height"] <= height, "the caption is in the first screen"


def test_a_thread_says_whose_it_is_and_the_sentences_own_stands_out(open_page, mini):
    page = open_page(at="machine", viewport=(1280, 900))
    arrived(page, "")
    level = machine.level(mini, mini.trace(UNSAID_TEXT, reduce=machine.LENGTHS), "", 15)
    tokens = mini.tokens(mini.encode(UNSAID_TEXT))
    threads = page.locator("svg path[data-thread]")
    said = page.get_by_test_id("place-tells")
    opacity = "(all) => all.map((one) => Number(one.getAttribute('opacity')))"
    first, *others = threads.evaluate_all(opacity)
    assert threads.count() == len(level["reads"]) and first > 2 * max(others)
    assert threads.first.get_attribute("data-spoken") == ""
    middle = """(path) => {
      const at = path.getPointAtLength(0.6 * path.getTotalLength());
      const { x, y } = at.matrixTransform(path.getScreenCTM());
      return [x, y];
    }"""
    for number in (0, 1, 3):  # two that lie side by side, and one of another block
        read = level["reads"][number]
        place = f"block.{read['block']}.head.{read['head']}"
        told = (
            f"Head {read['block']}·{read['head']}: “·red” looks back at "
            f"“{show_token(tokens[read['key']].raw)}” (position {read['key']}), "
            f"attention weight {read['weight']:.2f}; it brings a vector of norm {read['brought']:.1f}."
        )
        thread = page.locator(f"svg path[data-thread='{place}.{read['key']}']")
        page.mouse.move(*thread.evaluate(middle))
        assert said.inner_text() == told
        assert thread.evaluate("(one) => one.style.opacity") == "1"
        page.mouse.move(300, 20)
        assert thread.evaluate("(one) => one.style.opacity") == "" and said.inner_text() == ""
        page.locator(by("place-door", kind="read", thread=f"{place}.{read['key']}")).focus()
        assert said.inner_text() == told
        assert thread.evaluate("(one) => one.style.opacity") == "1"


def test_on_a_phone_without_movement_and_with_it(open_page):
    page = open_page(at=HEAD, viewport=(390, 844), color_scheme="dark", edits="z.4.3=zero")
    arrived(page, HEAD)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(by("place-crumb", at="block.4")).click()
    arrived(page, "block.4")
    assert "→" in page.get_by_test_id("place-says").inner_text()
    # with movement it begins in the click itself, inwards and outwards: no answer can have come
    page.emulate_media(reduced_motion="no-preference")
    moving = "door.getRootNode().querySelector('.layer.now').getAnimations().length"
    for kind, at in (("door", "block.4.attention"), ("crumb", "")):
        moves = page.locator(by(f"place-{kind}", at=at)).last.evaluate(
            f"(door) => {{ door.click(); return {moving}; }}"
        )
        arrived(page, at)
        assert moves == 1
