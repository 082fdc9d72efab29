"""The Generate page in a real browser: it plays by itself, pauses, goes back, branches; a link has it all."""

from tests.browser.conftest import address, press, settled
from tests.browser.test_shell import prompt

TEXT = "The cat sat on the mat. The dog sat on the"


def written(page):
    """The tokens on the screen, as ids."""
    read = "all => all.map(one => Number(one.dataset.id))"
    return page.get_by_test_id("written-token").evaluate_all(read)


def chosen(page):
    return int(page.get_by_test_id("writing").get_attribute("data-chosen"))


def await_tokens(page, count):
    page.get_by_test_id("written-token").nth(count - 1).wait_for()


def test_it_plays_pauses_and_goes_back(open_page, mini):
    page = open_page("generate", text=TEXT, speed="as fast as it can", seed=4, temperature=0.7)
    history = page.evaluate("() => history.length")
    page.get_by_role("button", name="Play", exact=True).click()
    await_tokens(page, 6)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="Play", exact=True).wait_for()
    settled(page)
    ids = written(page)
    assert len(ids) >= 6
    assert ids == [step.id for step in mini.generate(TEXT, len(ids), temperature=0.7, seed=4)]
    assert page.evaluate("() => history.length") == history + 1  # one for all of the playing
    press(page.get_by_role("button", name="Back", exact=True))
    assert chosen(page) == len(ids) - 2 and written(page) == ids
    point = float(page.get_by_test_id("point").get_attribute("data-at"))
    segment = page.locator("[data-testid=segment].drawn")
    assert (
        float(segment.get_attribute("data-start"))
        <= point
        < float(segment.get_attribute("data-stop"))
    )
    drawn = page.get_by_test_id("draw-row").evaluate_all(
        "(rows) => rows.map((row) => [Number(row.dataset.probability),"
        " row.querySelector('.fill').clientWidth / row.querySelector('.track').clientWidth])"
    )
    assert all(abs(width - p) < 0.015 for p, width in drawn) and len(drawn) > 5
    page.reload()
    await_tokens(page, len(ids))
    settled(page)
    assert (written(page), chosen(page)) == (ids, len(ids) - 2)
    page.go_back()  # before the step back
    page.wait_for_function("n => !location.search.includes(`_${n}_`)", arg=len(ids) - 2)
    settled(page)
    assert (written(page), chosen(page)) == (ids, len(ids) - 1)


def rows_in_sight(page):
    """Of the box that the text scrolls in: how many rows of chips are whole in it, and how many are cut."""
    return page.get_by_test_id("writing").evaluate(
        """writing => {
          const frame = writing.querySelector('.page').getBoundingClientRect();
          const rows = {whole: new Set(), cut: new Set()};
          for (const token of writing.querySelectorAll('[data-testid=written-token]')) {
            const {top, bottom} = token.getBoundingClientRect(), middle = (top + bottom) / 2;
            if (middle > frame.top && middle < frame.bottom)
              rows[top >= frame.top - 1 && bottom <= frame.bottom + 1 ? 'whole' : 'cut'].add(Math.round(top));
          }
          return [rows.whole.size, rows.cut.size];
        }"""
    )


def test_a_branch_is_another_way_and_a_link_has_both(open_page, mini):
    """What stands on a branch: tests/pages/test_generate.py."""
    page = open_page("generate", text=TEXT, written="30", seed=4)
    trunk = written(page)
    press(page.get_by_test_id("written-token").nth(2))
    other = page.get_by_test_id("branch").first
    token = int(other.get_attribute("data-id"))
    press(other)
    assert token != trunk[2] and written(page) == [*trunk[:2], token]
    press(page.get_by_role("button", name="One step", exact=True))
    branch = written(page)
    link = address(page)
    assert len(branch) == 4
    press(page.get_by_test_id("branch-row").first)
    assert written(page) == trunk
    guest = open_page("generate", viewport=(420, 800), **link)
    assert written(guest) == branch and guest.get_by_test_id("branch-row").count() == 2
    text = guest.get_by_test_id("writing")
    above = "data-above"
    below = "data-below"
    press(guest.get_by_test_id("branch-row").first)
    assert written(guest) == trunk and chosen(guest) == 29
    assert text.get_attribute(above) == "" and text.get_attribute(below) is None
    assert rows_in_sight(guest) == [4, 0]
    guest.get_by_test_id("writing-above").click()
    guest.locator(f"[data-testid=writing][{below}]").wait_for()
    assert text.get_attribute(above) is None
    press(page.get_by_role("button", name="Use this as the text"))
    assert prompt(page) == mini.decode([*mini.encode(TEXT), *trunk]) and written(page) == []
