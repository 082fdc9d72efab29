"""The page "Why this token?" in Chromium: the story read off the screen, and what clicks open."""

import numpy as np

from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.shares import waterfall
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.plots import click, hover, values

MILL, TOWN = 2958, 1647


def test_the_story_is_on_the_screen_and_a_click_opens_a_head(open_page, settled, mini):
    page = open_page("why", against=TOWN)
    grid = values(page, "why_grid", 0, "z")  # blocks x (heads, bias, feed-forward)
    trace = mini.trace(DEFAULT_TEXT)
    table, logits = attribution(trace, mini.model, MILL, TOWN), trace.logits()
    drawn = table.loc[table["block"] == 5, "contribution"].to_numpy()
    assert np.allclose(grid[5], drawn, atol=1e-4)
    whole = float(logits[MILL] - logits[TOWN])
    bars = values(page, "why_waterfall", 0, "x")
    assert abs(bars[:-1].sum() - bars[-1]) < 1e-6 and abs(float(bars[-1]) - whole) < 1e-3
    total = page.get_by_test_id("why_sum")
    assert abs(float(total.get_attribute("data-sum")) - whole) < 1e-3
    assert abs(float(total.get_attribute("data-logit")) - whole) < 1e-3
    together = values(page, "why_sources", 1, "y")  # each token through all heads of block 5
    assert np.allclose(together, source_tokens(trace, mini.model, MILL, TOWN)[5].sum(0), atol=1e-4)
    assert trace.tokens[int(together.argmax())].id == MILL
    assert hover(page, "why_grid", 3, 5).startswith("block 5 · head 3")

    click(page, "why_grid", 3, 4)
    settled(page)
    page.get_by_role("heading", name="What block 4, head 3 read").wait_for()
    assert "block=4" in page.url and "head=3" in page.url
    own = source_tokens(mini.trace(DEFAULT_TEXT), mini.model, MILL, TOWN)[4]
    assert np.allclose(values(page, "why_sources", 0, "z"), own, atol=1e-5)
    chips = page.locator("[data-testid=chip]").evaluate_all("nodes => nodes.map((n) => +n.dataset.share)")
    assert np.allclose(chips, own[3], atol=1e-6)
    steps = waterfall(table)
    at = int(steps["head"].notna().to_numpy().argmax())  # the first bar that is a head
    click(page, "why_waterfall", float(steps["start"][at]) + 0.1, at)
    opened = f"What block {steps['block'][at]}, head {steps['head'][at]} read"
    settled(page)
    page.get_by_role("heading", name=opened).wait_for()
    page.reload()
    settled(page)
    page.get_by_role("heading", name=opened).wait_for()


def test_a_typed_target_and_its_total_effects(open_page, settled, mini):
    page = open_page("why")
    box = page.get_by_role("combobox", name="Token to explain")
    box.fill("parrots")
    box.press("Enter")
    settled(page)
    answer = page.get_by_test_id("stAlert")
    answer.wait_for()
    assert "`" not in answer.inner_text() and "ots" in answer.inner_text()
    assert "target=" not in page.url
    box.fill("·wood")
    box.press("Enter")
    settled(page)
    wood = mini.tokenizer.encode_single_token(b" wood")
    assert f"target={wood}" in page.url and not answer.is_visible()

    page.get_by_text("Mute each part in turn").click()
    settled(page)
    drawn = values(page, "why_muted", 0, "z")
    muted = knock_out(mini, DEFAULT_TEXT, wood)
    of_heads = muted[muted["kind"] == "head"]["effect"].to_numpy().reshape(6, 8)
    assert np.allclose(drawn[:, :8], -of_heads, atol=1e-4)
    assert np.allclose(values(page, "why_both", 0, "y"), -of_heads.ravel(), atol=1e-4)
    assert "mute=on" in page.url and not page.get_by_role("button", name="Stop").count()
