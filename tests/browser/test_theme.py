"""The browser's light and dark changes while a page is open: what was drawn follows."""

import pytest

from gptviz.figures.theme import palette

PLOT = {
    "attention": "attention_products",
    "embeddings": "embedding_sum",
    "layernorm": "layernorm_grids",
    "next_token": "next_curve",
    "anatomy": "anatomy_model",
}
PAPER = """([key, paper]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  return plot?._fullLayout?.paper_bgcolor === paper;
}"""

# of the components that draw anything
DRAWN = "(roots) => roots.filter((root) => root.offsetHeight > 0).map((root) => root.dataset.mode)"


@pytest.mark.parametrize("name", PLOT)
def test_pictures_follow_the_theme(open_page, settled, name):
    page = open_page(name, text="The cat sat on the mat")
    for mode in ("dark", "light"):
        page.emulate_media(color_scheme=mode)
        page.wait_for_function(PAPER, arg=[PLOT[name], palette(mode).paper])
        settled(page)
        assert set(page.locator(".gv[data-mode]").evaluate_all(DRAWN)) == {mode}


@pytest.mark.parametrize("name", ["", "tokens"])
def test_what_draws_itself_follows_too(open_page, name):
    page = open_page(name, text="The cat sat on the mat")
    for mode in ("dark", "light"):
        page.emulate_media(color_scheme=mode)
        page.locator(f".gv[data-mode={mode}] [data-testid=chips]").first.wait_for()
