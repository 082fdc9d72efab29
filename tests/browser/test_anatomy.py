"""The Anatomy page in Chromium: a picture that stays to scale, and says what it is of."""

import numpy as np

from gptviz.analysis.anatomy import anatomy
from gptviz.figures.anatomy_layout import lay_out
from tests.browser.conftest import settled
from tests.browser.plots import hover, values

# how wide and how high, on the screen, the bar of a curve is
DRAWN = """([key, curve]) => {
  const plot = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const paths = plot.querySelectorAll('.barlayer .trace')[curve].querySelectorAll('.point path');
  return Array.from(paths, (path) => { const box = path.getBBox(); return [box.width, box.height]; });
}"""


def test_every_tensor_is_to_scale_wide_or_narrow_and_says_what_it_is(open_page, mini):
    page = open_page("anatomy")
    boxes = lay_out(anatomy(mini.config)).boxes
    is_to_scale(page, boxes)
    query = next(box for box in boxes if box.tensors[0].name == "trf_blocks.3.att.W_query.weight")
    said = hover(page, "anatomy_model", query.x + query.width * 0.6, query.y + query.height / 2)
    assert said.startswith(f"{query.tensors[0].name} is 256 × 256:65,536 parameters")
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    is_to_scale(page, boxes)


def is_to_scale(page, boxes):
    """Every tensor's bar is as wide and as high, but for a factor, as its box."""
    assert np.allclose(values(page, "anatomy_model", 0, "width"), [box.width for box in boxes])
    # Plotly rounds edges to half a pixel: look at what is large enough for that not to matter
    large = [i for i, box in enumerate(boxes) if len(box.tensors) == 1]
    drawn = np.array(page.evaluate(DRAWN, ["anatomy_model", 0]))[large]
    sizes = np.array([[boxes[i].width, boxes[i].height] for i in large])
    assert 0.85 < (drawn / sizes).mean() <= 1.001
    assert np.abs(drawn - drawn[0, 0] / sizes[0, 0] * sizes).max() <= 1
