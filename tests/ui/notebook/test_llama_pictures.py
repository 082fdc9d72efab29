"""The app's pictures of a Llama's trace, without the app: of every page."""

import numpy as np
import pytest
import torch

from gptviz.ui.notebook import PICTURES
from tests.llama_models import TEXT, both
from tests.specs import floats

OTHER = "The mat sat on the cat, and the mat slept."


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn(tmp_path, name, family):
    lm, _ = both(family)
    t = lm.trace(TEXT)
    options = {}
    if name == "patching":
        options = {"other": lm.encode(OTHER), "target": (t.tokens[-1].id, t.tokens[-2].id)}
    elif name == "compare":
        options = {"other": lm.trace(OTHER)}
    elif name == "generate":
        options = {"n": 3}
    picture = t.show(name, **options)
    assert len(picture.parts) > 0
    assert "<svg" in picture.save(tmp_path / "still.svg").read_text("utf-8")
    assert TEXT in picture.to_html(tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_a_heads_picture_has_transformers_weights(family):
    lm, theirs = both(family)
    with torch.no_grad():
        out = theirs(torch.tensor([lm.encode(TEXT)]), output_attentions=True)
    picture = lm.trace(TEXT).show("attention", 1, 4)
    (part,) = [part for part in picture.parts if part.get("draw") == "matrix"]
    drawn = floats(part["data"]["arrays"]["weights"]["base64"])
    expected = out.attentions[1][0, 4].numpy()
    np.testing.assert_allclose(drawn, expected[np.tril_indices(len(expected))], atol=1e-4)
