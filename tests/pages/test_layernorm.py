"""The LayerNorm page through AppTest: its numbers are those of the model's own modules."""

import numpy as np
import pytest
import torch

from tests.specs import charts, table

TEXT = "Sam and the dog and the cat"
HISTOGRAMS, GRIDS, DEPTH, WEIGHTS = range(4)  # the charts, from top to bottom
NAMES = [f"block {b} · {norm}" for b in range(6) for norm in ("norm1", "norm2")] + ["final"]


@pytest.fixture(scope="module")
def modules(mini):
    """Name -> (input, output) of every LayerNorm, (T, D) each, caught here with plain hooks."""
    model, caught, handles = mini.model, {}, []

    def keep(name):
        return lambda module, args, output: caught.__setitem__(name, (args[0][0], output[0]))

    for b, block in enumerate(model.trf_blocks):
        handles.append(block.norm1.register_forward_hook(keep(f"block {b} · norm1")))
        handles.append(block.norm2.register_forward_hook(keep(f"block {b} · norm2")))
    handles.append(model.final_norm.register_forward_hook(keep("final")))
    with torch.no_grad():
        model(torch.tensor([mini.encode(TEXT)]))
    for handle in handles:
        handle.remove()
    return caught


@pytest.mark.parametrize("quantity", ["variance", "mean"])
def test_the_grids_and_the_selected_tokens_curve_are_the_modules(run_page, modules, quantity):
    query = {"ln_quantity": "mean"} if quantity == "mean" else {}
    grids, curve = charts(run_page("layernorm", text=TEXT, token=2, **query))[GRIDS : DEPTH + 1]
    assert list(modules) == NAMES
    for side, (grid, line) in enumerate(zip(grids["data"][:2], curve["data"], strict=False)):
        values = [modules[name][side] for name in NAMES]
        if quantity == "mean":
            expected, cells = np.stack([x.mean(dim=1).numpy() for x in values]), np.array(grid["z"])
        else:
            expected = np.stack([x.var(dim=1, unbiased=False).numpy() for x in values])
            cells = 10.0 ** np.array(grid["z"])
        assert np.allclose(cells, expected, rtol=1e-3, atol=1e-5 if quantity == "mean" else 1e-8)
        assert np.allclose(line["y"], expected[:, 2], rtol=1e-3, atol=1e-5 if quantity == "mean" else 1e-8)


@pytest.mark.parametrize("name", ["block 0 · norm1", "block 3 · norm2", "final"])
def test_inside_one_norm(run_page, mini, modules, name):
    at = run_page("layernorm", text=TEXT, token=3, ln_norm=name, ln_dim=11)
    histograms, *_, scale, shift = charts(at)
    bars = [trace for trace in histograms["data"] if trace["type"] == "bar"]
    assert [int(np.sum(bar["y"])) for bar in bars] == [256] * 3
    marks = [trace["x"][0] for trace in histograms["data"] if trace["type"] == "scatter"]
    before, after = (modules[name][side][3] for side in (0, 1))
    bare = torch.nn.functional.layer_norm(before, (256,))
    assert marks == pytest.approx([before[11].item(), bare[11].item(), after[11].item()], abs=1e-4)
    module = mini.model.get_submodule(
        "final_norm" if name == "final" else name.replace("block ", "trf_blocks.").replace(" · ", ".")
    )
    assert np.allclose(scale["data"][0]["y"], module.scale.detach().numpy())
    assert np.allclose(shift["data"][0]["y"], module.shift.detach().numpy())
    stages, lines = table(at, "stages"), table(at, "step by step")
    assert float(stages[-1][2]) == pytest.approx(after.var(unbiased=False).item(), rel=1e-3)
    assert lines[-1][0] == "plus shift"
    assert float(lines[-1][-1].replace("−", "-")) == pytest.approx(after[11].item(), rel=1e-3, abs=1e-4)


def test_inside_a_norm_both_runs_share_the_bins(run_page, mini):
    at = run_page("layernorm", edits="z.4.3=zero", text=TEXT, token=3, ln_norm="block 4 · norm2")
    both = [mini.trace(TEXT, edits=e)["resid_mid", 4][3].numpy() for e in (["z.4.3=zero"], [])]
    inside = charts(at)[HISTOGRAMS]["data"]
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
