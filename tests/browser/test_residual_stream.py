"""The Residual stream page in Chromium: drawn values, clicks and the link."""

import numpy as np
import pytest

from tests.browser.plots import click, hover, values

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def test_the_drawn_ladder_and_maps_are_the_pass_and_clicks_choose(open_page, settled, trace):
    page = open_page("residual_stream", text=TEXT, token=3)
    writes = [trace["mlp_out", b][3].norm().item() for b in range(6)]
    assert np.allclose(values(page, "stream_ladder", 2, "y"), writes, rtol=1e-4)
    sizes = [trace["resid_post", b].norm(dim=1).numpy() for b in range(6)]
    assert np.allclose(10 ** values(page, "stream_maps", 0, "z")[2::2], sizes, rtol=1e-3)
    assert values(page, "stream_shares", 0, "y").sum() == pytest.approx(100, abs=1e-3)

    click(page, "stream_ladder", 3.2, writes[1] / 2)  # the feed-forward of block 1
    settled(page)
    page.get_by_role("heading", name="The two shortcuts of block 1").wait_for()
    assert "block=1" in page.url

    sentence = hover(page, "stream_maps", 2, 9, "xaxis2", "yaxis2")
    ratio = (trace["attn_out", 4][2].norm() / trace["resid_pre", 4][2].norm()).item()
    assert sentence.startswith("block 4 · attention at") and f"{ratio:.3g}"[:4] in sentence
    click(page, "stream_maps", 2, 9, "xaxis2", "yaxis2")
    settled(page)
    page.get_by_role("heading", name="The two shortcuts of block 4").wait_for()
    assert "block=4" in page.url and "token=2" in page.url
    page.reload()
    settled(page)
    page.get_by_role("heading", name="The two shortcuts of block 4").wait_for()
