"""The page "Patching" in Chromium: a click on a cell changes the whole app, and leaves the map as it was."""

import numpy as np

from gptviz.analysis import patching
from gptviz.analysis.patches import Patch
from tests.browser.plots import click, hover, values

TEXT, OTHER = "The man took off", "The woman took off"


def test_a_click_patches_a_cell_for_the_whole_app(open_page, settled, mini):
    page = open_page("patching", text=TEXT, other=OTHER)
    table = patching(mini, OTHER, TEXT)
    grid = table[table["site"] == "resid_pre"]["effect"].to_numpy().reshape(6, 4)
    assert np.allclose(values(page, "patching_map", 0, "z"), grid, atol=1e-5)
    assert hover(page, "patching_map", 1, 2).startswith("block 2 at `·man | ·woman` (position 1)")

    click(page, "patching_map", 1, 2)
    settled(page)
    made = Patch("resid_pre", 2, position=1).edit(mini.encode(OTHER))
    assert "edits=resid_pre.2%401" in page.url
    effect = page.get_by_test_id("patches_made")
    effect.wait_for(state="attached")
    assert abs(float(effect.get_attribute("data-effect")) - grid[2, 1]) < 1e-4
    assert np.allclose(values(page, "patching_map", 0, "z"), grid, atol=1e-4)
    her = mini.trace(TEXT, edits=[made]).next_tokens(1)
    page.get_by_role("link", name="Next token").click()
    settled(page)
    top = page.get_by_test_id("candidate").first
    top.wait_for()
    assert "edits=" in page.url and top.get_attribute("data-id") == str(her["id"][0])

    page.go_back()
    settled(page)
    click(page, "patching_map", 1, 2)
    settled(page)
    assert "edits=resid_pre" not in page.url
    click(page, "patching_head_map", 4, 3, "xaxis4", "yaxis4")
    settled(page)
    assert "edits=v.3.4" in page.url
