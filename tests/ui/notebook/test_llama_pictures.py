"""The app's pictures of a Llama's trace, without the app: of every page."""

import numpy as np
import pytest
import torch

from gptviz.ui.notebook import PICTURES
from tests.llama_models import TEXT, both
from tests.llamas import sites_of
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


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_the_machine_has_the_numbers_of_hooks_on_every_module(family):
    lm, _ = both(family)
    sites = sites_of(lm.model, lm.encode(TEXT))
    [part] = lm.trace(TEXT).show("overview", "block.1.head.4", position=8).parts
    depth = [sites["resid_pre", 0]]
    for block in range(lm.config.n_layers):
        depth += [sites["resid_mid", block], sites["resid_post", block]]
    whole = {
        part["data"]["at"]: part["data"],
        **{at: one["data"] for at, one in part["others"].items()},
    }
    heads = {at: one for at, one in whole.items() if ".head." in at}
    assert len(heads) >= lm.config.n_layers * lm.config.n_heads
    for block, head in ((0, 0), (1, 4), (2, 8)):
        row = floats(whole[f"block.{block}.head.{head}"]["level"]["row"]["of"])
        np.testing.assert_allclose(row, sites["attn", block][head, 8], atol=1e-4)
    stream = next(one["level"]["stream"] for one in whole.values() if "stream" in one["level"])
    shown = floats(stream["of"]).reshape(len(depth), -1)
    np.testing.assert_allclose(shown, torch.stack(depth).norm(dim=-1), rtol=1e-4, atol=1e-4)
