"""Positions against the papers' formulas, transformers' Llama, and the model's own scores."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from transformers import LlamaConfig
from transformers.models.llama import modeling_llama

from gptviz.lessons import positions as lesson


def test_the_papers_formula_dimension_by_dimension():
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)): a loop of math."""
    for n, d in ((20, 16), (7, 6), (5, 7), (3, 1)):
        rows = lesson.sinusoidal(n, d)
        assert rows.shape == (n, d)
        for pos in range(n):
            for dim in range(d):
                angle = pos / math.pow(10_000, 2 * (dim // 2) / d)
                expected = math.sin(angle) if dim % 2 == 0 else math.cos(angle)
                assert rows[pos, dim].item() == pytest.approx(expected, abs=1e-12)


def test_rope_is_transformers_llama():
    """Their pairs are (i, i + d/2), ours (2i, 2i + 1) as in the paper: the dimensions are reordered."""
    d = 32
    n = 24
    heads = 3
    config = LlamaConfig(hidden_size=heads * d, num_attention_heads=heads, head_dim=d)
    torch.manual_seed(0)
    q = torch.randn(1, heads, n, d)
    k = torch.randn(1, heads, n, d)
    cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(q, torch.arange(n)[None])
    theirs = modeling_llama.apply_rotary_pos_emb(q, k, cos, sin)
    # ours[2i] is their i, ours[2i + 1] their i + d/2
    halves = torch.arange(d).view(2, d // 2).T.flatten()
    for x, expected in zip((q, k), theirs, strict=True):
        ours = lesson.rotate(x[..., halves], range(n))
        assert torch.allclose(ours.float(), expected[..., halves], atol=1e-5)


shifts = {"m": st.integers(0, 300), "n": st.integers(0, 300), "by": st.integers(0, 500)}


@given(**shifts, seed=st.integers(0, 9), d=st.sampled_from([2, 6, 32]))
def test_rope_scores_depend_on_the_distance_only(m, n, by, seed, d):
    torch.manual_seed(seed)
    q = torch.randn(1, d)
    k = torch.randn(1, d)
    here = (lesson.rotate(q, [m]) * lesson.rotate(k, [n])).sum()
    there = (lesson.rotate(q, [m + by]) * lesson.rotate(k, [n + by])).sum()
    assert there.item() == pytest.approx(here.item(), abs=1e-9)
    # a turn keeps the length
    assert lesson.rotate(q, [m]).norm().item() == pytest.approx(q.norm().item())


@given(**shifts, d=st.sampled_from([2, 8, 64]))
def test_a_step_is_a_linear_map_of_the_sinusoidal_rows(m, n, by, d):
    """The seed: p(c + k) is a linear function of p(c), the same one for every c."""
    rows = lesson.sinusoidal(801, d)
    step = lesson.shift_matrix(by, d)
    assert torch.allclose(step @ rows[m], rows[m + by], atol=1e-9)
    assert torch.allclose(step @ rows[n], rows[n + by], atol=1e-9)


def test_both_papers_turn_the_same_clocks():
    """RoPE of (1, 0, 1, 0, ...) is (cos, sin) where the sinusoidal row is (sin, cos)."""
    swapped = lesson.sinusoidal(40, 16).view(40, 8, 2).flip(-1).flatten(1)
    assert torch.allclose(lesson.rotations(40, 16), swapped, atol=1e-12)


def test_products_by_distance(mini):
    rows = lesson.sinusoidal(50, 16)
    table = lesson.products_by_distance(rows)
    cosines = [sum(math.cos(k * 10_000 ** (-2 * i / 16)) for i in range(8)) for k in range(50)]
    assert np.allclose(table["mean"], cosines) and np.allclose(table["most"], table["least"])
    learned = mini.model.pos_emb.weight.detach()
    table = lesson.products_by_distance(learned)
    assert (table["most"] - table["least"]).max() > 1  # learned ones know no such rule
    by_hand = [float(learned[m].double() @ learned[m - 3].double()) for m in range(3, len(learned))]
    row = table.loc[3]
    assert (row["least"], row["most"]) == pytest.approx((min(by_hand), max(by_hand)))
    assert row["mean"] == pytest.approx(np.mean(by_hand)) and len(table) == len(learned)


def test_the_products_of_a_long_table_are_the_same_in_parts(monkeypatch):
    rows = torch.randn(23, 4, generator=torch.Generator().manual_seed(1))
    whole = lesson.products_by_distance(rows)
    monkeypatch.setattr(lesson, "AT_ONCE", 5)
    parts = lesson.products_by_distance(rows)
    assert np.allclose(whole, parts, atol=1e-12)


def test_with_the_learned_rows_the_scores_are_the_models(mini):
    trace = mini.trace("Seven green parrots sang behind the old mill", keep=[("q", 0), ("k", 0)])
    ids = [token.id for token in trace.tokens]
    table = mini.model.tok_emb.weight
    rows = mini.model.pos_emb.weight
    block = mini.model.trf_blocks[0]
    for m, n, head in ((6, 4, 0), (5, 5, 3), (7, 0, 7)):
        own = (trace["q", 0][head, m] @ trace["k", 0][head, n]).item() / math.sqrt(
            trace["q", 0].shape[-1]
        )
        found = lesson.scores_along(block, table[ids[m]], table[ids[n]], rows, head, m - n, 9)
        assert found[n] == pytest.approx(own, abs=1e-4) and len(found) == 9 - (m - n)


def test_which_scores_stay_when_a_pair_moves(mini):
    """Only a rotation keeps a head's score when both tokens move; sines that are added to them do not."""
    block = mini.model.trf_blocks[0]
    table = mini.model.tok_emb.weight

    def spread(rows, rotary=False):
        return np.ptp(lesson.scores_along(block, table[40], table[500], rows, 2, 3, 256, rotary))

    assert spread(None, rotary=True) < 1e-9 and spread(None) == 0
    assert spread(mini.model.pos_emb.weight) > 0.1 and spread(lesson.sinusoidal(256, 256)) > 0.1


def test_what_others_passes_hang_on_the_model_is_left_alone(mini):
    block = mini.model.trf_blocks[0]
    hung = [block.norm1, block.att.W_query, block.att.W_key]
    handles = [
        one.register_forward_hook(lambda *_: pytest.fail("this is somebody else's")) for one in hung
    ]
    try:
        assert lesson.pair_scores(mini, 40, 500, 2, 3).notna().all(axis=None)
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("wrong", [0, 3])
def test_an_odd_row_cannot_be_turned(wrong):
    with pytest.raises(ValueError, match="it must be even"):
        lesson.rotate(torch.ones(1, wrong), [0])


def test_a_distance_that_is_not_there(mini):
    with pytest.raises(ValueError, match="0 to 4"):
        lesson.scores_along(mini.model.trf_blocks[0], *mini.model.tok_emb.weight[:2], None, 0, 5, 5)
