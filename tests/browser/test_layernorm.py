"""The LayerNorm page in Chromium: pictures, clicks and links, against lm.trace(...).norms()."""

import numpy as np
import pytest

from gptviz.tokenizer import show_token
from tests.browser.plots import click, hover, values

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def norms(mini):
    return mini.trace(TEXT).norms()


def grid(norms, column):
    names = norms["norm"].unique()
    return np.stack([norms[norms["norm"] == name][column].to_numpy() for name in names])


def test_the_pictures_are_the_traces_and_clicks_choose_norm_token_and_dimension(
    open_page, settled, mini, norms
):
    page = open_page("layernorm", text=TEXT, token=3)
    before, after = (10 ** values(page, "layernorm_grids", side, "z") for side in (0, 1))
    assert np.allclose(before, grid(norms, "variance"), rtol=1e-4)
    assert np.allclose(after, grid(norms, "variance_after"), rtol=1e-4)
    assert np.allclose(values(page, "layernorm_depth", 0, "y"), grid(norms, "variance")[:, 3], rtol=1e-5)

    sentence = hover(page, "layernorm_grids", 1, 7, "xaxis2", "yaxis2")
    token = show_token(mini.trace(TEXT, keep=[]).tokens[1].raw)
    assert sentence.startswith(f"block 3 · norm2 at `{token}` (position 1):")
    click(page, "layernorm_grids", 1, 7, "xaxis2", "yaxis2")
    settled(page)
    assert "token=1" in page.url and "ln_norm=" in page.url
    assert page.locator("[data-testid=chip][data-position='1']").get_attribute("aria-pressed") == "true"
    page.reload()
    settled(page)
    scale = mini.model.trf_blocks[3].norm2.scale.detach().numpy()
    assert np.allclose(values(page, "layernorm_weights", 0, "y"), scale)
    click(page, "layernorm_weights", 40, float(scale[40]) / 2)
    settled(page)
    page.get_by_text("Dimension 40, step by step").wait_for()
    assert "ln_dim=40" in page.url

    page.get_by_role("radio", name="mean").click()
    settled(page)
    page.locator(".st-key-layernorm_depth .ytitle").get_by_text("mean").wait_for()
    before, after = (values(page, "layernorm_grids", side, "z") for side in (0, 1))
    assert np.allclose(before, grid(norms, "mean"), atol=1e-6)
    assert np.allclose(after, grid(norms, "mean_after"), atol=1e-6)
    assert "ln_quantity=mean" in page.url
