"""The Next token page in a real browser: what its bars say against `lm.trace`, and every way to go on."""

import numpy as np
import pytest

from tests.browser.conftest import address, press

TEXT = "The cat sat on the mat. The dog sat on the"


def bars(page):
    """What the rows carry: id, rank, logit, probability, filter."""
    read = "rows => rows.map(r => ({...r.dataset}))"
    return page.get_by_test_id("candidate").evaluate_all(read)


def prompt_of(page):
    return page.get_by_role("textbox", name="Prompt").input_value()


def check(page, mini, text, position=-1, **options):
    page.get_by_test_id("candidate").first.wait_for()  # after a reload the component comes a moment later
    rows = bars(page)
    table = mini.trace(text, keep=[]).next_tokens(10, position, **options)
    top = [row for row in rows if int(row["rank"]) <= 10]
    assert [int(row["id"]) for row in top] == table["id"].tolist()
    assert np.allclose([float(row["logit"]) for row in top], table["logit"], atol=1e-5)
    assert np.allclose([float(row["probability"]) for row in top], table["probability"], atol=1e-6)
    rest = float(page.get_by_test_id("rest").get_attribute("data-probability"))
    assert sum(float(row["probability"]) for row in rows) + rest == pytest.approx(1)


def test_a_link_opens_what_its_sender_saw(open_page, settled, mini):
    options = {"temperature": 0.7, "top_k": 8, "top_p": 0.9}
    page = open_page("next_token", text=TEXT, token=6, **options)
    check(page, mini, TEXT, 6, **options)
    assert [row["filter"] for row in bars(page)].count("kept") < 8
    # the widths of the bars are the probabilities, from 0 to 1
    page.wait_for_function("() => !document.getAnimations().length")  # bars grow for a moment
    first = page.get_by_test_id("candidate").first
    share = first.locator(".fill").bounding_box()["width"] / first.locator(".bar").bounding_box()["width"]
    assert share == pytest.approx(float(bars(page)[0]["probability"]), abs=0.02)
    said, best = address(page), int(bars(page)[0]["id"])
    press(page.get_by_test_id("append").first)  # the text is cut there
    assert prompt_of(page) == mini.decode([*mini.encode(TEXT)[:7], best])
    page.go_back()
    settled(page)
    page.get_by_role("button", name="Write on").click()  # another page, with the same choices
    page.wait_for_url("**/generate?**")
    page.get_by_test_id("written-token").nth(19).wait_for()
    settled(page)
    assert page.get_by_role("slider", name="Temperature").get_attribute("aria-valuetext") == "0.70"
    assert page.get_by_role("spinbutton", name="Top-k").input_value() == "8"
    assert address(page).items() >= said.items()


def test_a_slider_append_and_sample_change_bars_prompt_and_address(open_page, settled, mini):
    page = open_page("next_token", text=TEXT)
    check(page, mini, TEXT)
    page.get_by_role("slider", name="Temperature").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => location.search.includes('temperature=0.8')")
    settled(page)
    check(page, mini, TEXT, temperature=0.8)
    third = bars(page)[2]
    press(page.get_by_test_id("append").nth(2))
    texts = [mini.decode([*mini.encode(TEXT), int(third["id"])])]
    assert prompt_of(page) == texts[0] == address(page)["text"]
    check(page, mini, texts[0], temperature=0.8)
    seed = page.get_by_role("spinbutton", name="Seed")
    for expected in ("1", "2"):
        page.get_by_role("button", name="Sample one").click()
        page.wait_for_function(f"() => location.search.includes('seed={expected}')")
        settled(page)
        assert seed.input_value() == expected
        texts.append(prompt_of(page))
        assert texts[-1].startswith(texts[-2]) and texts[-1] != texts[-2]
    page.reload()
    settled(page)
    check(page, mini, texts[2], temperature=0.8)
    assert (seed.input_value(), prompt_of(page)) == ("2", texts[2])
    for expected in ("1", ""):
        page.go_back()
        settled(page)
        assert (seed.input_value(), prompt_of(page)) == (expected, texts[int(expected or 0)])


def test_a_changed_bar_stands_in_the_outline_of_the_unchanged_one(open_page, mini):
    text = "The little birds sang beside the red mill. The little birds sang beside the red"
    page = open_page("next_token", text=text, edits="z.4.3=zero")
    page.get_by_test_id("candidate").first.wait_for()
    page.wait_for_function("() => !document.getAnimations().length")
    first, row = page.get_by_test_id("candidate").first, bars(page)[0]
    assert [f"{float(row[name]):.3f}" for name in ("ghost", "probability")] == ["0.952", "0.183"]
    whole = first.locator(".bar").bounding_box()["width"]
    for part, name in ((".ghost", "ghost"), (".fill", "probability")):
        share = first.locator(part).bounding_box()["width"] / whole
        assert share == pytest.approx(float(row[name]), abs=0.02)
    assert first.locator(".before").inner_text() == "0.952" and first.locator(".p").inner_text() == "0.183"
