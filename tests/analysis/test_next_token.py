"""The table and the surprises against logits of the book's plain forward."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis.next_token import candidates, curve, entropy, surprises
from gptviz.engine.sampling import Sampling

TEXT = "It was the best of times, it was the worst of times, and the cat sat."


@pytest.fixture(scope="module")
def plain(lm):
    """(T, V): every logit of the book's forward, in float64 from here on."""
    with torch.no_grad():
        return lm.model(torch.tensor([lm.encode(TEXT)]))[0].double()


def test_the_table_is_the_models_own_logits_in_falling_order(lm, plain):
    t = lm.trace(TEXT, keep=[])
    for position in (0, 4, len(t) - 1):
        found = candidates(t.logits(position), k=15).table
        values, ids = plain[position].topk(15)
        assert found["id"].tolist() == ids.tolist() and found["rank"].tolist() == list(range(1, 16))
        assert np.allclose(found["logit"], values, atol=1e-4)
        chances = plain[position].softmax(0)[ids, None]
        assert np.allclose(found[["probability", "model_probability"]], chances, atol=1e-6)
        assert (found["filter"] == "kept").all()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 60),
    temperature=st.just(0.0) | st.floats(0.01, 5),
    top_k=st.none() | st.integers(1, 60),
    top_p=st.none() | st.floats(0.01, 1),
    also=st.lists(st.integers(0, 49), max_size=3),
)
def test_rows_and_rest_are_everything(seed, k, temperature, top_k, top_p, also):
    logits = torch.randn(50, generator=torch.Generator().manual_seed(seed)) * 4
    found = candidates(logits, k, Sampling(temperature, top_k, top_p), also)
    assert len(found.table) + found.rest == 50
    of_rest = np.array([found.rest_probability, found.rest_model_probability])
    sums = found.table[["probability", "model_probability"]].sum() + of_rest
    assert sums.tolist() == pytest.approx([1, 1], abs=1e-9)
    assert (found.table["filter"] == "kept").sum() + found.rest_kept == found.kept
    assert found.table["id"].is_unique
    assert found.table["rank"].is_monotonic_increasing
    for token in also:
        row = found.table[found.table["id"] == token].iloc[0]
        assert row["rank"] == (logits > logits[token]).sum() + 1
    kept = found.table[(found.table["filter"] == "kept") & (temperature > 0)]
    assert np.allclose(np.exp(kept["scaled"] - found.log_sum), kept["probability"], rtol=1e-3)


def test_each_filter_signs_what_it_cut():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    found = candidates(logits, 4, Sampling(top_k=3, top_p=0.6))
    # of the three that top-k leaves: 0.444, 0.333, 0.222; two of them reach 0.6
    assert found.table["filter"].tolist() == ["kept", "kept", "top-p", "top-k"]
    assert found.table["probability"].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert found.kept == 2


@pytest.mark.parametrize("n", [1, 2, 8, 50257])
def test_the_entropy_of_n_equals_is_log_n(n):
    found = entropy(torch.full((n,), 1 / n, dtype=torch.float64))
    assert found.nats == pytest.approx(math.log(n), abs=1e-9)
    assert found.bits == pytest.approx(math.log2(n), abs=1e-9)
    assert found.perplexity == pytest.approx(n)


def test_the_entropies_of_settings_and_of_the_model():
    logits = torch.tensor([3.0, 1.0, 0.0])
    found = candidates(logits, sampling=Sampling(0))
    assert (found.entropy.nats, found.entropy.perplexity) == (0, 1)
    p = logits.double().softmax(0)
    assert found.model_entropy.nats == pytest.approx(-(p * p.log()).sum().item())


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_surprise_is_the_cross_entropy_of_what_came(lm, plain, chunk):
    t = lm.trace(TEXT, keep=["final"])
    ids = [token.id for token in t.tokens]
    found = surprises(t["final"], lm.model.out_head.weight.detach(), ids, chunk)
    expected = torch.nn.functional.cross_entropy(
        plain[:-1], torch.tensor(ids[1:]), reduction="none"
    )
    came = plain[:-1].gather(1, torch.tensor(ids[1:])[:, None])
    wanted = {
        "logit": came[:, 0],
        "log_sum": plain[:-1].logsumexp(dim=1),
        "probability": (-expected).exp(),
    }
    wanted |= {
        "nats": expected,
        "bits": expected / math.log(2),
        "rank": 1 + (plain[:-1] > came).sum(dim=1),
    }
    for name, values in wanted.items():
        assert found[name].isna().tolist() == [True] + [False] * (len(ids) - 1), name
        assert np.allclose(found[name][1:].astype(float), values, atol=1e-4, rtol=1e-3), name


def test_surprise_of_one_token_is_unknown():
    found = surprises(torch.zeros(1, 2), torch.zeros(5, 2), [3])
    assert len(found) == 1 and found["nats"].isna().all() and found["rank"].isna().all()


def test_surprise_among_ties_ranks_the_lower_id_first():
    found = surprises(torch.zeros(3, 2), torch.zeros(5, 2), [3, 4, 0])
    assert found["rank"].tolist()[1:] == [5, 1]
    assert found["bits"].tolist()[1:] == pytest.approx([math.log2(5)] * 2)


def test_never_all_positions_at_once(monkeypatch):
    """A head of 50,257 rows: no more than `chunk` positions go through it together."""
    sizes = []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(
        "gptviz.analysis.next_token.F.linear", lambda x, w: (sizes.append(len(x)), linear(x, w))[1]
    )
    surprises(
        torch.randn(130, 4), torch.randn(60, 4), list(range(60)) * 2 + list(range(10)), chunk=64
    )
    assert sizes == [64, 64, 1]


@pytest.mark.parametrize("size", [1, 5, 4000])
def test_the_curve_runs_from_the_first_rank_to_the_last(size):
    logits = torch.randn(size, generator=torch.Generator().manual_seed(0))
    found = curve(logits, candidates(logits, sampling=Sampling(0.5, 2)), points=50)
    values, order = logits.double().softmax(0).sort(descending=True)
    assert found["rank"].iloc[0] == 1 and found["rank"].iloc[-1] == size
    assert len(found) <= 50 and found["rank"].is_unique
    assert found["id"].tolist() == order[found["rank"].to_numpy() - 1].tolist()
    assert np.allclose(found["model_probability"], values[found["rank"].to_numpy() - 1])
    assert (found["probability"] > 0).sum() == (found["rank"] <= 2).sum()
