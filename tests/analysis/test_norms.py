"""LayerNorm's steps, against torch, the book's formula and the definitions of mean and variance."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.norms import (
    STAGES,
    arithmetic,
    find_norm,
    histogram,
    largest_dimension,
    norm_grids,
    norm_input,
    norm_steps,
    run_norm,
    stage_table,
    variance_parts,
)
from gptviz.analysis.shapes import record_shapes
from gptviz.engine.layer_norms import Norm, norms_of
from gptviz.model import LayerNorm
from tests.conftest import random_lm

KEEP = ("resid_pre", "resid_mid", "resid_post", "final")


@pytest.fixture(scope="module")
def trace(lm):
    return lm.trace("a cat sat on the mat", keep=KEEP)


def as_norm(module):
    shift = None if module.shift is None else module.shift.detach()
    return Norm("it", None, ("resid_post", 0), module.eps, module.scale.detach(), shift)


def module_of(model, name):
    if name == "final":
        return model.final_norm
    block, norm = name.removeprefix("block ").split(" · ")
    return getattr(model.trf_blocks[int(block)], norm)


def test_the_last_stage_is_the_modules_own_output_and_the_books(lm, trace):
    for norm in norms_of(lm.model):
        module = module_of(lm.model, norm.name)
        x = norm_input(trace, norm)
        with torch.no_grad():
            theirs = module(torch.from_numpy(x)).numpy()
            books = module.formula(torch.from_numpy(x)).numpy()
        for position in range(len(trace.tokens)):
            steps = norm_steps(norm, x[position])
            assert np.allclose(steps.after, theirs[position], atol=2e-5)
            assert np.allclose(steps.after, books[position], atol=2e-5)
            bare = F.layer_norm(torch.from_numpy(x[position]).double(), x.shape[1:], eps=norm.eps).numpy()
            assert np.allclose(steps.normalised, bare, atol=1e-10)


def test_the_steps_agree_with_the_traces_own_table(lm, trace):
    table = trace.norms().set_index(["norm", "position"])
    for norm in norms_of(lm.model):
        for position, x in enumerate(norm_input(trace, norm)):
            steps, row = norm_steps(norm, x), table.loc[(norm.name, position)]
            assert steps.mean == pytest.approx(row["mean"], abs=1e-6)
            assert steps.variance == pytest.approx(row["variance"], rel=1e-5)
            assert steps.after.mean() == pytest.approx(row["mean_after"], abs=1e-5)
            assert steps.after.var() == pytest.approx(row["variance_after"], rel=1e-4)


def test_a_norm_without_shift_is_scale_alone():
    lm = random_lm(norm_bias=False)
    trace = lm.trace("no shift", keep=KEEP)
    norm = find_norm(lm.model, "block 1 · norm2")
    steps = norm_steps(norm, norm_input(trace, norm)[1])
    assert not steps.has_shift and not steps.shift.any()
    assert np.array_equal(steps.after, steps.scaled)
    assert variance_parts(steps).shift == 0 and variance_parts(steps).together == 0


values = st.lists(st.floats(-50, 50, width=32), min_size=4, max_size=16)


@given(values, st.integers(0, 2**31))
def test_identities_of_one_norm(x, seed):
    x = np.array(x, dtype=np.float32)
    module = LayerNorm(len(x))
    generator = torch.Generator().manual_seed(seed)
    torch.nn.init.normal_(module.scale, 1, 0.5, generator=generator)
    torch.nn.init.normal_(module.shift, 0, 0.5, generator=generator)
    steps = norm_steps(as_norm(module), x)
    wide = x.astype(np.float64)
    assert steps.mean == pytest.approx(sum(wide) / len(x), abs=1e-9)
    assert steps.variance == pytest.approx(sum((v - steps.mean) ** 2 for v in wide) / len(x), abs=1e-9)
    assert steps.normalised.mean() == pytest.approx(0, abs=1e-6)
    # eps takes its share: what is left of the variance is variance / (variance + eps), below 1
    assert steps.normalised.var() == pytest.approx(steps.variance / (steps.variance + steps.eps), abs=1e-9)
    parts = variance_parts(steps)
    assert parts.after == pytest.approx(parts.scaled + parts.shift + parts.together, abs=1e-9)
    assert np.allclose(steps.centred, steps.normalised * steps.deviation)


def test_the_stages_table_shows_mean_0_and_variance_1_in_between():
    module = LayerNorm(64)
    with torch.no_grad():
        module.scale.fill_(3)
        module.shift.fill_(0.5)
    x = torch.randn(64, generator=torch.Generator().manual_seed(0)).numpy() * 7 + 2
    table = stage_table(norm_steps(as_norm(module), x)).set_index("stage")
    assert tuple(table.index) == STAGES
    assert table["mean"]["normalised"] == pytest.approx(0, abs=1e-12)
    assert table["variance"]["normalised"] == pytest.approx(1, abs=1e-5)
    assert table["variance"]["scaled"] == pytest.approx(9, abs=1e-4)
    assert table["mean"]["after"] == pytest.approx(0.5)
    assert table["variance"]["after"] == pytest.approx(9, abs=1e-4)
    assert table["largest"]["before"] == pytest.approx(x.max())
    assert table["smallest"]["before"] == pytest.approx(x.min())


def test_values_that_are_all_the_same_survive_the_division():
    steps = norm_steps(as_norm(LayerNorm(8)), np.full(8, 3.0, dtype=np.float32))
    assert steps.variance == 0 and not steps.normalised.any()
    counts, _ = histogram(steps.before)
    assert counts.sum() == 8 and counts.max() == 8


def test_the_arithmetic_leads_to_the_modules_own_number(lm, trace):
    for norm in norms_of(lm.model):
        x = norm_input(trace, norm)
        with torch.no_grad():
            theirs = module_of(lm.model, norm.name)(torch.from_numpy(x))
        for dimension in (0, 17, 31):
            lines = arithmetic(norm_steps(norm, x[3]), dimension)
            assert lines["step"].iloc[-1] == "plus shift"
            assert lines["gives"].iloc[-1] == pytest.approx(theirs[3, dimension].item(), abs=2e-5)
            for line in lines.itertuples(index=False):  # each, read off the screen and worked out anew
                first, second = numbers_in(line[2])
                assert WORKED_OUT[line.step.split("[")[0]](first, second) == pytest.approx(
                    line.gives, rel=2e-3, abs=2e-3
                )


WORKED_OUT = {
    "mean": lambda a, b: a / b,
    "variance": lambda a, b: a / b,
    "deviation": lambda a, b: (a + b) ** 0.5,
    "x": lambda a, b: a - b,
    "normalised": lambda a, b: a / b,
    "times scale": lambda a, b: a * b,
    "plus shift": lambda a, b: a + b,
}


def numbers_in(text):
    plain = re.sub(r" × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: "e" + found[1].translate(LOWERED), text)
    return [float(number.replace("−", "-")) for number in re.findall(r"−?\d+(?:\.\d+)?(?:e-?\d+)?", plain)]


LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def test_without_a_shift_the_arithmetic_ends_with_the_scale():
    lm = random_lm(norm_bias=False)
    norm = norms_of(lm.model)[0]
    steps = norm_steps(norm, norm_input(lm.trace("no shift", keep=KEEP), norm)[0])
    assert arithmetic(steps, 5)["step"].iloc[-1] == "times scale"
    with pytest.raises(ValueError, match="dimension 32 does not exist; this norm has dimensions 0 to 31"):
        arithmetic(steps, 32)


def test_grid_and_curve_are_the_tables_rows_in_the_networks_order(lm, trace):
    found = trace.norm_statistics()
    grid = found.grid("variance")
    assert grid.shape == (5, len(trace.tokens))
    for row, (site, block) in enumerate(
        [("resid_pre", 0), ("resid_mid", 0), ("resid_pre", 1), ("resid_mid", 1), ("resid_post", 1)]
    ):
        assert np.allclose(grid[row], trace[site, block].numpy().astype(np.float64).var(axis=1), rtol=1e-5)
    assert np.array_equal(norm_grids(lm, trace, "variance"), [grid, found.grid("variance_after")])
    table = trace.norms()
    for column in found.COLUMNS:
        assert np.array_equal(table[column], found.grid(column).ravel())
    assert table["norm"].tolist() == [name for name in found.names for _ in trace.tokens]
    assert table["position"].tolist() == [p for _ in found.names for p in range(len(trace.tokens))]


def test_the_largest_dimension_is_the_farthest_from_the_mean():
    x = np.array([5.0, 5.1, 4.9, 1.0], dtype=np.float32)
    assert largest_dimension(norm_steps(as_norm(LayerNorm(4)), x)) == 3


@given(values, st.integers(1, 40))
def test_a_histogram_counts_every_value_once(x, bins):
    counts, edges = histogram(np.array(x), bins)
    assert counts.sum() == len(x) and len(edges) == bins + 1
    assert edges[0] <= min(x) and edges[-1] >= max(x)


def test_a_norm_run_again_has_the_traces_shapes(lm):
    t = lm.trace("a cat on a mat")
    n, d = len(t.tokens), lm.config.emb_dim
    for name in ("block 1 · norm2", "final"):
        found = record_shapes([LayerNorm.formula], lambda name=name: run_norm(lm.model, name, t))
        whole, one = ((1, n, d),), ((1, n, 1),)
        assert found["LayerNorm.formula"] == {
            "x": whole, "mean": one, "var": one, "norm_x": whole, "scaled": whole,
        }  # fmt: skip
