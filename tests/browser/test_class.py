"""A class in real browsers: a teacher with two screens, two pupils, one of them with a phone."""

import re

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import more_models, press, settled, went


def overheard(page):
    """The page's line to its server, in a list; what it asks for by itself; runs of its script that begin."""
    lines = []
    asked = []
    heard = []

    def line(browser):
        server = browser.connect_to_server()
        lines.append(server)
        browser.on_message(lambda said: (server.send(said), by_itself(said) and asked.append(said)))
        server.on_message(lambda said: (browser.send(said), is_whole(said) and heard.append(said)))

    def by_itself(said):
        return isinstance(said, bytes) and BackMsg.FromString(said).rerun_script.is_auto_rerun

    def is_whole(said):
        message = ForwardMsg.FromString(said)
        return message.HasField("new_session") and not message.metadata.run.fragment_ids

    page.route_web_socket(re.compile("/_stcore/stream"), line)
    return lines, asked, heard


def one_more(page, heard, before):
    for _ in range(1200):
        if len(heard) > before:
            return
        page.wait_for_timeout(50)
    raise AssertionError("nothing was heard in a minute")


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
        pupil.get_by_text("When your teacher starts").wait_for()
    teacher.get_by_text("2 students have joined").wait_for()
    teacher.get_by_role("button", name="Begin with step 1").click()
    for pupil, word in zip(pupils, ("hot", "umbrella"), strict=True):
        pupil.wait_for_url("**/next_token?**")
        settled(pupil)
        assert pupil.get_by_test_id("candidate").count() == 0
        pupil.get_by_role("textbox", name="Which word").fill(word)
        pupil.get_by_role("button", name="That is my guess").click()
        pupil.get_by_text(f"Sent: {word}").wait_for()
    assert by_link.evaluate("document.documentElement.scrollWidth") <= 390

    teacher.get_by_text("Answered: 2 of 2 students").wait_for()
    lines, asked, runs = overheard(by_link)
    by_link.reload()
    by_link.get_by_text("Sent: hot").wait_for()
    # what is shown when: tests/pages/test_class.py
    teacher.get_by_role("button", name="Reveal the answer").click()
    for pupil in pupils:
        pupil.get_by_test_id("candidate").first.wait_for()
    truth = settled(by_link).get_by_text("This model:").bounding_box()
    assert 0 < truth["y"] < 844  # a phone is not scrolled past it
    one_more(by_link, asked, 0)
    slow = asked[-1]
    settled(teacher)
    teacher.get_by_role("link", name="Next step").click()
    for pupil in pupils:
        pupil.wait_for_url("**/tokens?**")
    settled(by_link)
    before = len(runs)
    # a slow browser looks for news of the page from which it was just led away
    lines[-1].send(slow)
    one_more(by_link, runs, before)
    settled(by_link).get_by_role("button", name="That is my guess").wait_for()

    settled(teacher)
    teacher.locator(".st-key-gv_guide").get_by_role("link", name="Class").click()
    teacher.wait_for_url("**/class?**")
    teacher.get_by_role("button", name="Your secret link").click()
    own = teacher.locator("code").inner_text()
    secret = own[own.index("#teach=") + 7 :]
    assert secret not in teacher.url and all(secret not in pupil.content() for pupil in pupils)
    desk = open_page(f"class{own[own.index('#') :]}")
    desk.get_by_test_id("code").wait_for()
    desk.get_by_role("button", name="End the class").click()
    desk.get_by_role("button", name="End it now").click()
    for pupil in pupils:
        pupil.get_by_text("it has ended").wait_for()


def test_a_strangers_link_asks_and_the_own_class_is_kept(open_page):
    stranger = open_page("class")
    mine = open_page("class")
    for page in (stranger, mine):
        press(page.get_by_role("button", name="Begin a class"))
    theirs, own = (page.get_by_test_id("code").inner_text() for page in (stranger, mine))
    press(stranger.get_by_role("button", name="Your secret link"))
    link = stranger.locator("code").inner_text()
    address = f"{mine.url.partition('?')[0]}{link[link.index('#') :]}"

    def opened():
        mine.goto("about:blank")
        mine.goto(address)
        mine.get_by_text(f"the teacher of the class {theirs}").wait_for()

    opened()
    press(mine.get_by_role("button", name="Stay here"))
    assert went(mine, "again").get_by_test_id("code").inner_text() == own
    opened()
    press(mine.get_by_role("button", name="Steer that class"))
    assert went(mine, "again").get_by_test_id("code").inner_text() == theirs
    press(mine.get_by_role("button", name=f"Go to the class {own}"))
    assert went(mine, "again").get_by_test_id("code").inner_text() == own


def test_neither_another_tab_nor_a_dead_link_takes_a_place_in_a_class(open_page, tmp_path):
    tab = open_page("class")
    (tmp_path / "mine.md").write_text(
        "---\ntitle: Mine\n---\n## One\n\nRead.\n\n```step\npage: loss\n```\n"
    )
    tab.locator(".st-key-class_file input[type=file]").set_input_files(tmp_path / "mine.md")
    tab.get_by_test_id("stFileChip").wait_for()
    settled(more_models(tab).page)  # which lets go of models that were sent
    tab.keyboard.press("Escape")
    tab.get_by_role("dialog").wait_for(state="detached")
    press(tab.get_by_role("button", name="Begin a class"))
    tab.get_by_text("1. One").wait_for()
    other = tab.context.new_page()
    other.goto(tab.url)
    settled(other).get_by_test_id("code").wait_for()
    press(tab.get_by_role("button", name="End the class"))
    press(tab.get_by_role("button", name="End it now"))
    other.get_by_text("it has ended").wait_for()
    press(tab.get_by_role("button", name="Begin a class"))
    code = tab.get_by_test_id("code").inner_text()
    press(other.get_by_role("link", name="Tokens", exact=True).first)
    went(other, "back").get_by_role("button", name="Begin a class").wait_for()
    assert went(tab, "again").get_by_test_id("code").inner_text() == code
    link = f"{tab.url.partition('?')[0]}#teach=abc"
    tab.goto("about:blank")
    tab.goto(link)
    tab.get_by_text("This link leads to no class").wait_for()
    assert went(tab, "again").get_by_test_id("code").inner_text() == code
