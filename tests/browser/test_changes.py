"""The laboratory in a real browser: a head is switched off, and every page is of the changed model."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.sessions import Visitor
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.conftest import address, press, settled, went


def effect(page):
    """The numbers of the strip, once it is there."""
    found = page.get_by_test_id("change-effect")
    found.wait_for()
    return {name: found.get_attribute(f"data-{name}") for name in ("token", "before", "now", "kl")}


def test_three_clicks_and_the_previous_token_head_is_off_everywhere(open_page):
    page = open_page(model="mini")
    page.get_by_test_id("stPageLink-NavLink").filter(has_text="Attention").first.click()
    settled(page).get_by_test_id("head-4-3").click()
    press(settled(page).get_by_role("button", name="Switch off"))
    seen = effect(page)
    assert seen["token"] == "·mill" and address(page)["edits"] == "z.4.3=zero"
    assert (float(seen["before"]), float(seen["now"])) == pytest.approx((0.952, 0.183), abs=5e-4)
    head = page.get_by_test_id("head-4-3")
    assert head.get_attribute("data-changed") == "true" and head.locator(".hatched").count() == 1
    assert float(page.get_by_test_id("head-5-0").get_attribute("data-moved")) > 0.1

    # in sight while the page scrolls, and its switch can be clicked there
    page.get_by_text("Details", exact=True).scroll_into_view_if_needed()
    box = page.get_by_test_id("changes").bounding_box()
    assert 0 <= box["y"] < 80
    press(page.get_by_test_id("changes-switch"))
    assert page.get_by_test_id("changes").get_attribute("data-off") == "true"
    went(page, "back")
    assert effect(page) == seen
    went(page, "back")  # before the head was off
    page.get_by_test_id("changes").wait_for(state="detached")
    went(page, "forward")
    went(page, "again")
    assert effect(page) == seen

    press(page.get_by_test_id("stPageLink-NavLink").filter(has_text="Next token").first)
    assert effect(page) == seen and address(page)["edits"] == "z.4.3=zero"
    press(page.get_by_test_id("stPageLink-NavLink").filter(has_text="Guess").first)
    page.get_by_text("unchanged", exact=True).wait_for()  # what the outlines of its bars are
    press(page.get_by_test_id("change-remove"))
    page.get_by_test_id("changes").wait_for(state="detached")
    assert not settled(page).get_by_text("unchanged", exact=True).count()


def test_an_induction_head_and_all_of_its_kind_are_two_clicks_away(open_page):
    """What that does to the numbers: tests/pages/test_heads.py."""
    page = open_page(model="mini")
    page.get_by_text("Which part did it?").first.click()  # the heading that it stands under
    page.get_by_test_id("stPageLink-NavLink").filter(has_text="What each head does").first.click()
    together = settled(page).locator(".st-key-change_heads_here").get_by_role("button")
    press(together)
    assert address(page)["edits"] == "z.5.0+3+4+5+7=zero" and effect(page)["token"] == "·mill"
    box = page.get_by_test_id("change-effect").bounding_box()
    assert box["y"] + box["height"] <= 800 and together.bounding_box()["y"] <= 760


def test_the_strip_leaves_the_picture_in_the_first_screen(open_page):
    page = open_page("attention", block=4, head=3, edits="z.4.3=zero")
    assert page.get_by_test_id("changes").bounding_box()["height"] <= 44
    picture = page.locator("[data-testid=matrix-head]").bounding_box()
    assert picture["y"] + 0.65 * picture["height"] <= 800
    page.get_by_text("Change …").click()
    press(settled(page).get_by_role("button", name="Look only at the first token"))
    assert address(page)["edits"] == "z.4.3=zero,attn.4.3=first"
    wrong = ("what is this", "attn.x=zero", "z.9.9=zero", "z.1.2=" + "y" * 300)
    phone = open_page(
        "attention", viewport=(390, 844), edits=",".join(("z.4.3=zero", *wrong)), present="on"
    )
    notes = phone.get_by_test_id("change-note")
    notes.first.wait_for()
    assert notes.count() == len(wrong) + 1  # and how one is written, once
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(phone.url.replace("present=on", ""))
    notes = settled(page).get_by_test_id("change-note")
    notes.first.wait_for()
    assert notes.count() == len(wrong) + 1
    cut = "note => { const all = note.parentElement; return all.scrollHeight - all.clientHeight }"
    assert notes.first.evaluate(cut) <= 1 and all(
        len(text) < 700 for text in notes.all_inner_texts()
    )
    strip = page.get_by_test_id("changes").bounding_box()
    # each can be undone: none is off the strip
    for undo in page.get_by_test_id("change-remove").all():
        box = undo.bounding_box()
        assert box["x"] + box["width"] <= strip["x"] + strip["width"]


class Changed(Visitor):
    """A visitor with changes of their own, and the strip that they were sent."""

    strip: dict | None = None

    def _heard(self, message):
        if (
            message.WhichOneof("type") == "delta"
            and message.delta.WhichOneof("type") == "new_element"
        ):
            element = message.delta.new_element
            if element.WhichOneof("type") == "bidi_component":
                found = element.bidi_component
                self.strip = json.loads(found.json) if found.id.endswith("-changes") else self.strip
        return super()._heard(message)


def test_thirty_visitors_of_one_model_each_have_their_own_changes(server, mini):
    edits = [f"z.{i % 6}.{i // 6}=zero,attn.{5 - i % 6}.{i % 8}=first" for i in range(30)]
    visitors = [Changed(server, "tokens", {"edits": edit}) for edit in edits]

    async def all_at_once():
        await asyncio.gather(*(visitor.open() for visitor in visitors))
        await asyncio.gather(*(visitor.leave() for visitor in visitors))

    with ThreadPoolExecutor(1) as other:  # Playwright's loop runs in this thread
        other.submit(asyncio.run, all_at_once()).result()
    assert not [fault for visitor in visitors for fault in visitor.faults]
    seen = [visitor.strip["effect"] for visitor in visitors]
    before = mini.trace(UNSAID_TEXT, keep=[]).logits(-1).softmax(0)
    for edit, effect in zip(edits, seen, strict=True):
        now = mini.trace(UNSAID_TEXT, keep=[], edits=edit.split(",")).logits(-1).softmax(0)
        assert effect["before"] == pytest.approx(float(before.max()), rel=1e-4)
        assert effect["now"] == pytest.approx(float(now[before.argmax()]), rel=1e-3)
    assert len({round(effect["now"], 5) for effect in seen}) > 25
