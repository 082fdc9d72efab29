"""The LayerNorm page through AppTest: its numbers are those of the model's own modules."""

import numpy as np
import pytest
import torch

from tests.specs import charts, floats, given, number, prose, table

TEXT = "Sam and the dog and the cat"


def test_inside_a_norm_both_runs_share_the_columns_and_the_last_step_is_the_modules_own(
    run_page, mini
):
    at = run_page(
        "layernorm", edits="z.4.3=zero", text=TEXT, token=3, ln_norm="block 4 · norm2", ln_dim=11
    )
    both = [mini.trace(TEXT, edits=e)["resid_mid", 4][3].numpy() for e in (["z.4.3=zero"], [])]
    shown = given(at, "layernorm_histograms")
    before = shown["stops"][0]
    assert floats(before["values"]["base64"]) == pytest.approx(both[0], rel=1e-6)
    assert before["low"] == pytest.approx(min(x.min() for x in both))
    edges = before["low"] + before["width"] * np.arange(49)
    assert edges[-1] == pytest.approx(max(x.max() for x in both))
    drawn = np.bincount(floats(before["bins"], "<u2"), minlength=48)
    for counts, values in zip((drawn, before["ghost"]["counts"]), both, strict=True):
        assert np.abs(counts - np.histogram(values, edges)[0]).sum() <= 4  # some may lie on an edge
        assert sum(counts) == len(values)
    assert before["ghost"]["mark"] == pytest.approx(both[1][11])
    rows = {name: numbers for name, *numbers in table(at, "stages")}
    for name, values in zip(("In", "In, unchanged"), both, strict=True):
        assert float(rows[name][1]) == pytest.approx(values.var(), rel=1e-3)
    with torch.no_grad():
        after = mini.model.trf_blocks[4].norm2(torch.from_numpy(both[0]))
    name, *_, gives = table(at, "step by step")[-1]
    assert (name, number(gives)) == (
        "plus shift",
        pytest.approx(after[11].item(), rel=1e-3, abs=1e-4),
    )
    last = floats(shown["stops"][-1]["values"]["base64"])
    assert last == pytest.approx(after.numpy(), rel=1e-3, abs=1e-4)


def test_a_variance_that_a_change_makes_0_is_seen_where_it_is_made(run_page):
    at = run_page("layernorm", text=TEXT, edits="resid_post.5=zero")
    assert "The change first shows at final." in prose(at).replace("**", "")
    moved = np.array(charts(at)[0]["data"][0]["z"], float)
    assert moved[-1].all() and not moved[:-1].any()
