"""The Residual stream page through AppTest: its numbers are those of the pass."""

import numpy as np
import pytest
import torch

from gptviz import Edit
from gptviz.analysis.stream import step_names, stream
from tests.specs import charts, in_numbers, number, table

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def test_the_ladder_is_the_selected_tokens(run_page, trace):
    figure = charts(run_page("residual_stream", text=TEXT, token=3, block=2))[0]
    before = [trace["embed"][3]] + [
        trace[site, b][3] for b in range(6) for site in ("resid_mid", "resid_post")
    ]
    assert np.allclose(figure["data"][0]["y"], [x.norm().item() for x in before], rtol=1e-4)
    for curve, site, at in ((1, "attn_out", "resid_pre"), (2, "mlp_out", "resid_mid")):
        writes = [trace[site, b][3] for b in range(6)]
        joined = [trace[at, b][3] for b in range(6)]
        assert np.allclose(figure["data"][curve]["y"], [w.norm().item() for w in writes], rtol=1e-4)
        cosines = [torch.cosine_similarity(w, x, dim=0).item() for w, x in zip(writes, joined, strict=True)]
        assert np.allclose(figure["data"][curve + 2]["y"], cosines, atol=1e-4)


def test_the_maps_are_every_tokens(run_page, trace):
    figure = charts(run_page("residual_stream", text=TEXT))[1]
    sizes, ratios = (np.array(figure["data"][i]["z"]) for i in range(2))
    assert np.allclose(10 ** sizes[4], trace["resid_post", 1].norm(dim=1), rtol=1e-3)
    expected = trace["mlp_out", 1].norm(dim=1) / trace["resid_mid", 1].norm(dim=1)
    assert np.allclose(10 ** ratios[4], expected, rtol=1e-3)
    assert np.isnan(ratios[0].astype(float)).all()  # the embedding joins nothing
    assert figure["data"][0]["y"] == step_names(6)


def test_what_the_block_does_is_in_its_tables(run_page, trace):
    at = run_page("residual_stream", text=TEXT, token=3, block=2)
    lines = table(at, "block lines")
    assert [line[0] for line in lines][:2] == ["shortcut = x", "x = self.norm1(x)"]
    assert number(lines[-1][1]) == pytest.approx(trace["resid_post", 2][3].norm().item(), rel=1e-3)
    for dimension, *summed in table(at, "additions"):
        sites = ("resid_pre", "attn_out", "mlp_out", "resid_post")
        expected = [trace[site, 2][3][int(dimension)].item() for site in sites]
        assert [number(text) for text in summed] == pytest.approx(expected, rel=1e-3)


def test_a_block_is_chosen_by_the_app_or_by_what_it_changes(run_page, mini, trace):
    most = stream(mini, trace).most_changed(3)
    at = run_page("residual_stream", text=TEXT, token=3)
    assert any(e.value.startswith(f"**Block {most}.**") for e in at.markdown)
    at = run_page("residual_stream", text=TEXT, token=3, block=99)  # of another model
    assert any(e.value.startswith("**Block 5.**") for e in at.markdown)


def test_the_shares_are_the_whole_end(run_page, trace):
    figure = charts(run_page("residual_stream", text=TEXT, token=3))[2]
    shares = figure["data"][0]["y"]
    assert np.sum(shares) == pytest.approx(100, abs=1e-3)
    end = trace["resid_post", 5][3].double()
    expected = 100 * (trace["attn_out", 4][3].double() @ end / (end @ end)).item()
    assert shares[9] == pytest.approx(expected, abs=1e-3)


def test_a_changed_run_stands_beside_the_unchanged_one(run_page, mini, trace):
    at = run_page("residual_stream", text=TEXT, token=3, block=4, edits="z.4.3=zero")
    changed = mini.trace(TEXT, edits=[Edit.parse("z.4.3=zero")])
    ladder, maps, shares = charts(at)
    new, _, *_, old = [ladder["data"][i] for i in (1, 2, 5, 6)]
    for line, run, step in ((new, changed, 1), (old, trace, 2)):
        writes = [run["attn_out", b][3].norm().item() for b in range(6)]
        assert np.allclose(line["y"][::step], writes, rtol=1e-4)
    moved, times = (np.array(one["z"]) for one in maps["data"])
    gap = changed["resid_post", 5] - trace["resid_post", 5]
    assert np.allclose(moved[-1], gap.norm(dim=1) / trace["resid_post", 5].norm(dim=1), rtol=1e-4)
    assert not moved[:9].any() and moved[9].all()
    ratio = changed["mlp_out", 5].norm(dim=1) / trace["mlp_out", 5].norm(dim=1)
    assert np.allclose(10.0 ** times[-1], ratio, rtol=1e-4)
    assert np.allclose(shares["data"][1]["y"], 100 * stream(mini, trace).shares[:, 3])
    assert np.allclose(in_numbers(at, "residual-stream")["moved"], moved[:, 3])
