"""The Next token page in a real browser: bars as long as their numbers, and every way to go on and back."""

import numpy as np
import pytest

from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.conftest import address, press, settled, went
from tests.browser.test_shell import prompt

TEXT = "The cat sat on the mat. The dog sat on the"

# how much of its track each of a row's bars takes, beside what the row carries
ROWS = """rows => rows.map((row) => {
  const share = (part) => row.querySelector(part)?.getBoundingClientRect().width
    / row.querySelector('.bar').getBoundingClientRect().width;
  return { ...row.dataset, fill: share('.fill'), outline: share('.ghost') };
})"""


def candidates(page):
    # after a reload the component comes a moment later
    page.get_by_test_id("candidate").first.wait_for()
    return page.get_by_test_id("candidate").evaluate_all(ROWS)


def test_bars_are_as_long_as_their_numbers_and_stand_in_the_outline_of_the_unchanged_ones(
    open_page, mini
):
    edits = "z.4.3=zero"  # without it, the first has 0.952; with it, 0.183
    page = open_page("next_token", edits=edits)
    page.get_by_test_id("candidate").first.wait_for()
    page.wait_for_function("() => !document.getAnimations().length")  # bars grow for a moment
    rows = candidates(page)
    was, now = (lm.trace(DEFAULT_TEXT).logits(-1).softmax(0) for lm in (mini, mini.edited(edits)))
    for p, carried, drawn in ((now, "probability", "fill"), (was, "ghost", "outline")):
        expected = p[[int(row["id"]) for row in rows]]
        assert np.allclose([float(row[carried]) for row in rows], expected, atol=1e-5)
        assert np.allclose([row[drawn] for row in rows], expected, atol=0.02)
    first = page.get_by_test_id("candidate").first
    for part, carried in ((".before", "ghost"), (".p", "probability")):
        assert float(first.locator(part).inner_text()) == pytest.approx(
            float(rows[0][carried]), abs=5e-4
        )
    projected = open_page("next_token", viewport=(1280, 800), edits=edits, present="on")
    row, last = (
        projected.get_by_test_id(name).first.bounding_box() for name in ("candidate", "append")
    )
    assert last["x"] + last["width"] <= row["x"] + row["width"]


def test_a_token_is_appended_at_the_selected_place_and_the_choices_go_along(open_page, mini):
    page = open_page("next_token", text=TEXT, token=6, temperature=0.7, top_k=8)
    said = address(page)
    best = int(candidates(page)[0]["id"])
    press(page.get_by_test_id("append").first)  # the text is cut there
    assert prompt(page) == mini.decode([*mini.encode(TEXT)[:7], best])
    went(page, "back")
    page.get_by_role(
        "button", name="Write 20 tokens"
    ).click()  # another page, with the same choices
    page.wait_for_url("**/generate?**")
    page.get_by_test_id("written-token").nth(19).wait_for()
    settled(page)
    assert page.get_by_role("slider", name="Temperature").get_attribute("aria-valuetext") == "0.70"
    assert page.get_by_role("spinbutton", name="Top-k").input_value() == "8"
    assert address(page).items() >= said.items()


def test_what_is_sampled_is_there_after_a_reload_and_can_be_taken_back(open_page):
    page = open_page("next_token", text=TEXT)
    texts = [TEXT]
    page.get_by_role("slider", name="Temperature").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**temperature=0.8*")
    settled(page)
    seed = page.get_by_role("spinbutton", name="Seed")
    for expected in ("1", "2"):
        page.get_by_role("button", name="Draw one token").click()
        page.wait_for_url(f"**seed={expected}*")
        settled(page)
        texts.append(prompt(page))
        assert seed.input_value() == expected
        assert texts[-1].startswith(texts[-2]) and texts[-1] != texts[-2]
    chances = [row["probability"] for row in candidates(page)]
    went(page, "again")
    assert [row["probability"] for row in candidates(page)] == chances
    for expected in ("2", "1", ""):
        assert (seed.input_value(), prompt(page)) == (expected, texts[int(expected or 0)])
        went(page, "back")
