"""The contribution graph against the published formula, all at once; rollout against a literal loop."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st

from gptviz import Edit
from gptviz.analysis import flow
from gptviz.analysis.flow import (
    contribution_graph,
    into_attention,
    into_feed_forward,
    rollout,
    token_flow,
)
from tests.analysis.written_out import IDS, SHAPES
from tests.conftest import TEXTS, models, random_lm


def published(parts, whole):
    """The formula as LLM-TT's code has it: parts (P, T, D), whole (T, D) -> (P, T), each column sums to 1."""
    distance = F.pairwise_distance(parts, whole.expand(parts.shape), p=1)
    near = (torch.norm(whole, p=1, dim=-1) - distance).clip(min=1e-5)
    return near / near.sum(dim=0, keepdim=True)


def all_at_once(lm, trace, block):
    """Shares after attention, (T, H, T) and (T,), from all T * T * H * D numbers; and after feed-forward."""
    weights = trace["attn", block]  # (H, T, T)
    out = lm.model.trf_blocks[block].att.out_proj.weight.detach()
    slices = torch.stack(out.chunk(len(weights), dim=1))  # (H, D, d)
    decomposed = torch.einsum("hij,hjd,hed->ijhe", weights, trace["v", block], slices)
    parts = decomposed.permute(1, 2, 0, 3).flatten(0, 1)  # (T H, T, D): key and head, query
    parts = torch.cat([parts, trace["resid_pre", block][None]])
    found = published(parts, trace["resid_mid", block])
    attention = found[:-1].unflatten(0, (weights.shape[-1], len(weights))).permute(2, 1, 0)
    both = torch.stack([trace["mlp_out", block], trace["resid_mid", block]])
    return attention, found[-1], published(both, trace["resid_post", block])


@pytest.mark.parametrize("at_once", [1, 100, flow.AT_ONCE])
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_streamed_they_are_the_published_formula_all_at_once(monkeypatch, changes, at_once):
    monkeypatch.setattr(flow, "AT_ONCE", at_once)
    lm = random_lm(7, n_layers=3, **changes)
    trace = lm.trace(IDS)
    everywhere = torch.arange(len(IDS))
    for block in range(3):
        wanted, stays, both = all_at_once(lm, trace, block)
        by_head, kept = into_attention(trace, lm.model, block, everywhere)
        # theirs gives each pair that the mask hides 1e-5 of a norm of about 10, and adds 1e-6 a number
        torch.testing.assert_close(by_head, wanted, rtol=1e-3, atol=2e-5)
        torch.testing.assert_close(kept, stays, rtol=1e-3, atol=2e-5)
        adds, kept = into_feed_forward(trace, block, everywhere)
        torch.testing.assert_close(torch.stack([adds, kept]), both, rtol=1e-3, atol=2e-5)
        some = torch.tensor([1, 4])
        of_some, _ = into_attention(trace, lm.model, block, some)
        torch.testing.assert_close(of_some, by_head[some, :, :5])


@settings(max_examples=25)
@given(models(), TEXTS, st.data())
def test_shares_sum_to_one(lm, ids, data):
    layers = lm.config.n_layers
    position = data.draw(st.integers(0, len(ids) - 1))
    trace = lm.trace(ids, keep=flow.SITES)  # without attn: rows from q and k
    for block in range(layers):
        by_head, stays = into_attention(trace, lm.model, block, torch.arange(len(ids)))
        assert (by_head >= 0).all() and (stays > 0).all()
        assert torch.allclose(by_head.sum(dim=(1, 2)) + stays, torch.ones(len(ids)), atol=1e-5)
        assert not by_head.permute(1, 0, 2).triu(1).any()  # nothing of what comes later
        adds, stays = into_feed_forward(trace, block, torch.arange(len(ids)))
        assert torch.allclose(adds + stays, torch.ones(len(ids)), atol=1e-5)
    shares, followed = token_flow(lm, trace, position)
    assert followed == 1 and shares.shape == (layers + 1, position + 1)
    assert (shares >= 0).all() and torch.allclose(
        shares.sum(dim=1), torch.ones(layers + 1), atol=1e-5
    )
    rolled = rollout(lm, trace, position)
    assert (rolled >= 0).all() and torch.allclose(
        rolled.sum(dim=1), torch.ones(layers + 1), atol=1e-5
    )


def test_the_flow_is_the_product_of_the_contributions():
    lm = random_lm(8, n_layers=3)
    position = 5
    trace = lm.trace(IDS)
    product = torch.eye(len(IDS))
    rows = [product[position]]
    for block in (2, 1, 0):
        attention, stays, _ = all_at_once(lm, trace, block)
        product = product @ (attention.sum(dim=1) + torch.diag(stays))
        rows.append(product[position])
    got, _ = token_flow(lm, trace, position)
    torch.testing.assert_close(
        got, torch.stack(rows[::-1])[:, : position + 1], rtol=1e-3, atol=1e-4
    )


def test_a_long_texts_smallest_shares_stay_where_they_are():
    lm = random_lm(8, n_layers=3)
    trace = lm.trace(list(range(40)))
    whole, all_of_it = token_flow(lm, trace)
    some, followed = token_flow(lm, trace, most=20)
    assert all_of_it == 1 and 0.5 < followed < 1
    assert torch.allclose(some.sum(dim=1), torch.ones(4), atol=1e-5)
    # one token, then all that it reached: a row of each
    torch.testing.assert_close(some[2:], whole[2:])
    assert 0 < (some[0] - whole[0]).abs().sum() < 2 * 2 * (1 - followed)


def scaled(parts, stays, threshold):
    """LLM-TT's apply_threshold_and_renormalize: (T, ...) and (T,)."""
    parts = parts * (parts > threshold)
    stays = stays * (stays > threshold)
    total = stays + parts.flatten(1).sum(dim=1)
    return parts / total.view(-1, *[1] * (parts.dim() - 1)), stays / total


def literal_graph(lm, trace, position, threshold, renormalize=False):
    """LLM-TT's build_full_graph and build_paths_to_predictions: all edges, then what is reached backwards."""
    weights = {}
    for block in range(lm.config.n_layers):
        attention, stays, (adds, shortcut) = all_at_once(lm, trace, block)
        if renormalize:
            attention, stays = scaled(attention, stays, threshold)
            adds, shortcut = (
                part.squeeze(-1) for part in scaled(adds[:, None], shortcut, threshold)
            )
        for target in range(len(trace)):
            for source in range(target + 1):
                of_source = attention[target, :, source].sum() + stays[target] * (source == target)
                weights[("I", block, source), ("A", block, target)] = of_source.item()
            weights[("A", block, target), ("M", block, target)] = adds[target].item()
            weights[("M", block, target), ("I", block + 1, target)] = adds[target].item()
            weights[("A", block, target), ("I", block + 1, target)] = shortcut[target].item()
    threshold = 0.0 if renormalize else threshold
    reached = {("I", lm.config.n_layers, position)}
    edges = set()
    while True:
        new = {(a, b) for (a, b), w in weights.items() if w > threshold and b in reached} - edges
        if not new:
            return {edge: weights[edge] for edge in edges}
        edges |= new
        reached |= {a for a, _ in new}


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("threshold", [0.005, 0.02, 0.1, 0.6])
def test_the_graph_is_theirs(threshold, renormalize):
    lm = random_lm(9, n_layers=3)
    position = 5
    trace = lm.trace(IDS)
    wanted = literal_graph(lm, trace, position, threshold, renormalize)
    found = contribution_graph(lm, trace, position, threshold, renormalize)
    assert found.left_out == 0
    got = {}
    for row in found.edges.itertuples():
        if row.into == "attention":
            edge = ("I", row.block, row.source), ("A", row.block, row.target)
            got[edge] = got.get(edge, 0) + row.contribution
        elif row.via == "shortcut":
            got[("A", row.block, row.target), ("I", row.block + 1, row.target)] = row.contribution
        else:  # they draw the feed-forward as a node between two edges of the same weight
            got[("A", row.block, row.target), ("M", row.block, row.target)] = row.contribution
            got[("M", row.block, row.target), ("I", row.block + 1, row.target)] = row.contribution
    assert got.keys() == wanted.keys()
    for edge, share in wanted.items():
        assert got[edge] == pytest.approx(share, abs=1e-4)


def test_the_strongest_head_of_an_edge_and_few_rows():
    lm = random_lm(9, n_layers=2)
    trace = lm.trace(IDS)
    edges = contribution_graph(lm, trace, -1, 0.01).edges
    attention, _, _ = all_at_once(lm, trace, 1)
    rows = edges[(edges["block"] == 1) & (edges["via"] == "attention")]
    assert len(rows) > 2
    for row in rows.itertuples():
        assert row.head == attention[row.target, :, row.source].argmax().item()
        best = attention[row.target, row.head, row.source].item()
        assert row.head_contribution == pytest.approx(best, abs=1e-4)
    narrow = contribution_graph(lm, trace, -1, 0.01, most=2)
    assert narrow.left_out > 0
    assert narrow.edges[narrow.edges["block"] == 0]["target"].nunique() == 2


@pytest.mark.parametrize(("tokens", "position"), [([7], 0), (IDS, 4), (IDS, -1)])
def test_rollout_is_the_product_that_the_paper_writes(tokens, position):
    lm = random_lm(3, n_layers=3)
    trace = lm.trace(tokens)
    n = position % len(tokens) + 1
    alone = joint = torch.eye(len(tokens))
    for block in range(3):
        with_identity = trace["attn", block].mean(dim=0) + torch.eye(len(tokens))
        joint = with_identity / with_identity.sum(dim=1, keepdim=True) @ joint
    found = rollout(lm, trace, position)
    assert torch.allclose(found[0], joint[position][:n], atol=1e-6)
    assert torch.equal(found[-1], alone[position][:n])
    narrow = lm.trace(tokens, keep=["q", "k"])
    assert torch.allclose(rollout(lm, narrow, position), found, atol=1e-6)


def test_edited_and_in_bfloat16():
    lm = random_lm(3)
    edited = lm.trace(IDS, edits=[Edit("attn", 0, "uniform"), Edit("mlp_out", 1, "zero")])
    adds, _ = into_feed_forward(edited, 1, torch.arange(len(IDS)))
    assert (adds < 1e-5).all()
    shares, _ = token_flow(lm, edited)
    assert torch.allclose(shares.sum(dim=1), torch.ones(3), atol=1e-5)
    before, _ = token_flow(lm, lm.trace(IDS))
    lm.model.bfloat16()
    after, _ = token_flow(lm, lm.trace(IDS, keep=flow.SITES))
    assert torch.allclose(after, before, atol=0.02)
