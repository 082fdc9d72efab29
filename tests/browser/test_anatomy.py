"""The Anatomy page in Chromium: a link, the form, the sum that moves, and a picture that stays to scale."""

import numpy as np

from gptviz.analysis.anatomy import anatomy
from gptviz.engine.config import GPTConfig
from gptviz.figures.anatomy_layout import lay_out
from gptviz.model import GPT_CONFIG_124M
from tests.browser.conftest import press, typed
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


def test_every_tensor_is_to_scale_wide_or_narrow_and_says_what_it_is(open_page, settled):
    page = open_page("anatomy", **BOOK)
    headline(page, 163_009_536)
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
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    is_to_scale(page)


def test_what_is_typed_and_chosen_moves_the_sum_and_back_brings_it_again(open_page, settled, mini):
    own = sum(p.numel() for p in mini.model.parameters())
    page = open_page("anatomy")
    headline(page, own)
    layers = page.get_by_role("spinbutton", name="n_layers")
    typed(layers, "7")
    headline(page, own + 788_992)  # a block more
    press(page.get_by_role("radio", name="XL"))
    headline(page, 1_557_611_200)
    page.go_back()
    settled(page)
    headline(page, own + 788_992)
    assert layers.input_value() == "7"


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
