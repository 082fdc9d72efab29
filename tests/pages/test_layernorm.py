"""The LayerNorm page through AppTest: its numbers are those of the model's own modules."""

import numpy as np
import pytest
import torch

from tests.specs import charts, number, prose, table

TEXT = "Sam and the dog and the cat"


@pytest.mark.parametrize(
    ("name", "module", "given"),
    [
        ("block 0 · norm1", "trf_blocks.0.norm1", ("resid_pre", 0)),
        ("block 3 · norm2", "trf_blocks.3.norm2", ("resid_mid", 3)),
        ("final", "final_norm", ("resid_post", 5)),
    ],
)
def test_inside_one_norm(run_page, mini, name, module, given):
    at = run_page("layernorm", text=TEXT, token=3, ln_norm=name, ln_dim=11)
    inside = charts(at)[0]["data"]
    assert [int(np.sum(trace["y"])) for trace in inside if trace["type"] == "bar"] == [256] * 3
    marks = [trace["x"][0] for trace in inside if trace["type"] == "scatter"]
    before = mini.trace(TEXT)[given][3]
    after = mini.model.get_submodule(module)(before).detach()
    bare = torch.nn.functional.layer_norm(before, (256,))
    assert marks == pytest.approx([before[11].item(), bare[11].item(), after[11].item()], abs=1e-4)
    stages, lines = table(at, "stages"), table(at, "step by step")
    assert float(stages[-1][2]) == pytest.approx(after.var(unbiased=False).item(), rel=1e-3)
    assert lines[-1][0] == "plus shift"
    assert number(lines[-1][-1]) == pytest.approx(after[11].item(), rel=1e-3, abs=1e-4)


def test_inside_a_norm_both_runs_share_the_bins(run_page, mini):
    at = run_page("layernorm", edits="z.4.3=zero", text=TEXT, token=3, ln_norm="block 4 · norm2")
    both = [mini.trace(TEXT, edits=e)["resid_mid", 4][3].numpy() for e in (["z.4.3=zero"], [])]
    inside = charts(at)[0]["data"]
    bars, outline = (next(t for t in inside if t.get("name") == name) for name in (None, "unchanged"))
    middles, halves = np.array(bars["x"]), np.array(bars["width"]) / 1.88
    edges = np.append(middles - halves, middles[-1] + halves[-1])
    assert (edges[0], edges[-1]) == pytest.approx((min(x.min() for x in both), max(x.max() for x in both)))
    for counts, values in zip((bars["y"], outline["y"][1:-1]), both, strict=True):
        assert np.abs(counts - np.histogram(values, edges)[0]).sum() <= 2  # one may lie on an edge
        assert sum(counts) == len(values)
    rows = {name: numbers for name, *numbers in table(at, "stages")}
    for name, values in zip(("before", "before, unchanged"), both, strict=True):
        assert float(rows[name][1]) == pytest.approx(values.var(), rel=1e-3)


def test_a_variance_that_a_change_makes_0_is_seen_where_it_is_made(run_page):
    at = run_page("layernorm", text=TEXT, edits="resid_post.5=zero")
    assert "What was changed is seen from final on." in prose(at).replace("**", "")
    moved = np.array(charts(at)[1]["data"][0]["z"], float)
    assert moved[-1].all() and not moved[:-1].any()
