"""Paths, flow and agreement in Chromium: what the browser holds is what the model made."""

import numpy as np

from gptviz.analysis.flow import contribution_graph, token_flow
from gptviz.analysis.paths import paths
from tests.browser.plots import hover, values

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"


def open_box(page, settled, key):
    page.locator(f".st-key-{key} summary").first.click()
    settled(page)


def test_paths_and_what_the_threshold_leaves(open_page, settled, mini):
    page = open_page("why", text=TEXT, against=1647)
    open_box(page, settled, "why_paths_box")
    trace = mini.trace(TEXT)
    token = int(trace.next_tokens(1)["id"].iloc[0])
    found = paths(trace, mini.model, token, 1647)
    drawn = values(page, "why_paths", 0, "customdata")
    assert np.isclose(drawn[:, 0].sum(), found.above(0.005, 32)["logits"].sum(), atol=1e-3)
    curves = page.locator(".st-key-why_paths .shapelayer path")
    assert curves.count() == len(drawn)
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
    page.set_viewport_size({"width": 390, "height": 844})  # the picture scrolls, and the page does not
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".st-key-why_paths")
    assert box.evaluate("e => e.scrollWidth") >= 600 > box.evaluate("e => e.clientWidth")


def test_flow_and_agreement(open_page, settled, mini):
    page = open_page("why", text=TEXT, flow_from=10)
    open_box(page, settled, "why_flow_box")
    trace = mini.trace(TEXT)
    edges = contribution_graph(trace, mini.model, -1, 0.1, renormalize=True).edges
    drawn = values(page, "why_flow", 0, "customdata")
    assert np.allclose(np.sort(drawn[:, 0]), np.sort(edges["contribution"]), atol=1e-4)
    assert np.allclose(values(page, "why_depth", 0, "z"), token_flow(trace, mini.model)[0], atol=1e-4)
    open_box(page, settled, "why_agreement_box")
    ranks, alike = values(page, "why_ranks", 0, "z"), values(page, "why_alike", 0, "z")
    n = len(trace) - 1
    assert ranks.shape == (5, n) and np.allclose(ranks.sum(axis=1), n * (n + 1) / 2)
    assert np.allclose(np.diag(alike), 1) and np.allclose(alike, alike.T)
    assert np.isclose(alike[0, 4], np.corrcoef(ranks[0], ranks[4])[0, 1], atol=1e-6)
