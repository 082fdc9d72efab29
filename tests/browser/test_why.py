"""The page "Why this token?" in Chromium: the story read off the screen, and what clicks open."""

import numpy as np

from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.flow import contribution_graph, token_flow
from gptviz.analysis.paths import paths
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.plots import click, hover, values

MILL, TOWN = 2958, 1647


def test_the_story_is_on_the_screen_and_a_click_opens_a_head(open_page, settled, mini):
    page = open_page("why", against=TOWN)
    grid = values(page, "why_grid", 0, "z")  # blocks x (heads, bias, feed-forward)
    trace = mini.trace(DEFAULT_TEXT)
    table, logits = attribution(trace, mini.model, MILL, TOWN), trace.logits(-1)
    drawn = table.loc[table["block"] == 5, "contribution"].to_numpy()
    assert np.allclose(grid[5], drawn, atol=1e-4)
    whole = float(logits[MILL] - logits[TOWN])
    bars = values(page, "why_waterfall", 0, "x")
    assert abs(bars[:-1].sum() - bars[-1]) < 1e-6 and abs(float(bars[-1]) - whole) < 1e-3
    total = page.get_by_test_id("why_sum")
    assert abs(float(total.get_attribute("data-sum")) - whole) < 1e-3
    assert abs(float(total.get_attribute("data-logit")) - whole) < 1e-3
    together = values(page, "why_together", 0, "y")  # each token through all heads of block 5
    assert np.allclose(together, source_tokens(trace, mini.model, MILL, TOWN)[5].sum(0), atol=1e-4)
    assert trace.tokens[int(together.argmax())].id == MILL
    assert hover(page, "why_grid", 3, 5).startswith("block 5 · head 3")

    click(page, "why_grid", 3, 4)
    settled(page)
    page.get_by_role("heading", name="What block 4, head 3 read").wait_for()
    assert "block=4" in page.url and "head=3" in page.url
    own = source_tokens(trace, mini.model, MILL, TOWN)[4]
    assert np.allclose(values(page, "why_sources", 0, "z"), own, atol=1e-5)
    chips = page.locator("[data-testid=chip]").evaluate_all("nodes => nodes.map((n) => +n.dataset.share)")
    assert np.allclose(chips, own[3], atol=1e-6)
    click(page, "why_sources", 2, 6)  # a row is a head, whichever token's cell
    settled(page)
    page.get_by_role("heading", name="What block 4, head 6 read").wait_for()
    heads = table[table["part"] == "head"]
    largest = heads.loc[heads["contribution"].idxmax()]
    at = int(np.abs(bars[:-1] - largest["contribution"]).argmin())
    click(page, "why_waterfall", float(values(page, "why_waterfall", 0, "base")[at]) + 0.1, at)
    opened = f"What block {largest['block']}, head {largest['head']} read"
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


def test_paths_what_the_threshold_leaves_and_flow(open_page, settled, mini):
    page, trace = open_page("why", target=MILL, against=TOWN, flow_from=10), mini.trace(DEFAULT_TEXT)
    for key in ("why_flow_box", "why_paths_box"):
        page.locator(f".st-key-{key} summary").first.click()
        settled(page)
    found = paths(mini, trace, MILL, TOWN)
    drawn = values(page, "why_paths", 0, "customdata")
    assert np.isclose(drawn[:, 0].sum(), found.above(0.005, 32)["logits"].sum(), atol=1e-3)
    assert page.locator(".st-key-why_paths .shapelayer path").count() == len(drawn)
    x, y = values(page, "why_paths", 0, "x"), values(page, "why_paths", 0, "y")
    widest = len(x) - 1  # the last that is drawn lies on top
    assert "logits" in hover(page, "why_paths", float(x[widest]), float(y[widest]))
    slider = page.get_by_role("slider", name="Draw edges from")
    slider.focus()
    for _ in range(9):  # from 0.5 % to 5 %
        slider.press("ArrowRight")
    settled(page)
    page.wait_for_url("**paths_from=5*")
    page.wait_for_function(
        "n => document.querySelectorAll('.st-key-why_paths .shapelayer path').length < n", arg=len(drawn)
    )
    fewer = values(page, "why_paths", 0, "customdata")
    assert np.isclose(fewer[:, 0].sum(), found.above(0.05)["logits"].sum(), atol=1e-3)
    edges = contribution_graph(mini, trace, -1, 0.1, renormalize=True).edges
    graph = values(page, "why_flow", 0, "customdata")
    assert np.allclose(np.sort(graph[:, 0]), np.sort(edges["contribution"]), atol=1e-4)
    depths = np.flip(values(page, "why_depth", 0, "z"), 0)
    assert np.allclose(depths, token_flow(mini, trace)[0], atol=1e-4)
    page.set_viewport_size({"width": 390, "height": 844})  # the picture scrolls, and the page does not
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".st-key-why_paths")
    assert box.evaluate("e => e.scrollWidth") >= 600 > box.evaluate("e => e.clientWidth")
