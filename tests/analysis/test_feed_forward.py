"""The feed-forward's numbers against plain torch and einsum, for random models."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st

from gptviz import Edit
from gptviz.analysis import feed_forward as numbers
from gptviz.analysis.feed_forward import PEAKS, activation_curve, readings, unit_table, units
from gptviz.analysis.logit_attribution import reader
from gptviz.engine.sample import MOST_WINDOWS, WINDOW, passages, windows
from gptviz.model import GELU
from gptviz.training.corpus import HELD_OUT
from tests.analysis.written_out import frozen
from tests.conftest import TEXTS, models, random_lm

TEXT = "The cat sat on the mat, and the cat slept."


@settings(max_examples=12)
@given(models(emb_dim=32), TEXTS, st.data())
def test_what_the_units_write_is_what_comes_out_of_any_model(lm, ids, data):
    block, position = (data.draw(st.integers(0, n - 1)) for n in (lm.config.n_layers, len(ids)))
    t = lm.trace(ids, keep=numbers.sites(lm, block))
    found = units(lm, t, block, position)
    first, _, second = lm.model.trf_blocks[block].ff.layers
    columns = second.weight.detach().double()  # (D, U)
    bias = torch.zeros(32).double() if second.bias is None else second.bias.detach().double()
    each = columns.T * torch.from_numpy(found.after)[:, None]  # (U, D): what every unit writes
    assert torch.allclose(each.sum(0) + bias, t["mlp_out", block][position].double(), atol=1e-4)
    assert np.allclose(found.writes, each.norm(dim=1)) and found.difference <= 1e-4
    assert np.isclose(found.shares.sum() + found.bias_share, 1, atol=1e-5)
    assert np.isclose(found.quiet, each[torch.from_numpy(found.before <= 0)].sum(0).norm())
    # from the row that norm2 gives to the units, and through the model's own GELU
    given_ = torch.from_numpy(found.given).float()
    assert torch.allclose(
        F.linear(given_, first.weight, first.bias),
        torch.from_numpy(found.before).float(),
        atol=1e-4,
    )
    approximate = "tanh" if "tanh" in lm.config.activation else "none"
    gelu = F.gelu(torch.from_numpy(found.before), approximate=approximate)
    assert np.allclose(found.after, gelu, atol=1e-5)


def test_the_table_and_the_half_are_the_same_numbers(lm):
    found = units(lm, lm.trace(TEXT), 1, 3)
    table = unit_table(found)
    assert table["writes"].is_monotonic_decreasing and sorted(table["unit"]) == list(range(128))
    for row in table.head(5).itertuples():
        assert row.writes == pytest.approx(abs(row.after) * row.column)
        assert row.fires == (row.before > 0) and row.before == found.before[row.unit]
    half = found.half()
    writes = table["writes"]
    assert writes[: half - 1].sum() < writes.sum() / 2 <= writes[:half].sum() + 1e-12
    assert found.largest(3) == table["unit"][:3].tolist()


def test_nothing_written_is_no_half_and_no_share(lm):
    edits = [Edit("mlp_pre", 1), Edit("mlp_out", 1)]  # GELU(0) is 0
    found = units(lm, lm.trace(TEXT, edits=edits), 1, 3)
    assert found.half() == 0 and not found.fires.any() and not found.writes.any()
    assert not found.shares.any() and found.bias_share == 0 and found.size == 0
    bias = lm.model.trf_blocks[1].ff.layers[2].bias
    # an edited pass need not add up
    assert found.difference == pytest.approx(bias.abs().max().item())


@pytest.mark.parametrize(
    "changes", [{}, {"tie_embeddings": True}, {"norm_bias": False, "n_layers": 1}]
)
def test_a_reading_is_the_direct_effect_with_the_norm_frozen(changes):
    """On every token's logit minus the mean of all; and what the reader of each token says."""
    lm = random_lm(3, **changes)
    position = 3
    t = lm.trace([5, 30, 17, 17, 40])
    model = lm.model
    units_ = [5, 70]
    times = [2.0, -0.5]
    found = readings(lm, t, 0, units_, times, 4, position)
    columns = model.trf_blocks[0].ff.layers[2].weight.detach()[:, units_].double()  # (D, 2)
    read = frozen(model.final_norm, t["resid_post", lm.config.n_layers - 1][position])
    given = (
        read(columns.T * torch.tensor(times)[:, None]) @ model.out_head.weight.detach().double().T
    )
    for i, effect in enumerate(given - given.mean(dim=-1, keepdim=True)):  # (V,) each
        reading = found[i]
        assert [token for token, _ in reading.raises] == effect.topk(4).indices.tolist()
        assert [token for token, _ in reading.lowers] == (-effect).topk(4).indices.tolist()
        for token, by in (*reading.raises, *reading.lowers):
            assert by == pytest.approx(effect[token].item(), abs=1e-4)
            word = reader(t, model, token, position=position).direction
            assert by == pytest.approx(times[i] * float(word @ columns[:, i]), abs=1e-4)


# ---- GELU ----


@pytest.mark.parametrize("name", ["gelu_tanh", "gelu"])
def test_the_curve_is_torchs(name):
    lm = random_lm(activation=name)
    found = activation_curve(lm.model, 0, -9.0, 12.0)
    assert found.x[0] == -9 and found.x[-1] == 12 and (np.diff(found.x) > 0).all()
    assert ((found.x > -4) & (found.x < 4)).sum() > 190
    x = torch.from_numpy(found.x)
    assert np.allclose(
        found.y, F.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none"), atol=1e-6
    )
    assert found.tanh == (name == "gelu_tanh")


@given(st.floats(-50, 50))
def test_the_books_gelu_is_x_times_about_the_normal_distribution(x):
    """The formula as printed, torch's tanh kernel, and the exact one, which they are near to."""
    value = torch.tensor(x, dtype=torch.float64)
    book = GELU().formula(value).item()
    # a float32 constant
    assert book == pytest.approx(F.gelu(value, approximate="tanh").item(), abs=1e-6)
    assert book == pytest.approx(x * (1 + math.erf(x / math.sqrt(2))) / 2, abs=6e-4)
    assert book >= -0.1701 and abs(book - max(x, 0)) <= 0.1701  # nowhere far from ReLU


# ---- what excites a unit ----


def test_peaks_are_those_of_every_token_but_the_first(lm):
    t = lm.trace(TEXT)
    found = lm.trace(TEXT, keep=(), reduce=(PEAKS,)).reduced(PEAKS.name)
    assert len(found) == 2
    for b, peaks in enumerate(found):
        act = t["mlp_act", b]
        assert np.array_equal(numbers.excites(lm, t, b, 9), act[:, 9])
        for unit in (0, 9, 127):
            later = act[1:, unit]
            assert (
                peaks.value[unit] == later.max() and act[peaks.position[unit], unit] == later.max()
            )
            assert peaks.position[unit] > 0 and peaks.fired[unit] == (later > 0).sum()
    relu = F.relu(torch.tensor([[9.0], [-3.0], [2.0], [-10.0]]))
    assert numbers.peaks_of(relu).fired.tolist() == [1]  # 0 is no firing


def test_the_sample_is_what_it_says():
    assert sorted(passage.title for passage in passages()) == sorted(HELD_OUT)
    assert all(2000 < len(passage.text) < 3000 and passage.year < 1930 for passage in passages())


def test_windows_are_the_sample_in_pieces(mini):
    found, tokens = windows(mini.encode, 1024)
    assert sum(len(window.ids) for window in found) == tokens <= 24 * WINDOW
    for passage in passages():
        own = [window.ids for window in found if window.title == passage.title]
        assert mini.decode([i for ids in own for i in ids]) == passage.text
        assert all(len(ids) == WINDOW for ids in own[:-1])
    few, again = windows(mini.encode, 2)
    assert (
        len(few) == MOST_WINDOWS and again == tokens and {len(window.ids) for window in few} == {2}
    )
    assert windows(lambda text: [1], 8) == ([], 5)  # nothing stands before a single token
