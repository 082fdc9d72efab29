"""The frame of every page in a real browser: address, chips, session, downloads."""

import os
import pty
import subprocess
import sys

import pytest

from gptviz.ui.components.theme_watch import PARTS, charts_file, streamlit_file
from gptviz.ui.shell.navigation import PAGES, SECTIONS
from gptviz.ui.shell.state import DEFAULT_TEXT, UNSAID_TEXT
from tests.browser.conftest import (
    ROOT,
    address,
    details,
    model_line,
    press,
    settled,
    stop_server,
    type_prompt,
    went,
)

FIVE = "one two three one two"


def chips(page):
    return page.get_by_test_id("chip")


def selected(page):
    return int(page.locator("[data-testid=chip][aria-pressed=true]").get_attribute("data-position"))


def prompt(page):
    return page.get_by_role("textbox", name="Prompt").input_value()


def title(page):
    return page.get_by_role("heading", level=1).inner_text()


# how the guess stood in each frame until what draws charts was evaluated
UNTIL_READY = """() => new Promise((ready) => {
  const stood = [];
  const beats = [...document.querySelectorAll('*')]
    .flatMap((node) => [...(node.shadowRoot?.querySelectorAll('[data-testid=beats]') ?? [])])[0];
  const look = () => {
    if ('Plotly' in window) return ready(stood);
    stood.push(beats.dataset.how);
    requestAnimationFrame(look);
  };
  look();
})"""


def test_what_draws_charts_is_made_ready_once_the_first_page_rests(open_page):
    page = open_page(cold=True)
    page.emulate_media(reduced_motion="no-preference")
    page.reload()
    page.locator("[data-testid=beats][data-how=playing]").wait_for()
    stood = page.evaluate(UNTIL_READY)
    assert stood[0] == "playing" and stood[-1] == "rest"
    # what Plotly measures texts in: it has drawn, and nothing of that is left
    page.locator("#js-plotly-tester").wait_for(state="attached")
    page.wait_for_function("() => document.fonts.check(\"italic 1em 'Source Sans'\")")
    page.wait_for_function("() => !document.querySelector('.gptviz-unseen, .js-plotly-plot')")
    files = page.evaluate("() => performance.getEntriesByType('resource').map(({ name }) => name)")
    fetched = {name.rpartition("/")[2] for name in files}
    assert {charts_file(), *map(streamlit_file, PARTS)} <= fetched
    settled(page)
    names = [name.partition(".")[0] for name in fetched]
    assert {"matrix", "candidates", "heads", "chart"} <= {*names}
    press(page.get_by_test_id("stSidebarUserContent").get_by_role("link", name="Feed-forward"))
    assert page.locator(".js-plotly-plot").count() > 0
    later = page.evaluate("() => performance.getEntriesByType('resource').map(({ name }) => name)")
    turned = [name for name in later[len(files) :] if name.endswith(".js")]
    assert not turned  # the page asked for no code that was not there


def test_what_is_typed_is_what_stands_in_chips_and_address(open_page, mini):
    page = open_page(text=FIVE, token=4)
    type_prompt(page, "one two")  # a shorter text moves the selected token
    assert selected(page) == chips(page).count() - 1 == int(address(page)["token"])
    type_prompt(page, "a cat")
    went(page, "back")
    assert prompt(page) == address(page)["text"] == "one two"
    went(page, "forward")
    assert prompt(page) == "a cat"
    assert chips(page).nth(1).get_attribute("title").startswith("“·cat” (position 1), token id ")

    type_prompt(page, "A cat, 你好 🙂")
    ids = [int(chip.get_attribute("data-id")) for chip in chips(page).all()]
    assert ids == mini.encode("A cat, 你好 🙂") and address(page)["text"] == "A cat, 你好 🙂"
    type_prompt(page, "<img src=x onerror=alert(1)> <b>bold</b> **x** $y$")
    assert (
        page.locator("img[src=x]").count() == 0
        and "<img" in prompt(page)
        and chips(page).count() > 0
    )


def test_a_selected_token_follows_everywhere(open_page):
    page = open_page(text=FIVE)
    assert selected(page) == chips(page).count() - 1
    for position in (1, 2):
        press(chips(page).nth(position))
    went(page, "again")
    assert selected(page) == 2 and prompt(page) == FIVE
    press(page.get_by_test_id("stSidebarUserContent").get_by_role("link", name="Tokens"))
    assert title(page) == PAGES["tokens"].question and selected(page) == 2 and prompt(page) == FIVE
    assert address(page) == {"text": FIVE, "token": "2", "model": "mini"}
    went(page, "back")
    assert title(page) == PAGES["overview"].question and selected(page) == 2
    went(page, "back")
    assert selected(page) == 1 and prompt(page) == FIVE


def test_an_empty_address_opens_what_has_something_to_say_and_comes_back(open_page):
    """An address that says something goes on to mean mini, and its text; one that says nothing does not."""
    page = open_page("next_token")
    assert prompt(page) == DEFAULT_TEXT and address(page) == {}
    assert model_line(page).inner_text().startswith("mini-world")
    assert "·calf" in page.get_by_test_id("candidate").first.inner_text()
    press(chips(page).nth(2))
    chosen = {"text": DEFAULT_TEXT, "model": "mini-world", "token": "2"}
    assert address(page) == chosen
    went(page, "again")
    assert prompt(page) == DEFAULT_TEXT and selected(page) == 2
    went(page, "back")
    assert address(page) == {} and prompt(page) == DEFAULT_TEXT
    assert selected(page) == chips(page).count() - 1
    went(page, "forward")
    assert address(page) == chosen and selected(page) == 2
    old = open_page("next_token", token=5)
    assert prompt(old) == UNSAID_TEXT and model_line(old).inner_text().startswith("mini ·")


def headings(page):
    """Whether each folded heading of the sidebar is open."""
    every = "[data-testid=stSidebar] details"
    return page.locator(every).evaluate_all("(all) => all.map((one) => one.open)")


def unfold(page, heading):
    page.get_by_test_id("stSidebar").get_by_text(heading, exact=True).click()


def test_the_list_of_pages_fits_marks_the_open_one_and_stays_where_it_was(open_page):
    page = open_page("overview", viewport=(1280, 800), text=FIVE)
    links = page.get_by_test_id("stSidebarUserContent").get_by_role("link")
    marked = page.locator(".st-key-gv_here_pages")
    doors = next(iter(SECTIONS.values()))
    assert links.count() == len(doors) == 8 and headings(page) == [False] * 3
    assert marked.inner_text().split()[-1] == "Guess"
    for number, heading in enumerate((*SECTIONS,)[1:]):
        unfold(page, heading)
        assert headings(page) == [True] * (number + 1) + [False] * (2 - number)
    # by the keyboard as well: from a heading to its first page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText").split("\n")[-1] == "Why this token?"
    box = links.last.bounding_box()
    assert links.count() == sum(map(len, SECTIONS.values())) and box["y"] + box["height"] <= 800
    page.set_viewport_size({"width": 1280, "height": 400})
    scrolled = "document.querySelector('[data-testid=stSidebarContent]').scrollTop"
    page.evaluate(f"{scrolled} = 150")
    # a page that is never short keeps its place: what is turned to begins at its top all the same
    page.add_style_tag(content="[data-testid=stMainBlockContainer] { min-height: 2000px; }")
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 300")
    press(links.filter(has_text="Logit lens"))
    assert title(page) == PAGES["logit_lens"].question
    assert marked.inner_text().split("\n")[-1] == "Logit lens"
    assert headings(page) == [True] * 3  # what a person has opened stays open
    assert page.evaluate(scrolled) == 150
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0
    press(page.locator(".st-key-gv_next a"))
    assert title(page) == PAGES[PAGES["logit_lens"].next].question and prompt(page) == FIVE


def test_a_projector_has_large_type_a_fitted_picture_and_the_way_on(open_page):
    page = open_page("overview", viewport=(1280, 800), present="on")
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20.8px"
    assert not page.get_by_test_id("stSidebar").is_visible()
    assert page.get_by_role("textbox", name="Prompt").count() == 0
    stage = page.locator("[data-testid=machine] .stage")
    stage.wait_for()  # a component's JavaScript may come after the run
    box = stage.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 1280 and box["y"] + box["height"] <= 810
    press(page.locator(".st-key-gv_present a").last)
    assert title(page) == PAGES["tokens"].question and address(page)["present"] == "on"
    page.get_by_role("button", name="Text").click()
    page.get_by_role("textbox", name="Prompt").fill("Another text")
    page.keyboard.press("Enter")
    settled(page)
    assert address(page)["text"] == "Another text"


@pytest.mark.parametrize(
    ("name", "picture"),
    [
        ("attention", ".plot .cells"),
        ("layernorm", "[data-testid=spread] svg"),
        ("next_token", "[data-testid=candidates] .rows"),
        ("residual_stream", ".st-key-stream_path svg[data-drawn]"),
        ("knock_out", ".st-key-knock_out_map .js-plotly-plot"),  # below it: what can be set
    ],
)
def test_on_a_projector_the_picture_stands_in_the_first_screen(open_page, name, picture):
    """Also with a change of the model, which has a bar above it, and a sentence more."""
    page = open_page(name, viewport=(1280, 800), present="on", edits="z.4.3=zero")
    found = page.locator(picture).first
    found.wait_for()
    box = found.bounding_box()
    assert box["height"] > 300 and box["y"] + box["height"] <= 800


def test_on_a_phone_the_list_of_pages_shuts_and_what_can_be_set_stands_below_the_picture(open_page):
    page = open_page("tokens", viewport=(390, 844), text=FIVE)
    page.get_by_test_id("stExpandSidebarButton").click()
    press(page.get_by_test_id("stSidebar").get_by_role("link", name="Next token"))
    page.get_by_test_id("stExpandSidebarButton").wait_for()
    for width, below in ((390, True), (1280, False)):
        page.set_viewport_size({"width": width, "height": 844})
        picture = page.get_by_test_id("candidates").bounding_box()
        controls = page.locator(".st-key-set_next").bounding_box()
        assert (controls["y"] > picture["y"]) == below


def test_details_has_a_tab_for_each_by_keyboard_too_and_keeps_the_one_in_front(open_page):
    page = open_page("why", text=FIVE, token=2)
    box = details(page, "Table: every part")
    tabs = box.get_by_role("tab")
    front = box.locator("[role=tab][aria-selected=true]")
    labels = tabs.all_inner_texts()
    kinds = [label.partition(":")[0] for label in labels]
    assert kinds == ["Table", "Table", "Map", "Code", "Code", "Claim"]
    box.get_by_test_id("stDataFrame").wait_for()
    page.keyboard.press("ArrowRight")
    settled(page)
    assert front.inner_text() == labels[1]
    details(page, "Code")
    program = box.get_by_test_id("stCode").filter(has_text="picture = ")
    assert program.count() == 1 and not box.get_by_test_id("stDataFrame").count()
    press(chips(page).nth(3))
    assert front.inner_text() == "Code" and "3" in program.inner_text()
    details(page, "Claim").get_by_role("button", name="Claim this").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_hint_below_the_box_lies_on_nothing(open_page, width):
    page = open_page("next_token", text="Привет", viewport=(width, 800))  # no token: a sentence
    page.get_by_role("textbox", name="Prompt").focus()
    hint = page.get_by_test_id("prompt-hint").bounding_box()
    said = page.get_by_text("mini has read 262 English books").bounding_box()
    assert said["y"] - (hint["y"] + hint["height"]) >= 4


def test_what_is_typed_and_not_run_is_kept_and_a_turned_page_runs_it(open_page):
    page = open_page(text=FIVE)
    box = page.get_by_role("textbox", name="Prompt")
    draft = page.get_by_test_id("prompt-hint")
    box.fill("half typ")
    chips(page).nth(1).click()
    for _ in ("a click", "a reload"):
        settled(page)
        box.wait_for()
        assert prompt(page) == "half typ" and draft.get_attribute("data-draft") == ""
        assert address(page) == {"text": FIVE, "token": "1"}
        page.reload()
    settled(page)
    unfold(page, "With the book, by chapter")
    links = page.get_by_test_id("stSidebarUserContent")
    for door in (PAGES["tokens"], PAGES["loss"]):
        typed = f"typed for {door.title}"
        box.fill(typed)
        press(links.get_by_role("link", name=door.title, exact=True))
        assert title(page) == door.question
        assert prompt(page) == address(page)["text"] == typed
        assert draft.get_attribute("data-draft") is None
    box.fill("never run")
    page.get_by_test_id("stSidebarUserContent").get_by_role(
        "link", name="Anatomy"
    ).click()  # it reads no text
    settled(page)
    went(page, "back")  # where this was typed over
    assert prompt(page) == "never run" and address(page)["text"] == "typed for Loss"
    for _ in range(2):
        went(page, "back")  # the address wins
    assert prompt(page) == address(page)["text"] == "typed for Tokens"


def test_enter_runs_and_only_that(open_page):
    page = open_page("tokens", text="one")
    box = page.get_by_role("textbox", name="Prompt")
    box.press("End")
    page.keyboard.insert_text(" two\nthree")  # as a paste does
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("rc")  # to Streamlit, outside of a box, "run again" and "clear the cache"
    # Enter that ends a composition, as browsers say it and as Safari does
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    settled(page)
    assert prompt(page) == "one two\nthree\nrc" and address(page)["text"] == "one"
    page.keyboard.press("Enter")
    settled(page)
    assert address(page)["text"] == prompt(page) == "one two\nthree\nrc"
    page.keyboard.type("!")  # the keyboard is still there
    press(page.get_by_role("button", name="Run", exact=True))
    assert address(page)["text"] == "one two\nthree\nrc!"
    for _ in range(12):
        box.press("Control+z")  # what has been run can still be undone
    assert prompt(page) == "one"


def test_where_a_finger_types_enter_is_a_line_break(open_page):
    page = open_page("tokens", viewport=(390, 844), touch=True, text="one")
    box = page.get_by_role("textbox", name="Prompt")
    box.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    settled(page)
    assert prompt(page) == "one\ntwo" and address(page)["text"] == "one"
    page.keyboard.press("Control+Enter")  # a keyboard that was plugged in
    settled(page)
    assert address(page)["text"] == "one\ntwo"


HIDDEN = "(box) => box.scrollHeight - box.clientHeight"  # pixels of its text that a box cuts off


def test_the_prompts_box_is_as_high_as_its_text(open_page):
    page = open_page("tokens", viewport=(390, 844), touch=True, text=UNSAID_TEXT)
    box = page.get_by_role("textbox", name="Prompt")
    heights = [box.bounding_box()["height"]]
    assert box.evaluate(HIDDEN) == 0  # three lines, the last of which is the word before the blank
    for text in ("one", "The little birds sang beside the red mill. " * 4):
        box.fill(text)
        heights.append(box.bounding_box()["height"])
        assert box.evaluate(HIDDEN) == 0
    assert heights[1] < heights[0] < heights[2]
    page.set_viewport_size({"width": 1280, "height": 844})
    page.wait_for_function(
        "([box, high]) => box.clientHeight < high", arg=[box.element_handle(), heights[2] / 2]
    )
    assert box.evaluate(HIDDEN) == 0
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        "([box, high]) => box.clientHeight > high", arg=[box.element_handle(), heights[0]]
    )
    assert box.evaluate(HIDDEN) == 0
    box.fill("a line\n" * 200)
    assert box.bounding_box()["height"] <= 844 / 2  # a long text scrolls


def test_nobody_is_asked_for_an_e_mail_address(tmp_path):
    """As a person starts it: a terminal, a new home, no flag; it must come up without a key pressed."""
    leader, follower = pty.openpty()
    options = ("--server.port", "0", "--server.address", "127.0.0.1")
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path), "BROWSER": "true", "DISPLAY": ":99"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    said = b""
    try:
        while b"URL" not in said:
            said += os.read(leader, 4096)
            assert b"mail" not in said, said.decode()
    finally:
        stop_server(process)
        os.close(leader)
