"""The tour in real clicks: every question answered, every picture framed, the head switched off."""

import pytest

from gptviz.guides import files, find
from tests.browser.conftest import address, press
from tests.guides.truth import truth

FRAMED = """() => {
  const shadows = [...document.querySelectorAll('*')].map((node) => node.shadowRoot).filter(Boolean);
  const framed = [document, ...shadows].map((root) => root.querySelector('.gv-looked-at')).find(Boolean);
  const box = framed?.getBoundingClientRect();
  return box && box.height > 20 && box.top < innerHeight && box.bottom > 0;
}"""


def test_the_tour(open_page, settled):
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
    assert page.get_by_test_id("candidate").count() == 0 and page.get_by_test_id("chip").count() == 0
    page.get_by_role("textbox", name="Which word").fill("mill")
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
    bar.get_by_text("18 %").first.wait_for()
    go_on()
    press(page.get_by_role("button", name="Switch off").first)
    assert address(page)["edits"] == "z.4.3=zero"
    go_on()
    for step in range(1, 4):
        press(page.get_by_role("button", name="One step"))
        page.wait_for_function(f"() => location.search.includes('written={step}_')")
    bar.get_by_text("It does not plan the sentence").wait_for()
    go_on()
    assert address(page)["step"] == "8" and "edits" not in address(page)
    bar.get_by_text("You answered 5 of 5 questions, and skipped 0").wait_for()
    page.go_back()
    settled(page)
    assert address(page)["step"] == "7"
    page.go_forward()
    settled(page)
    press(bar.get_by_role("button", name="Done"))
    assert bar.count() == 0 and "guide" not in address(page)


def guess(page, bar, step, expected, rightly):
    """Answer a step's question as a person does."""
    if step.ask.kind == "head":
        block, head = expected.truth if rightly else (0, 0)
        bar.get_by_test_id(f"head-{block}-{head}").click()
    elif step.ask.kind == "token":
        place = expected.truth if rightly else 0
        bar.locator(f"[data-testid=chip][data-position='{place}']").click()
    else:
        if step.ask.kind == "choice":
            options = bar.locator("[role=radiogroup] label")
            texts = [text.strip() for text in options.all_inner_texts()]
            chosen = texts.index(plain(expected.shown))
            options.nth(chosen if rightly else chosen - 1).click()
        elif step.ask.kind == "word":
            bar.get_by_role("textbox").fill(plain(expected.shown).strip("·") if rightly else "umbrella")
        elif step.ask.between is not None:
            bar.get_by_role("slider").press("Home")
        else:
            bar.get_by_role("spinbutton").fill(f"{expected.truth:.6g}" if rightly else "-7")
        bar.get_by_role("button", name="That is my guess").click()


def plain(markdown):
    return markdown.replace("`", "")


def first_looks():
    """Of every picture of a page that lessons look at the first step that does; tests/pages opens all steps.
    The workshop's steps are those of the lessons; the games are a class's."""
    looks = {}
    for name in (name for name in files() if name not in ("workshop", "games")):
        for number, step in enumerate(find(name).steps, 1):
            looks.setdefault((step.page, step.look), (name, number))
    return list(looks.values())


@pytest.mark.parametrize("name", dict(first_looks()))
def test_a_lesson_answered_rightly_wrongly_and_not_at_all(open_page, settled, mini, name):
    page = open_page()
    bar, top = page.locator(".st-key-gv_guide"), page.url.partition("?")[0]
    for number in (number for one, number in first_looks() if one == name):
        step = find(name).steps[number - 1]
        page.goto(f"{top}{step.page}?guide={name}&step={number}")
        settled(page)
        bar.get_by_text(step.heading, exact=True).wait_for()
        if step.ask is not None:
            way = ("rightly", "wrongly", "skipped")[number % 3]
            if way == "skipped":
                bar.get_by_role("button", name="Show me").click()
            else:
                guess(page, bar, step, truth(mini, step, dict(step.place)), way == "rightly")
            settled(page)
            bar.get_by_text("This model:").wait_for()
            known = step.ask.between is None
            assert bar.get_by_text("You said").count() == (way != "skipped")
            if way == "rightly" and known:
                assert bar.get_by_role("img", name="check").count()
        if step.look:
            page.wait_for_function(FRAMED)


def test_what_is_framed_stays_in_sight_until_the_reader_acts(open_page, settled):
    page = open_page("generate", guide="workshop", step=9)
    press(page.get_by_role("button", name="Show me"))
    seen = """() => {
      const { top, bottom } = document.querySelector('.st-key-generate_settings').getBoundingClientRect();
      const bar = document.querySelector('.st-key-gv_guide').getBoundingClientRect().bottom;
      return top > bar && bottom <= innerHeight;
    }"""
    page.wait_for_function(seen)
    grown = "(px) => document.querySelector('.st-key-gv_bar').style.setProperty('margin-bottom', px)"
    page.evaluate(grown, "900px")  # as when something above it is drawn late
    page.wait_for_function(seen)
    page.mouse.wheel(0, -3000)
    page.wait_for_function(f"() => !({seen})()")
    page.evaluate(grown, "600px")
    settled(page)
    assert not page.evaluate(seen)  # who has scrolled away is not pulled back


def test_lessons_are_listed_and_a_teachers_own_file_is_opened(open_page, settled, tmp_path):
    step = '```step\npage: loss\nplace: {text: "one two three"}\n```'
    (tmp_path / "mine.md").write_text(f"---\ntitle: Mine\n---\n## One\n\nRead **this**.\n\n{step}\n")
    (tmp_path / "wrong.md").write_text("no guide")
    page = open_page()
    press(page.get_by_role("button", name="Lessons"))
    page.get_by_role("link", name="Lesson 8").wait_for()
    files = page.locator(".st-key-guide_file input[type=file]")
    files.set_input_files(tmp_path / "wrong.md")
    page.get_by_text("This file is no guide. line 1").wait_for()
    settled(page)
    files.set_input_files(tmp_path / "mine.md")
    page.wait_for_url("**/loss?**")
    settled(page)
    assert page.locator(".st-key-gv_guide strong").last.inner_text() == "this"
    assert address(page)["text"] == "one two three" and address(page)["guide"] == "own"
