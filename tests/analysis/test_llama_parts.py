"""The norms and the feed-forward of a Llama, a Qwen2 and a Qwen3, against transformers' own modules."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gptviz import Edit
from gptviz.analysis import feed_forward, norms
from gptviz.engine.layer_norms import norms_of
from tests.llama_models import FAMILIES, TEXT, both, passed

BLOCK = 1
POSITION = 5
MODULES = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


def module_of(norm):
    if norm.block is None:
        return "model.norm"
    return f"model.layers.{norm.block}.{MODULES[norm.name[-5:]]}"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_unit_is_its_gate_times_its_up(family):
    lm, theirs = both(family)
    t = lm.trace(TEXT, keep=feed_forward.sites(lm, BLOCK))
    found = feed_forward.units(lm, t, BLOCK, POSITION)
    ids = lm.encode(TEXT)
    mlp = f"model.layers.{BLOCK}.mlp"
    given, gate = passed(theirs, ids, f"{mlp}.gate_proj")
    _, opened = passed(theirs, ids, f"{mlp}.act_fn")
    _, up = passed(theirs, ids, f"{mlp}.up_proj")
    product, out = passed(theirs, ids, f"{mlp}.down_proj")
    for mine, other in (
        (found.given, given),
        (found.before, gate),
        (found.bent, opened),
        (found.times, up),
        (found.after, product),
        (found.written, out),
    ):
        np.testing.assert_allclose(mine, other[POSITION].numpy(), **CLOSE)
    columns = theirs.get_submodule(f"{mlp}.down_proj").weight.detach().double()  # (D, U)
    each = columns.T * product[POSITION].double()[:, None]  # (U, D): what every unit writes
    np.testing.assert_allclose(found.writes, each.norm(dim=1).numpy(), **CLOSE)
    along = each @ out[POSITION].double() / out[POSITION].double().square().sum()
    np.testing.assert_allclose(found.shares, along.numpy(), **CLOSE)
    assert found.bias_share == 0
    assert found.adds_up and not found.is_replaced
    closed = gate[POSITION] <= 0
    assert found.fires.tolist() == (~closed).tolist()
    assert found.quiet == pytest.approx(each[closed].sum(0).norm().item(), abs=1e-4)
    excited = feed_forward.excites(lm, lm.trace(TEXT, keep=[("mlp_act", BLOCK)]), BLOCK, 7)
    np.testing.assert_allclose(excited, product[:, 7].numpy(), **CLOSE)


def test_the_table_of_units_has_gate_and_up():
    lm, _ = both("llama")
    found = feed_forward.units(lm, lm.trace(TEXT), BLOCK, POSITION)
    table = feed_forward.unit_table(found)
    columns = ["unit", "gate", "silu", "up", "after", "fires", "column", "writes", "share"]
    assert list(table) == columns
    assert len(table) == lm.config.hidden_dim
    assert np.allclose(table["silu"] * table["up"], table["after"], atol=1e-5)
    assert table["fires"].tolist() == (table["gate"] > 0).tolist()


def test_the_curve_of_a_gate_is_silu():
    lm, _ = both("llama")
    curve = feed_forward.activation_curve(lm.model, 0, -7.0, 5.0)
    x = torch.from_numpy(curve.x)
    assert np.allclose(curve.y, x * torch.sigmoid(x), atol=1e-6)
    assert np.allclose(curve.y, F.silu(x), atol=1e-6)
    assert not curve.tanh


def test_a_unit_that_is_switched_off_writes_nothing():
    """By its gate at 0, by its up at 0, by its output at 0: the same logits, other numbers of the unit."""
    lm, _ = both("qwen3")
    logits = []
    for site in ("mlp_gate", "mlp_up", "mlp_act"):
        t = lm.trace(TEXT, edits=[Edit(site, BLOCK, "zero")])
        found = feed_forward.units(lm, t, BLOCK, POSITION)
        assert not found.after.any() and not found.written.any() and found.half() == 0
        assert found.fires.any() == (site != "mlp_gate")
        logits.append(t.logits())
    assert torch.equal(logits[0], logits[1]) and torch.equal(logits[0], logits[2])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_a_norm_leads_to_what_transformers_gives(family):
    lm, theirs = both(family)
    t = lm.trace(TEXT, keep=norms.SITES)
    squares, after_squares = norms.norm_grids(lm, t, "variance")
    means, means_after = norms.norm_grids(lm, t, "mean")
    assert not means.any() and not means_after.any()
    for row, norm in enumerate(norms_of(lm.model)):
        given, out = passed(theirs, lm.encode(TEXT), module_of(norm))
        wide = given.double()
        steps = norms.inside(lm, t, norm.name, POSITION)
        x = wide[POSITION]
        root = (x.square().mean() + steps.eps).sqrt()
        assert not steps.has_mean and not steps.has_shift and steps.mean == 0
        assert steps.deviation == pytest.approx(root.item(), rel=1e-5)
        np.testing.assert_allclose(steps.normalised, (x / root).numpy(), **CLOSE)
        np.testing.assert_allclose(steps.after, out[POSITION].numpy(), **CLOSE)
        np.testing.assert_allclose(squares[row], wide.square().mean(-1).numpy(), **CLOSE)
        np.testing.assert_allclose(
            after_squares[row], out.double().square().mean(-1).numpy(), **CLOSE
        )
        parts = norms.variance_parts(steps)
        assert parts.shift == parts.together == 0
        assert parts.after == parts.scaled == pytest.approx(after_squares[row, POSITION], rel=1e-4)
        assert parts.normalised == pytest.approx(steps.variance / root.item() ** 2)
        stages, lines = norms.worked_out(lm, t, norm.name, POSITION, 11)
        assert stages["stage"].tolist() == ["before", "normalised", "scaled"]
        assert stages["mean square"].tolist() == pytest.approx(
            [steps.variance, parts.normalised, parts.after]
        )
        assert stages["mean"].tolist()[0] == pytest.approx(x.mean().item(), abs=1e-5)
        gives = dict(zip(lines["step"], lines["gives"], strict=True))
        assert list(gives) == ["mean square", "root", "normalised", "times scale"]
        assert gives["root"] == pytest.approx(gives["mean square"] ** 0.5, rel=1e-3)
        assert gives["times scale"] == pytest.approx(out[POSITION, 11].item(), abs=1e-4)


def test_a_head_of_qwen3_has_norms_of_its_own():
    lm, theirs = both("qwen3")
    t = lm.trace(TEXT)
    found = norms.head_norms(lm, t, BLOCK, POSITION)
    for of, module, heads in (("query", "q_norm", 9), ("key", "k_norm", 3)):
        name = f"model.layers.{BLOCK}.self_attn.{module}"
        before, after = passed(theirs, lm.encode(TEXT), name)  # (T, heads, d)
        rows = found[found["of"] == of]
        assert rows["head"].tolist() == list(range(heads))
        for column, values in (("before", before), ("after", after)):
            roots = values[POSITION].double().square().mean(-1).sqrt()
            np.testing.assert_allclose(rows[column], roots.numpy(), **CLOSE)
    plain, _ = both("qwen2")
    same = norms.head_norms(plain, plain.trace(TEXT), BLOCK, POSITION)
    np.testing.assert_allclose(same["before"], same["after"], **CLOSE)
