"""The LayerNorm page through AppTest: its numbers are those of the model's own modules."""

import numpy as np
import pytest
import torch

from tests.specs import charts, number, prose, table

TEXT = "Sam and the dog and the cat"


def test_inside_a_norm_both_runs_share_the_bins_and_the_last_step_is_the_modules_own(
    run_page, mini
):
    at = run_page(
        "layernorm", edits="z.4.3=zero", text=TEXT, token=3, ln_norm="block 4 · norm2", ln_dim=11
    )
    both = [mini.trace(TEXT, edits=e)["resid_mid", 4][3].numpy() for e in (["z.4.3=zero"], [])]
    inside = charts(at)[0]["data"]
    bars, outline = (
        next(t for t in inside if t.get("name") == name) for name in (None, "unchanged")
    )
    middles = np.array(bars["x"])
    halves = np.array(bars["width"]) / 1.88
    edges = np.append(middles - halves, middles[-1] + halves[-1])
    assert (edges[0], edges[-1]) == pytest.approx(
        (min(x.min() for x in both), max(x.max() for x in both))
    )
    for counts, values in zip((bars["y"], outline["y"][1:-1]), both, strict=True):
        assert np.abs(counts - np.histogram(values, edges)[0]).sum() <= 2  # one may lie on an edge
        assert sum(counts) == len(values)
    rows = {name: numbers for name, *numbers in table(at, "stages")}
    for name, values in zip(("before", "before, unchanged"), both, strict=True):
        assert float(rows[name][1]) == pytest.approx(values.var(), rel=1e-3)
    with torch.no_grad():
        after = mini.model.trf_blocks[4].norm2(torch.from_numpy(both[0]))
    name, *_, gives = table(at, "step by step")[-1]
    assert (name, number(gives)) == (
        "plus shift",
        pytest.approx(after[11].item(), rel=1e-3, abs=1e-4),
    )


def test_a_variance_that_a_change_makes_0_is_seen_where_it_is_made(run_page):
    at = run_page("layernorm", text=TEXT, edits="resid_post.5=zero")
    assert "The change first shows at final." in prose(at).replace("**", "")
    moved = np.array(charts(at)[1]["data"][0]["z"], float)
    assert moved[-1].all() and not moved[:-1].any()
