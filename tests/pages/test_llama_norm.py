"""The page LayerNorm of models whose norms are RMSNorms: its numbers are those of transformers' modules."""

import numpy as np
import pytest

from tests.llama_models import FAMILIES, TEXT, both, passed
from tests.pages.test_any_model import use
from tests.specs import charts, floats, given, in_numbers, number, prose, table

POSITION = 3


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bricks_and_tables_are_what_transformers_computes(run_page, monkeypatch, family):
    lm, theirs = both(family)
    use(lm, family, monkeypatch)
    at = run_page("layernorm", text=TEXT, token=POSITION, ln_norm="block 1 · norm2", ln_dim=11)
    module = "model.layers.1.post_attention_layernorm"
    x, after = (rows[POSITION].double() for rows in passed(theirs, lm.encode(TEXT), module))
    root = (x.square().mean() + 1e-6).sqrt()
    shown = given(at, "layernorm_histograms")
    assert shown["centred"] is False
    stops = [floats(stop["values"]["base64"]) for stop in shown["stops"]]
    for stop, values in zip(stops, (x, x / root, after), strict=True):
        assert stop == pytest.approx(values.numpy(), rel=1e-4, abs=1e-4)
    rows = {name: [number(cell) for cell in cells] for name, *cells in table(at, "stages")}
    assert rows["In"][1] == pytest.approx(x.square().mean().item(), rel=1e-3)
    assert rows["Times scale"][1] == pytest.approx(after.square().mean().item(), rel=1e-3)
    worked = {name: number(cells[-1]) for name, *cells in table(at, "step by step")}
    assert worked["root"] == pytest.approx(root.item(), rel=1e-3)
    assert worked["times scale"] == pytest.approx(after[11].item(), rel=1e-3, abs=1e-4)
    frame = in_numbers(at, "layernorm")
    assert len(frame) == 7 * len(lm.encode(TEXT)) and "variance" not in frame
    row = frame[(frame["norm"] == "block 1 · norm2") & (frame["position"] == POSITION)]
    assert row["mean_square"].item() == pytest.approx(x.square().mean().item(), rel=1e-4)
    assert row["mean_square_after"].item() == pytest.approx(after.square().mean().item(), rel=1e-4)
    grid = np.array(
        charts(at)[0]["data"][0]["z"], float
    )  # logarithms, of which the largest is kept
    assert grid.shape == (7, len(lm.encode(TEXT)))
    said = prose(at)
    assert "RMSNorm" in said and "mean square" in said and "LayerNorm slides" not in said
    assert ("Which norms does a head have" in " ".join(h.value for h in at.subheader)) == (
        family == "qwen3"
    )
