"""The Next token page in a real browser: bars as long as their numbers, and every way to go on and back."""

import numpy as np
import pytest

from gptviz.engine.sampling import Sampling, distribution
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.browser.conftest import address, new_page, press, settled, went
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
    was, now = (lm.trace(UNSAID_TEXT).logits(-1).softmax(0) for lm in (mini, mini.edited(edits)))
    for p, carried, drawn in ((now, "probability", "fill"), (was, "ghost", "outline")):
        expected = p[[int(row["id"]) for row in rows]]
        assert np.allclose([float(row[carried]) for row in rows], expected, atol=1e-5)
        assert np.allclose([row[drawn] for row in rows], expected, atol=0.02)
    first = page.get_by_test_id("candidate").first
    for part, carried in ((".before", "ghost"), (".p", "probability")):
        assert float(first.locator(part).inner_text()) == pytest.approx(
            float(rows[0][carried]), abs=5e-4
        )
    for query in ({"edits": edits}, {}, {"temperature": 0.7, "top_k": 20}):
        projected = open_page("next_token", viewport=(1280, 800), present="on", **query)
        row, last = (
            projected.get_by_test_id(name).first.bounding_box() for name in ("candidate", "append")
        )
        assert last["x"] + last["width"] <= row["x"] + row["width"]
        bar = projected.get_by_test_id("candidate").first.locator(".bar").bounding_box()
        assert bar["width"] >= 0.4 * row["width"]


# what stands in each row, in words and as a number, without the columns that only a run of the page brings
SEEN = """() => {
  const of = (row, part) => row.querySelector(part)?.innerText;
  const [host] = [...document.querySelectorAll('*')].filter((one) => one.shadowRoot?.querySelector('.candidates'));
  return [...host.shadowRoot.querySelectorAll('.row')].map((row) => ({
    token: of(row, '.token'), p: of(row, '.p'), before: of(row, '.before'), out: row.classList.contains('out'),
    probability: Number(row.dataset.probability), ghost: row.dataset.ghost && Number(row.dataset.ghost) }));
}"""


def drag(page, name, steps):
    """Take a slider's handle and move it by so many of its steps, without letting go."""
    slider = page.get_by_role("slider", name=name)
    track = page.get_by_role("group", name=name).bounding_box()
    box = slider.locator("xpath=../..").bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    least, most, step = (float(slider.get_attribute(each)) for each in ("min", "max", "step"))
    room = track["width"] - box["width"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + steps * step / (most - least) * room, y, steps=4)


@pytest.mark.parametrize("edits", ["", "z.4.3=zero"])
def test_while_a_slider_is_held_the_bars_show_what_the_page_shows_when_it_is_let_go(
    open_page, mini, edits
):
    page = open_page("next_token", text=TEXT, edits=edits, top_k=300)
    held = page.locator("[data-testid=candidates][data-held]")
    start = candidates(page)
    for name, steps, param in (("Temperature", 11, "temperature"), ("Top-p", -95, "top_p")):
        before = page.url
        drag(page, name, steps)
        held.wait_for()
        value = page.get_by_role("slider", name=name).get_attribute("aria-valuetext")
        seen = page.evaluate(SEEN)
        said = page.get_by_test_id("sentence").inner_text()
        assert page.url == before  # the server has heard nothing
        assert f"{name.lower()} {value}" in said
        page.mouse.up()
        page.wait_for_url(f"**{param}=*")
        held.wait_for(state="detached")
        settled(page)
        drawn = page.evaluate(SEEN)
        assert float(address(page)[param]) == float(value)
        nats = float(page.get_by_test_id("entropy").get_attribute("data-nats"))
        assert f"entropy {nats / np.log(2):.2f} bits" in said
        for one, other in zip(seen, drawn, strict=True):
            for part in ("probability", "ghost"):
                numbers = [each.pop(part, None) or 0 for each in (one, other)]
                assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
            assert one == other
    assert float(drawn[0]["p"]) > float(start[0]["probability"]) + 0.1
    assert any(row["out"] for row in drawn)
    # a number between two steps is not a slider that was moved
    between = open_page("next_token", text=TEXT, temperature=0.333)
    expected = distribution(mini.trace(TEXT).logits(-1), Sampling(0.333)).probabilities.max()
    assert float(candidates(between)[0]["probability"]) == pytest.approx(float(expected), rel=1e-4)
    assert not between.locator("[data-testid=candidates][data-held]").count()


def test_bars_follow_a_slider_that_came_after_them(browser, server):
    page, watch = new_page(browser, viewport={"width": 1280, "height": 800})
    late = []
    page.route("**/Slider.*.js", lambda route: late.append(route))
    page.goto(f"{server}/next_token")
    page.get_by_test_id("candidate").first.wait_for()
    slider = page.get_by_role("slider", name="Temperature")
    assert late and not slider.count()
    late[0].continue_()
    slider.press("ArrowRight")
    page.locator("[data-testid=candidates][data-held]").wait_for()
    page.context.close()
    assert not watch.faults


# each slide of a bar, slowed down so that it is still there when the test looks
SLIDES = """() => {
  const animate = Element.prototype.animate;
  window.slides = [];
  Element.prototype.animate = function (frames, options) {
    const one = animate.call(this, frames, options), bar = this.closest('[data-bar]');
    if (bar) {
      const [from, to] = frames.map(({ width }) => parseFloat(width) / 100);
      window.slides.push({ token: bar.dataset.bar, part: this.className, from, to, lasts: options.duration });
      one.playbackRate = 0.001;
    }
    return one;
  };
}"""
MOVING = "(bars) => bars.getAnimations({ subtree: true }).length"


def test_after_a_change_of_the_model_bars_slide_from_the_old_value_to_the_new(open_page, mini):
    edits = "z.4.3=zero"
    page = open_page("next_token", edits=edits)
    page.evaluate(SLIDES)
    bars = page.get_by_test_id("candidates")
    switch = page.get_by_test_id("changes-switch")
    was, now = (lm.trace(UNSAID_TEXT).logits(-1).softmax(0) for lm in (mini, mini.edited(edits)))
    press(switch)  # who wants less motion sees none
    press(switch)
    assert page.evaluate("window.slides") == []
    page.emulate_media(reduced_motion="no-preference")
    for start, end in ((now, was), (was, now)):
        page.evaluate("window.slides = []")
        press(switch)
        slides = [one for one in page.evaluate("window.slides") if one["token"] != "rest"]
        assert len(slides) > 3 and bars.evaluate(MOVING) > 3
        for one in slides:
            token = int(one["token"])
            assert one["from"] == pytest.approx(float(start[token]), abs=1e-5)
            assert one["to"] == pytest.approx(float(end[token]), abs=1e-5)
            assert one["lasts"] <= 600
        if end is now:  # the old outline stays
            outline = candidates(page)[0]["outline"]
            assert outline == pytest.approx(float(was.max()), abs=0.02)
        page.mouse.click(5, 790)
        assert bars.evaluate(MOVING) == 0


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
