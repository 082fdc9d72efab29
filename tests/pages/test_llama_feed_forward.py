"""The page Feed-forward of models whose units have gates: its numbers are those of transformers' modules."""

import re

import numpy as np
import pytest

from tests.llama_models import FAMILIES, TEXT, both, passed
from tests.pages.test_any_model import use
from tests.specs import charts, in_numbers, number, prose, table

POSITION = 3
UNIT = 7


def of_theirs(theirs, ids):
    """The gate before and after SiLU, up, and output of every token, (T, U) each, of transformers."""
    mlp = "model.layers.1.mlp"
    gate, bent, up = (
        passed(theirs, ids, f"{mlp}.{name}")[1].numpy()
        for name in ("gate_proj", "act_fn", "up_proj")
    )
    return gate, bent, up, passed(theirs, ids, f"{mlp}.down_proj")[0].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_dots_tables_and_curves_are_what_transformers_computes(run_page, monkeypatch, family):
    lm, theirs = both(family)
    use(lm, family, monkeypatch)
    at = run_page("feed_forward", text=TEXT, token=POSITION, block=1, ff_unit=UNIT)
    gate, bent, up, output = of_theirs(theirs, lm.encode(TEXT))
    strips, plane, bars, curves = (chart["data"] for chart in charts(at)[:4])
    shown = [np.asarray(strip["z"], float).ravel() for strip in strips]
    for strip, values in zip(shown[1:4], (gate, up, output), strict=True):
        np.testing.assert_allclose(strip[~np.isnan(strip)], values[POSITION], atol=1e-4)
    dots, _, silu, chosen = plane
    order = dots["customdata"]
    assert sorted(order) == list(range(lm.config.hidden_dim))
    np.testing.assert_allclose(dots["x"], gate[POSITION][order], atol=1e-4)
    np.testing.assert_allclose(dots["y"], up[POSITION][order], atol=1e-4)
    sign = np.where(gate[POSITION] > 0, np.sign(output[POSITION]), 0)
    assert np.array_equal(dots["marker"]["color"], sign[order])
    x = np.asarray(silu["x"], float)
    np.testing.assert_allclose(silu["y"], x / (1 + np.exp(-x)), atol=1e-5)
    assert chosen["x"][0] == pytest.approx(gate[POSITION, UNIT], abs=1e-4)
    assert chosen["y"][0] == pytest.approx(bent[POSITION, UNIT], abs=1e-3)
    np.testing.assert_allclose(bars[0]["y"], output[:, UNIT], atol=1e-4)
    lines = {line["name"]: line["y"] for line in curves if "name" in line}
    for name, values in (("silu(gate)", bent), ("up", up), ("output", output)):
        np.testing.assert_allclose(lines[name], values[:, UNIT], atol=1e-4)
    frame = in_numbers(at, "feed-forward-block1").sort_values("unit")
    for column, values in (("gate", gate), ("silu", bent), ("up", up), ("after", output)):
        np.testing.assert_allclose(frame[column], values[POSITION], atol=1e-4)
    columns = theirs.model.layers[1].mlp.down_proj.weight.detach().norm(dim=0).numpy()  # (U,)
    writes = np.abs(output[POSITION]) * columns
    best = np.argsort(-writes)[:10].tolist()
    rows = table(at, "largest units")
    assert [int(row[0]) for row in rows] == best
    for unit, *cells in rows:
        given = [values[POSITION, int(unit)] for values in (gate, bent, up, output)]
        told = [*given, columns[int(unit)], writes[int(unit)]]
        assert [number(cell) for cell in cells[:6]] == pytest.approx(told, rel=1e-2, abs=1e-4)
    said = re.sub("<.*?>", "", prose(at))
    opened = int((gate[POSITION] > 0).sum())
    assert f"**{opened} gates of block 1 are open**" in said
    above = int((output[:, UNIT] > 0).sum())
    assert f"In this text it is above 0 at {above} of {len(output)} tokens" in said
    assert "GELU" not in said and "LayerNorm" not in said


def test_a_shut_gate_is_seen_beside_what_it_was(run_page, monkeypatch):
    lm, theirs = both("llama")
    use(lm, "llama", monkeypatch)
    edits = "mlp_gate.1=zero"
    at = run_page("feed_forward", text=TEXT, token=POSITION, block=1, ff_unit=UNIT, edits=edits)
    gate, _, up, _ = of_theirs(theirs, lm.encode(TEXT))
    ghost = charts(at)[1]["data"][4]
    assert (ghost["x"][0], ghost["y"][0]) == pytest.approx(
        (gate[POSITION, UNIT], up[POSITION, UNIT]), abs=1e-4
    )
    assert ghost["x"][1] == 0
    opened = int((gate[POSITION] > 0).sum())
    said = re.sub("<.*?>", "", prose(at))
    assert f"**{opened} → 0 gates of block 1 are open**" in said
    assert f"{opened} are open in only one of the two models" in said
