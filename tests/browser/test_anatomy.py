"""The Anatomy page in Chromium: a link, the form, the sum that moves, and a picture that stays to scale."""

from urllib.parse import parse_qs, urlsplit

import numpy as np

from gptviz.analysis.anatomy import anatomy
from gptviz.engine.config import GPTConfig
from gptviz.figures.anatomy_layout import lay_out
from gptviz.model import GPT_CONFIG_124M
from tests.browser.plots import hover, values

BOOK = {f"cfg_{name}": GPT_CONFIG_124M[name] for name in ("vocab_size", "context_length", "emb_dim")} | {
    "cfg_n_heads": 12,
    "cfg_n_layers": 12,
    "cfg_tie_embeddings": "off",
}
CONFIG = GPTConfig.from_dict(GPT_CONFIG_124M)

# how wide and how high, on the screen, the bar of a curve is
DRAWN = """([key, curve]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const paths = plot.querySelectorAll('.barlayer .trace')[curve].querySelectorAll('.point path');
  return Array.from(paths, (path) => { const box = path.getBBox(); return [box.width, box.height]; });
}"""


def headline(page, expected: int):
    """Wait for the sum."""
    page.get_by_role("heading", name=f"{expected:,} parameters", exact=True).wait_for()


def type_number(page, settled, name: str, value: int):
    field = page.get_by_role("spinbutton", name=name)
    field.fill(str(value))
    field.press("Enter")
    settled(page)


def address(page) -> dict[str, str]:
    return {key: value[0] for key, value in parse_qs(urlsplit(page.url).query).items()}


def test_a_link_to_the_books_model_shows_its_sum_to_scale_and_every_tensor(open_page, settled):
    page = open_page("anatomy", **BOOK)
    headline(page, 163_009_536)
    last = page.get_by_test_id("anatomy-sum").locator("tr.total")
    assert "39,383,808 + 85,026,816 + 1,536 + 38,597,376" in last.inner_text()
    assert "163,009,536" in last.inner_text()
    is_to_scale(page)
    for name, sentence in (
        (
            "trf_blocks.3.att.W_query.weight",
            "trf_blocks.3.att.W_query.weight is 768 × 768:589,824 parameters, 0.36 % of the model",
        ),
        ("tok_emb.weight", "tok_emb.weight is 50,257 × 768:38,597,376 parameters, 23.7 % of the model"),
    ):
        box = next(b for b in lay_out(anatomy(CONFIG)).boxes if b.tensors[0].name == name)
        said = hover(page, "anatomy_model", box.x + box.width * 0.6, box.y + box.height / 2)
        assert said == sentence
    page.get_by_text("tie_embeddings", exact=True).click()
    settled(page)
    headline(page, 124_412_160)
    page.get_by_text("tie_embeddings", exact=True).click()
    settled(page)
    page.get_by_text("qkv_bias", exact=True).click()
    settled(page)
    headline(page, 163_037_184)
    assert address(page)["cfg_qkv_bias"] == "on"
    page.reload()
    settled(page)
    headline(page, 163_037_184)


def test_the_form_the_back_button_and_the_way_back_to_the_model(open_page, settled, mini):
    own = sum(p.numel() for p in mini.model.parameters())
    page = open_page("anatomy")
    headline(page, own)
    type_number(page, settled, "n_layers", 7)
    headline(page, own + 788_992)  # a block more
    page.get_by_test_id("anatomy-sum").get_by_text("+788,992").first.wait_for()
    page.get_by_role("radio", name="XL").click()
    settled(page)
    headline(page, 1_557_611_200)
    page.go_back()
    settled(page)
    headline(page, own + 788_992)
    assert page.get_by_role("spinbutton", name="n_layers").input_value() == "7"
    page.get_by_role("button", name="Back to mini").click()
    settled(page)
    headline(page, own)

    # an impossible config keeps what was typed
    type_number(page, settled, "emb_dim", 250)
    page.get_by_text("emb_dim 250 cannot be divided among 8 heads").wait_for()
    assert page.get_by_role("spinbutton", name="emb_dim").input_value() == "250"
    type_number(page, settled, "n_heads", 10)
    headline(page, GPTConfig(8192, 256, 250, 10, 6, tie_embeddings=True).parameters)
    assert page.get_by_text("cannot be divided").count() == 0


def is_to_scale(page):
    """Every tensor's bar is as wide and as high, but for a factor, as its box."""
    boxes = lay_out(anatomy(CONFIG)).boxes
    assert np.allclose(values(page, "anatomy_model", 0, "width"), [box.width for box in boxes])
    # Plotly rounds edges to half a pixel: look at what is large enough for that not to matter
    large = [i for i, box in enumerate(boxes) if len(box.tensors) == 1]
    drawn = np.array(page.evaluate(DRAWN, ["anatomy_model", 0]))[large]
    sizes = np.array([[boxes[i].width, boxes[i].height] for i in large])
    assert 0.85 < (drawn / sizes).mean() <= 1.001
    assert np.abs(drawn - drawn[0, 0] / sizes[0, 0] * sizes).max() <= 1


def test_on_a_phone_it_is_to_scale_too(open_page):
    is_to_scale(open_page("anatomy", viewport=(390, 844), **BOOK))
