"""The tour in real clicks: every question answered, every picture framed, the head switched off."""

import re

import pytest

from gptviz.teach.guides import files, find
from tests.browser.conftest import address, press, settled, turned_to, went

FRAMED = """() => {
  const shadows = [...document.querySelectorAll('*')].map((node) => node.shadowRoot).filter(Boolean);
  const framed = [document, ...shadows].map((root) => root.querySelector('.gv-looked-at')).find(Boolean);
  const box = framed?.getBoundingClientRect();
  return box && box.height > 20 && box.top < innerHeight && box.bottom > 0;
}"""


def test_the_tour(open_page):
    page = open_page()
    page.get_by_role("link", name="The tour, 5 minutes").click()
    bar = page.locator(".st-key-gv_guide")

    def guess():
        settled(page)
        page.get_by_role("button", name="That is my guess").click()
        told()

    def told():
        settled(page)
        bar.get_by_text("You said").wait_for()
        page.wait_for_function(FRAMED)
        box = bar.bounding_box()
        assert 0 <= box["y"] < 80  # in sight, however far the page has scrolled

    def go_on():
        press(bar.get_by_text("Next step"))

    settled(page)
    page.wait_for_url("**/next_token?**")
    assert page.get_by_test_id("candidate").count() == 0
    assert page.get_by_test_id("cover").count() >= 2 and page.get_by_test_id("chip").count() == 10
    page.get_by_role("textbox", name="Which word").fill("hot")
    guess()
    assert page.get_by_test_id("candidate").first.get_attribute("data-rank") == "1"
    go_on()
    page.get_by_role("spinbutton", name="Into how many").fill("3")
    guess()
    go_on()
    page.locator("[data-testid=stRadio] label").nth(2).click()
    guess()
    go_on()
    bar.get_by_test_id("head-4-3").click()
    told()
    assert address(page)["block"] == "4" and address(page)["head"] == "3"
    go_on()
    page.get_by_role("slider", name="Head 3 of block 4").press("ArrowLeft")
    settled(page)
    guess()
    bar.get_by_text("0.043 %").first.wait_for()
    go_on()
    press(page.get_by_role("button", name="Switch off").first)
    assert address(page)["edits"] == "z.4.3=zero"
    go_on()
    for step in range(1, 4):
        press(page.get_by_role("button", name="One step"))
        page.wait_for_function(f"() => location.search.includes('written={step}_')")
    bar.get_by_text("The model remembers nothing but the text").wait_for()
    go_on()
    assert address(page)["step"] == "8" and "edits" not in address(page)
    bar.get_by_text("You answered 5 of 5 questions and skipped 0").wait_for()
    went(page, "back")
    assert address(page)["step"] == "7"
    went(page, "forward")
    press(bar.get_by_role("button", name="Done"))
    assert bar.count() == 0 and "guide" not in address(page)


def test_what_the_browser_knows_already_is_covered_and_comes_back(open_page):
    """Streamlit sends what a browser was sent before by its name only; the name would tell the answer."""
    page = open_page("next_token")
    assert page.get_by_test_id("candidate").count() == 10
    press(page.get_by_role("link", name="Guess", exact=True))
    press(page.get_by_role("link", name="The tour, 5 minutes"))
    page.wait_for_url("**/next_token?**guide=tour**")
    assert page.get_by_test_id("candidate").count() == 0
    assert page.get_by_test_id("cover").count() >= 2
    page.get_by_role("textbox", name="Which word").fill("hot")
    press(page.get_by_role("button", name="That is my guess"))
    assert page.get_by_test_id("candidate").count() == 10
    assert page.get_by_test_id("cover").count() == 0


def first_looks():
    """Of every picture of a page that lessons look at the first step that does; tests/pages opens all steps.
    The workshop's steps are those of the lessons; the games are a class's."""
    looks = {}
    for name in (name for name in files() if name not in ("workshop", "games")):
        for number, step in enumerate(find(name).steps, 1):
            looks.setdefault((step.page, step.look), (name, number))
    return list(looks.values())


@pytest.mark.parametrize("name", dict(first_looks()))
def test_a_lesson_frames_what_it_asks_its_reader_to_look_at(open_page, name):
    """Once a question is answered: each kind of it by the tour, or here; what is said then: tests/pages."""
    page = open_page()
    bar = page.locator(".st-key-gv_guide")
    for number in (number for one, number in first_looks() if one == name):
        step = find(name).steps[number - 1]
        turned_to(page, f"/{step.page}?guide={name}&step={number}")
        bar.get_by_text(step.heading, exact=True).wait_for()
        if step.ask is not None:
            token = step.ask.kind == "token"
            press(
                bar.get_by_test_id("chip").first
                if token
                else bar.get_by_role("button", name="Show me")
            )
            bar.get_by_text(re.compile("(This model|The answer):")).wait_for()
            assert bar.get_by_text("You said").count() == token
        if step.look:
            page.wait_for_function(FRAMED)


def test_what_is_framed_stays_in_sight_until_the_reader_acts(open_page):
    page = open_page("generate", guide="workshop", step=9)
    press(page.get_by_role("button", name="Show me"))
    seen = """() => {
      const { top, bottom } = document.querySelector('.st-key-generate_settings').getBoundingClientRect();
      const bar = document.querySelector('.st-key-gv_guide').getBoundingClientRect().bottom;
      return top > bar && bottom <= innerHeight;
    }"""
    page.wait_for_function(seen)
    grown = (
        "(px) => document.querySelector('.st-key-gv_bar').style.setProperty('margin-bottom', px)"
    )
    page.evaluate(grown, "900px")  # as when something above it is drawn late
    page.wait_for_function(seen)
    page.mouse.wheel(0, -3000)
    page.wait_for_function(f"() => !({seen})()")
    page.evaluate(grown, "600px")
    settled(page)
    assert not page.evaluate(seen)  # who has scrolled away is not pulled back


def test_the_bar_covers_no_sentence(open_page):
    page = open_page("attention", guide="tour", step=4)
    bar = page.locator(".st-key-gv_guide")
    page.mouse.move(700, 500)
    page.mouse.wheel(0, 700)
    # an open question stands in the flow: it is scrolled away as the page is
    page.wait_for_function(
        "() => document.querySelector('.st-key-gv_guide').getBoundingClientRect().top < -100"
    )
    page.mouse.wheel(0, -2000)
    press(bar.get_by_role("button", name="Show me"))
    bar.get_by_text("This model:").wait_for()
    page.wait_for_function(FRAMED)
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollTop > 50")
    settled(page)
    edge = bar.bounding_box()["y"] + bar.bounding_box()["height"]
    said = page.get_by_text("on average over rows").bounding_box()
    assert said["y"] >= edge  # what was framed came into sight, and the sentence above it stayed
    cut = """(edge) => [...document.querySelectorAll('.st-key-gv_chips, .st-key-prompt')].filter((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return top < edge && bottom > edge + 8;
    }).length"""
    assert page.evaluate(cut, edge) == 0


def test_lessons_are_listed_and_a_teachers_own_file_is_opened(open_page, tmp_path):
    step = '```step\npage: loss\nplace: {text: "one two three"}\n```'
    (tmp_path / "mine.md").write_text(
        f"---\ntitle: Mine\n---\n## One\n\nRead **this**.\n\n{step}\n"
    )
    (tmp_path / "wrong.md").write_text(
        (tmp_path / "mine.md").read_text().replace("loss", "nowhere")
    )
    page = open_page()
    press(page.get_by_role("button", name="Lessons"))
    last = page.get_by_role("link", name="Lesson 9")
    assert last.evaluate(
        "link => [...link.children].every(part => part.scrollWidth <= part.clientWidth)"
    )
    files = page.locator(".st-key-guide_file input[type=file]")
    files.set_input_files(tmp_path / "wrong.md")
    page.get_by_text("This file is not a guide. Line 4: there is no page 'nowhere'").wait_for()
    settled(page)
    files.set_input_files(tmp_path / "mine.md")
    page.wait_for_url("**/loss?**")
    settled(page)
    assert page.locator(".st-key-gv_guide strong").last.inner_text() == "this"
    heading, caption = (page.locator(".st-key-guide_way p").nth(n).bounding_box() for n in (0, 1))
    assert abs(heading["y"] - caption["y"]) < 4
    assert address(page)["text"] == "one two three" and address(page)["guide"] == "own"
