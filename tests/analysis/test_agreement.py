"""Muting by real passes, against a model whose mask hides the token; the five ways and their correlations."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis import muting, source_tokens
from gptviz.analysis.agreement import (
    MUTING,
    WAYS,
    measures,
    rank_correlations,
    ranks,
    to_mute,
    with_muting,
)
from gptviz.analysis.flow import token_flow
from gptviz.analysis.muting import muted, without
from gptviz.analysis.rollout import rollout
from tests.conftest import above, random_lm

IDS = [5, 300, 17, 17, 4000, 8, 300, 9]


def hidden_by_the_mask(lm, ids, place):
    """The logits (T, V) of the book's own lines, the causal mask hiding `place` from what comes later."""
    masks = [block.att.mask for block in lm.model.trf_blocks]
    kept = [mask.clone() for mask in masks]
    for mask in masks:
        mask[place + 1 :, place] = True
    with torch.no_grad():
        logits = lm.model(torch.tensor([ids]))[0]
    for mask, before in zip(masks, kept, strict=True):
        mask.copy_(before)
    return logits


@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False, "linear_bias": False}, {"n_heads": 1}])
@pytest.mark.parametrize("together", [1, 3, muting.PASS_TOKENS])
def test_muting_is_a_mask_that_hides_the_token(monkeypatch, changes, together):
    monkeypatch.setattr(muting, "PASS_TOKENS", together * len(IDS))
    lm = random_lm(6, n_layers=3, **changes)
    logits = lm.trace(IDS).logits
    for position in (-1, 5):
        at, places = position % len(IDS), list(range(5))
        got = dict(muted(lm, IDS, places, 50, 60, position))
        assert list(got) == places
        whole = logits(at)[50] - logits(at)[60]
        for place in places:
            row = hidden_by_the_mask(lm, IDS, place)[at]
            assert got[place] == pytest.approx((whole - row[50] + row[60]).item(), abs=2e-4)
        assert max(abs(loss) for loss in got.values()) > 0.02  # it is not nothing


def test_it_is_the_edit_hide_and_honours_the_models_own():
    lm = random_lm(6, n_layers=3)
    assert dict(muted(lm.edited("z.*=zero"), IDS, [0, 2], 50)) == pytest.approx({0: 0, 2: 0}, abs=1e-4)
    changed = lm.edited("mlp_out.0=mean", "attn.1.2@6=previous")  # of which one looks at the whole text
    for model in (lm, changed):
        for position in (-1, 4):
            whole = above(model.trace(IDS).logits(position), 50)
            hidden = [model.trace(IDS, edits=[f"attn.*=hide{p}"]).logits(position) for p in (0, 2, 6)]
            expected = [(whole - above(logits, 50)).item() for logits in hidden]
            got = dict(muted(model, IDS, [0, 2, 6], 50, position=position))
            assert list(got.values()) == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="no position 8"):
        muted(lm, IDS, [8], 50)


def test_the_model_is_as_it_was():
    lm = random_lm(6)
    before = lm.trace(IDS).logits()
    list(muted(lm, IDS, range(7), 50))
    assert torch.equal(lm.trace(IDS).logits(), before)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 6), place=st.integers(0, 5), sharp=st.floats(0.1, 40))
def test_weights_without_a_token_are_a_softmax_without_its_score(seed, size, place, sharp):
    place = min(place, size - 1)
    generator = torch.Generator().manual_seed(seed)
    scores = sharp * torch.randn(2, size, size, generator=generator)
    scores.masked_fill_(torch.ones(size, size, dtype=torch.bool).triu(1), -torch.inf)
    hidden = scores.clone()
    hidden[:, place + 1 :, place] = -torch.inf
    got, wanted = without(torch.softmax(scores, dim=-1), place), torch.softmax(hidden, dim=-1)
    told = torch.softmax(scores, dim=-1)[..., place] < 1  # else float32 has nothing of the others left
    told[:, : place + 1] = True
    assert torch.allclose(got[told], wanted[told], atol=1e-5)
    assert torch.allclose(got.sum(dim=-1), torch.ones(2, size), atol=1e-5)
    assert torch.equal(got[:, : place + 1], torch.softmax(scores, dim=-1)[:, : place + 1])


def test_a_row_that_saw_nothing_else_looks_at_itself():
    weights = torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0.5, 0.25, 0.25]])
    assert without(weights, 0).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]]


def test_the_columns_are_what_they_are_called():
    lm, position = random_lm(6, n_layers=3), 6
    trace = lm.trace(IDS)
    table = measures(trace, lm.model, 50, 60, position)
    assert table["position"].tolist() == list(range(6))
    assert np.allclose(table["attention"], trace["attn", 2][:, position, :6].mean(dim=0), atol=1e-6)
    assert np.allclose(table["rollout"], rollout(trace, position)[0, :6])
    assert np.allclose(table["contribution"], token_flow(trace, lm.model, position)[0][0, :6])
    sources = source_tokens(trace, lm.model, 50, 60, position)
    assert np.allclose(table["attribution"], sources.sum(dim=(0, 1))[:6])
    assert measures(trace, lm.model, 50, None, 0).empty


def spearman(one, two):
    """1 - 6 sum d^2 / (n (n^2 - 1)), for values without ties."""
    rank = [np.argsort(np.argsort(np.abs(values))) for values in (one, two)]
    n = len(one)
    return 1 - 6 * np.sum((rank[0] - rank[1]) ** 2) / (n * (n**2 - 1))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 30))
def test_rank_correlations_are_spearmans(seed, n):
    random = np.random.default_rng(seed)  # sizes that differ: what is nearly equal shares a rank
    sizes = np.array([random.permutation(n) + 1 for _ in WAYS])
    values = sizes * random.choice([-0.01, 0.01], size=sizes.shape)
    table = pd.DataFrame({"position": range(n), **dict(zip(WAYS, values, strict=True))})
    found = rank_correlations(table)
    for i, one in enumerate(WAYS):
        for j, two in enumerate(WAYS):
            assert found.loc[one, two] == pytest.approx(spearman(values[i], values[j]), abs=1e-3)
    first = ranks(table)
    for i, way in enumerate(WAYS):
        assert first[way].idxmin() == np.abs(values[i]).argmax() and first[way].min() == 1


def test_a_long_text_mutes_those_that_the_ways_name_first():
    n = 100
    table = pd.DataFrame({"position": range(n), **{way: np.zeros(n) for way in WAYS[:-1]}})
    table.loc[70, "attention"], table.loc[3, "rollout"] = 1.0, 1.0
    table.loc[40, "contribution"], table.loc[90, "attribution"] = 1.0, -5.0
    assert to_mute(table, 4) == [3, 40, 70, 90]
    assert to_mute(table.head(5)) == [0, 1, 2, 3, 4]
    known = with_muting(table, [(3, 0.5), (40, -1.0), (70, 0.25), (90, 2.0)])
    assert known[MUTING].count() == 4 and known.loc[40, MUTING] == -1.0
    assert ranks(known).loc[90, MUTING] == 1
    own = rank_correlations(known)
    assert own.loc["attribution", MUTING] == pytest.approx(  # over the four: ties share a rank
        np.corrcoef([2, 2, 2, 4], [2, 3, 1, 4])[0, 1], abs=1e-6
    )
    assert math.isnan(rank_correlations(table.head(2)).iloc[0, 1])
