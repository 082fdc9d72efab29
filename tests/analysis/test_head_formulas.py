"""The roles' formulas: against loops written out, made-up heads, and TransformerLens' head detector."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.analysis import head_formulas


def weights(n_tokens, seed):
    """(T, T) float64: rows that sum to 1 and look at nothing to come."""
    rng = np.random.default_rng(seed)
    found = np.tril(rng.random((n_tokens, n_tokens)) ** 4 + 1e-3)
    return torch.from_numpy(found / found.sum(axis=1, keepdims=True))


def by_loops(name, attn, ids, marks):
    """A role's score, and what its queries leave on token 0, one cell after the other."""
    of_queries = []
    left = []
    for q in range(1, len(ids)):
        keys = []
        for k in range(q + 1):
            plain = k in (0, q - 1, q)
            belongs = {
                "induction": k > 0 and k - 1 < q and ids[k - 1] == ids[q] and not plain,
                "copies": k < q and ids[k] == ids[q] and not plain,
                "first": k == 0,
                "previous": k == q - 1,
                "itself": k == q,
                "marks": k < q and marks[k] and not plain,
                "nearby": q - head_formulas.NEAR <= k < q and k != 0,
            }[name]
            if belongs:
                keys.append(k)
        if keys:
            of_queries.append(sum(attn[q, k].item() for k in keys))
            left.append(0.0 if 0 in keys else attn[q, 0].item())
    if not of_queries:
        return math.nan, math.nan
    return sum(of_queries) / len(of_queries), sum(left) / len(left)


@given(
    ids=st.lists(st.integers(0, 4), min_size=1, max_size=14),
    seed=st.integers(0, 99),
    marked=st.integers(0, 2**14 - 1),
)
def test_scores_are_means_over_written_out_cells(ids, seed, marked):
    marks = [bool(marked >> i & 1) for i in range(len(ids))]
    attn = weights(len(ids), seed)
    keys = head_formulas.role_keys(ids, marks)
    found = torch.stack([head_formulas.shares(attn, keys), head_formulas.rests(attn, keys)], dim=-1)
    for name, both in zip(head_formulas.SHARES, found.tolist(), strict=True):
        assert both == pytest.approx(by_loops(name, attn, ids, marks), abs=1e-12, nan_ok=True), name


@given(period=st.integers(3, 9), seed=st.integers(0, 99))
def test_on_two_equal_halves_a_score_by_itself_is_that_of_the_role(period, seed):
    ids = list(range(period)) * 2
    attn = torch.stack([weights(2 * period, seed + i) for i in range(2)])
    scores = {
        "previous": head_formulas.previous_token_score(attn),
        "induction": head_formulas.induction_score(attn, period),
    }
    for name, found in scores.items():
        expected = [by_loops(name, one, ids, [False] * len(ids))[0] for one in attn]
        assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_head_looks_alike_at_all_keys_of_a_set():
    attn = torch.tensor(
        [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.2, 0.3, 0.4]]
    )
    found = head_formulas.shares(attn, head_formulas.same_before([4, 4, 4, 5])[..., None])
    assert found.item() == pytest.approx((0.5 + 0.5) / 2)  # query 1 at 0; query 2 at 0 and 1
