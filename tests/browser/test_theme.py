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


@pytest.mark.parametrize("name", PLOT)
def test_pictures_follow_the_theme(open_page, settled, name):
    page = open_page(name, text="The cat sat on the mat")
    for mode in ("dark", "light"):
        page.emulate_media(color_scheme=mode)
        page.wait_for_function(PAPER, arg=[PLOT[name], palette(mode).paper])
        settled(page)
        assert mode in page.get_by_test_id("chips").get_attribute("class").split()


@pytest.mark.parametrize("name", ["", "tokens"])
def test_what_draws_itself_follows_too(open_page, name):
    page = open_page(name, text="The cat sat on the mat")
    for mode in ("dark", "light"):
        page.emulate_media(color_scheme=mode)
        page.locator(f"[data-testid=chips].{mode}").first.wait_for()
