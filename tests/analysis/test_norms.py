"""LayerNorm's steps, against torch, the book's formula and the definitions of mean and variance."""

import operator
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, strategies as st

from gptviz.analysis import norms
from gptviz.analysis.shapes import record_shapes
from gptviz.engine.layer_norms import Norm, norms_of
from gptviz.model import LayerNorm
from tests.conftest import random_lm
from tests.specs import number

KEEP = ("resid_pre", "resid_mid", "resid_post", "final")


@pytest.fixture(scope="module")
def trace(lm):
    return lm.trace("a cat sat on the mat", keep=KEEP)


def as_norm(module):
    shift = None if module.shift is None else module.shift.detach()
    return Norm("it", None, ("resid_post", 0), module.eps, module.scale.detach(), shift)


values = st.lists(st.floats(-50, 50, width=32), min_size=4, max_size=16)


@given(values, st.integers(0, 2**31), st.booleans())
def test_the_steps_of_one_norm_are_the_definitions_and_end_with_the_modules_output(x, seed, bias):
    x = torch.tensor(x)
    module = LayerNorm(len(x), bias=bias)
    generator = torch.Generator().manual_seed(seed)
    for parameter, mean in zip(module.parameters(), (1, 0), strict=False):
        torch.nn.init.normal_(parameter, mean, 0.5, generator=generator)
    steps = norms.norm_steps(as_norm(module), x.numpy())
    wide = x.double()
    assert steps.mean == pytest.approx(sum(wide.tolist()) / len(x), abs=1e-9)
    assert steps.variance == pytest.approx(
        sum((v - steps.mean) ** 2 for v in wide.tolist()) / len(x), abs=1e-9
    )
    assert np.allclose(steps.normalised, F.layer_norm(wide, wide.shape, eps=module.eps), atol=1e-10)
    assert np.allclose(steps.centred, steps.normalised * steps.deviation)
    with torch.no_grad():
        for theirs in (module.double()(wide), module.formula(wide)):
            assert np.allclose(steps.after, theirs, atol=1e-9)
    # eps takes its share: what is left of the variance is variance / (variance + eps), below 1
    assert steps.normalised.var() == pytest.approx(
        steps.variance / (steps.variance + steps.eps), abs=1e-9
    )
    parts = norms.variance_parts(steps)
    assert parts.after == pytest.approx(parts.scaled + parts.shift + parts.together, abs=1e-9)
    assert steps.has_shift == bias and (bias or parts.shift == parts.together == 0)
    table = norms.stage_table(steps).set_index("stage")
    assert tuple(table.index) == norms.STAGES
    stages = (x, steps.centred, steps.normalised, steps.scaled, steps.after)
    for row, stage in zip(table.itertuples(), stages, strict=True):
        of_stage = np.asarray(stage, np.float64)
        assert row[1:] == pytest.approx(
            (of_stage.mean(), of_stage.var(), of_stage.min(), of_stage.max())
        )
    assert norms.largest_dimension(steps) == max(range(len(x)), key=lambda i: abs(steps.centred[i]))


@pytest.mark.parametrize("eps", [1e-5, 3e-4, 1e-6, 1e-12])
def test_eps_is_written_with_all_its_digits(eps):
    """Of a model whose eps is another than GPT-2's it read 0.00000."""
    table = norms.arithmetic(norms.norm_steps(as_norm(LayerNorm(4, eps=eps)), np.arange(4.0)), 0)
    numbers = table.set_index("step").at["deviation", "with these numbers"]
    assert float(numbers.rpartition(" + ")[2].rstrip(")")) == eps


def test_values_that_are_all_the_same_survive_the_division():
    steps = norms.norm_steps(as_norm(LayerNorm(8)), np.full(8, 3.0, dtype=np.float32))
    assert steps.variance == 0 and not steps.normalised.any()
    counts, _ = norms.histogram(steps.before)
    assert counts.sum() == 8 and counts.max() == 8


def test_the_steps_agree_with_the_traces_own_table(lm, trace):
    table = trace.norms().set_index(["norm", "position"])
    for norm in norms_of(lm.model):
        for position, x in enumerate(norms.norm_input(trace, norm)):
            steps = norms.norm_steps(norm, x)
            row = table.loc[(norm.name, position)]
            found = steps.mean, steps.variance, steps.after.mean(), steps.after.var()
            wanted = row[["mean", "variance", "mean_after", "variance_after"]].tolist()
            assert found == pytest.approx(wanted, abs=1e-5, rel=1e-4)


WORKED_OUT = {
    "mean": operator.truediv,
    "variance": operator.truediv,
    "deviation": lambda a, b: (a + b) ** 0.5,
    "x": operator.sub,
    "normalised": operator.truediv,
    "times scale": operator.mul,
    "plus shift": operator.add,
}


@pytest.mark.parametrize("bias", [True, False])
def test_the_arithmetic_leads_to_the_modules_own_number(bias):
    lm = random_lm(norm_bias=bias)
    trace = lm.trace("a cat sat on the mat", keep=KEEP)
    for norm in norms_of(lm.model):
        x = norms.norm_input(trace, norm)
        path = "final_norm" if norm.block is None else f"trf_blocks.{norm.block}.{norm.name[-5:]}"
        with torch.no_grad():
            theirs = lm.model.get_submodule(path)(torch.from_numpy(x))
        for dimension in (0, 17, 31):
            lines = norms.arithmetic(norms.norm_steps(norm, x[3]), dimension)
            assert lines["step"].iloc[-1] == ("plus shift" if bias else "times scale")
            assert lines["gives"].iloc[-1] == pytest.approx(theirs[3, dimension].item(), abs=2e-5)
            # each, read off the screen and worked out anew
            for line in lines.itertuples(index=False):
                assert not re.search("[×+−/] −", line[2])  # a sign after a sign stands in brackets
                first, second = map(
                    number, re.findall(r"−?\d+(?:\.\d+)?(?: × 10[⁻⁰-⁹¹²³]+)?", line[2])
                )
                found = WORKED_OUT[line.step.split("[")[0]](first, second)
                assert found == pytest.approx(line.gives, rel=2e-3, abs=2e-3)


def test_grid_and_curve_are_the_tables_rows_in_the_networks_order(lm, trace):
    found = trace.norm_statistics()
    grid = found.grid("variance")
    assert grid.shape == (5, len(trace.tokens))
    for row, (site, block) in enumerate(
        [("resid_pre", 0), ("resid_mid", 0), ("resid_pre", 1), ("resid_mid", 1), ("resid_post", 1)]
    ):
        assert np.allclose(
            grid[row], trace[site, block].numpy().astype(np.float64).var(axis=1), rtol=1e-5
        )
    assert np.array_equal(
        norms.norm_grids(lm, trace, "variance"), [grid, found.grid("variance_after")]
    )
    table = trace.norms()
    for column in found.COLUMNS:
        assert np.array_equal(table[column], found.grid(column).ravel())
    assert table["norm"].tolist() == [name for name in found.names for _ in trace.tokens]
    assert table["position"].tolist() == [p for _ in found.names for p in range(len(trace.tokens))]


@given(values, st.integers(1, 40))
def test_a_histogram_counts_every_value_once(x, bins):
    counts, edges = norms.histogram(np.array(x), bins)
    assert counts.sum() == len(x) and len(edges) == bins + 1
    assert edges[0] <= min(x) and edges[-1] >= max(x)


def test_a_norm_run_again_has_the_traces_shapes(lm):
    t = lm.trace("a cat on a mat")
    n = len(t.tokens)
    d = lm.config.emb_dim
    for name in ("block 1 · norm2", "final"):
        found = record_shapes(
            [LayerNorm.formula], lambda name=name: norms.run_norm(lm.model, name, t)
        )
        whole = ((1, n, d),)
        one = ((1, n, 1),)
        assert found["LayerNorm.formula"] == {
            "x": whole, "mean": one, "var": one, "norm_x": whole, "scaled": whole,
        }  # fmt: skip


@given(values=st.lists(st.floats(-100, 100), min_size=2, max_size=9))
def test_the_two_variances_are_torchs(values):
    tensor = torch.tensor(values, dtype=torch.float64)
    by_all, by_less = norms.two_variances(tensor.numpy())
    assert by_all == pytest.approx(float(tensor.var(unbiased=False)), abs=1e-9)
    assert by_less == pytest.approx(float(tensor.var()), abs=1e-9)


def test_a_single_value_has_no_variance_by_n_minus_1():
    with pytest.raises(ValueError, match="there is 1 value; dividing by N - 1 takes at least 2"):
        norms.two_variances(np.array([3.0]))
