"""A class in real browsers: a teacher with two screens, two pupils, one of them with a phone."""

import re

from tests.browser.conftest import press, settled, went


def test_a_class_answers_together(open_page):
    teacher = open_page("class")
    teacher.get_by_role("button", name="Begin a class").click()
    code = teacher.get_by_test_id("code").inner_text()
    link = teacher.get_by_role("link", name=re.compile("class.code=")).inner_text()
    assert link.endswith(f"/class?code={code.replace('-', '')}")
    assert teacher.get_by_alt_text(f"QR code of {link}").is_visible()

    by_link = open_page(f"class{link[link.index('?') :]}", viewport=(390, 844), color_scheme="dark")
    by_link.get_by_role("button", name="Join").click()
    by_code = open_page("class")
    by_code.get_by_role("textbox", name="Code").fill(code.lower())
    by_code.get_by_role("button", name="Join").click()
    pupils = (by_link, by_code)
    for pupil in pupils:
        pupil.get_by_text("Your teacher begins in a moment").wait_for()
    teacher.get_by_text("2 pupils have joined").wait_for()
    teacher.get_by_role("button", name="Begin with step 1").click()
    for pupil, word in zip(pupils, ("mill", "umbrella"), strict=True):
        pupil.wait_for_url("**/next_token?**")
        settled(pupil)
        assert pupil.get_by_test_id("candidate").count() == 0
        pupil.get_by_role("textbox", name="Which word").fill(word)
        pupil.get_by_role("button", name="That is my guess").click()
        pupil.get_by_text(f"You said {word}").wait_for()
    assert by_link.evaluate("document.documentElement.scrollWidth") <= 390

    teacher.get_by_text("2 of 2 pupils have answered").wait_for()
    by_link.reload()
    by_link.get_by_text("You said mill").wait_for()
    teacher.get_by_text("Truth told").click()  # what is shown when: tests/pages/test_class.py
    for pupil in pupils:
        pupil.get_by_test_id("candidate").first.wait_for()
    settled(teacher)
    teacher.get_by_role("link", name="Next step").click()
    for pupil in pupils:
        pupil.wait_for_url("**/tokens?**")

    settled(teacher)
    teacher.locator(".st-key-gv_guide").get_by_role("link", name="Class").click()
    teacher.wait_for_url("**/class?**")
    teacher.get_by_role("button", name="Your own link").click()
    own = teacher.locator("code").inner_text()
    secret = own[own.index("#teach=") + 7 :]
    assert secret not in teacher.url and all(secret not in pupil.content() for pupil in pupils)
    desk = open_page(f"class{own[own.index('#') :]}")
    desk.get_by_test_id("code").wait_for()
    desk.get_by_role("button", name="End the class").click()
    desk.get_by_role("button", name="End it now").click()
    for pupil in pupils:
        pupil.get_by_text("The class has ended").wait_for()


def test_neither_another_tab_nor_a_dead_link_takes_a_place_in_a_class(open_page):
    tab = open_page("class")
    press(tab.get_by_role("button", name="Begin a class"))
    other = tab.context.new_page()
    other.goto(tab.url)
    settled(other).get_by_test_id("code").wait_for()
    press(tab.get_by_role("button", name="End the class"))
    press(tab.get_by_role("button", name="End it now"))
    other.get_by_text("The class has ended").wait_for()
    press(tab.get_by_role("button", name="Begin a class"))
    code = tab.get_by_test_id("code").inner_text()
    press(other.get_by_role("link", name="Tokens", exact=True).first)
    went(other, "back").get_by_role("button", name="Begin a class").wait_for()
    assert went(tab, "again").get_by_test_id("code").inner_text() == code
    link = f"{tab.url.partition('?')[0]}#teach=abc"
    tab.goto("about:blank")
    tab.goto(link)
    tab.get_by_text("of this link has ended").wait_for()
    assert went(tab, "again").get_by_test_id("code").inner_text() == code
