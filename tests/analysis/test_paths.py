"""Paths: what a head read, split by who wrote it. Values sum to the head's source tokens; queries and keys
are what torch's autograd says of the head with the norm frozen."""

import math

import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz import Edit
from gptviz.analysis import attribution, source_tokens
from gptviz.analysis.paths import EARLIER, EDGES, HEADS, SITES, paths
from gptviz.analysis.readings import WAYS, head_slope, parts, read_by, word_reading
from tests.analysis.written_out import IDS, SHAPES, frozen
from tests.conftest import TEXTS, above, models, random_lm


def near(got, wanted, scale):
    off = torch.as_tensor(got).detach().double() - torch.as_tensor(wanted).detach().double()
    assert off.abs().max() <= 1e-4 * max(1.0, float(scale))


def composition(trace, model, block, head, token, against=None, position=-1):
    """What wrote what one head reads for the word, in each of the three ways: parts and numbers, (P, n)."""
    word = word_reading(trace, model, token, against, position)
    position = position % len(trace)
    return {
        by: parts(trace, model, read_by(trace, model, word, block, head, position, by))
        for by in WAYS
    }


@settings(max_examples=20)
@given(models(), TEXTS, st.none() | st.integers(0, 199), st.data())
def test_the_values_of_a_head_sum_to_its_source_tokens(lm, ids, against, data):
    position = data.draw(st.integers(0, len(ids) - 1))
    trace = lm.trace(ids)
    sources = source_tokens(trace, lm.model, 7, against, position)  # (L, H, T)
    word = word_reading(trace, lm.model, 7, against, position)
    for b in range(lm.config.n_layers):
        for h in range(lm.config.n_heads):
            reading = read_by(trace, lm.model, word, b, h, position, "V")
            names, found = parts(trace, lm.model, reading)  # (P, n)
            scale = found.abs().sum()
            assert found.shape == (len(names), position + 1)
            for j in range(position + 1):
                near(found[:, j].sum(), sources[b, h, j], scale)
            assert found[-1].abs().max() <= 1e-4 * max(1.0, scale)  # nothing is left over


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), ids=st.lists(st.integers(0, 199), min_size=2, max_size=7))
def test_what_a_head_wrote_is_split_once_more_and_sums_to_it(seed, ids):
    lm = random_lm(seed, n_layers=3, emb_dim=16, vocab_size=200)
    at = len(ids) - 1
    trace = lm.trace(ids)
    top = read_by(trace, lm.model, word_reading(trace, lm.model, 3, 9, at), 2, 1, at, "V")
    names, found = parts(trace, lm.model, top)
    for i, part in enumerate(names):
        if part.kind != "head":
            continue
        for j in range(at + 1):
            assert part.block < 2
            again = read_by(trace, lm.model, top, part.block, part.head, j, "V")
            once_more = parts(trace, lm.model, again)[1]
            assert once_more.shape[1] == j + 1
            near(once_more.sum(), found[i, j], found.abs().sum())


def frozen_head(lm, trace, block, head, position, direction):
    """One head's part of `direction` · its write, written out as the module computes it in float64, with the
    norm's mean and scale of each position frozen. Gives the part, and the three streams that it reads, as
    leaves: for the query, for the keys and for the values."""
    model = lm.model.trf_blocks[block]
    att = model.att
    norm = model.norm1
    d = model.att.head_dim
    rows = slice(head * d, (head + 1) * d)
    x = trace["resid_pre", block][: position + 1].double()  # (n, D)
    leaves = [x.clone().requires_grad_() for _ in range(3)]
    made = []
    for leaf, layer in zip(leaves, (att.W_query, att.W_key, att.W_value), strict=True):
        # the mean is that of the leaf: a LayerNorm takes it off whatever stands there
        after = frozen(norm, x)(leaf) + (0 if norm.shift is None else norm.shift.detach().double())
        layer_bias = 0 if layer.bias is None else layer.bias.detach().double()[rows]
        made.append(after @ layer.weight.detach().double()[rows].T + layer_bias)
    q, k, v = made
    weights = torch.softmax(k @ q[position] / math.sqrt(d), dim=0)  # (n,)
    out = att.out_proj.weight.detach().double()[:, rows]  # (D, d)
    return (weights @ v) @ (out.T @ direction), dict(zip("QKV", leaves, strict=True))


def wrote(trace, model, part):
    """A part of the stream at every position, (T, D)."""
    if part.kind == "head":
        columns = (
            model.trf_blocks[part.block]
            .att.out_proj.weight.detach()
            .chunk(trace.config.n_heads, dim=1)
        )
        return (trace["z", part.block][part.head] @ columns[part.head].T).double()
    return (trace["embed"] if part.kind == "embedding" else trace["mlp_out", part.block]).double()


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_query_key_and_value_are_the_gradients_of_the_head_with_the_norm_frozen(changes):
    lm = random_lm(4, n_layers=3, **changes)
    block = 2
    position = 5
    trace = lm.trace(IDS)
    model = lm.model
    word = word_reading(trace, model, 123, 77, position)
    direct = attribution(trace, model, 123, 77, position).set_index(["part", "block", "head"])[
        "contribution"
    ]
    for head in range(lm.config.n_heads):
        part, leaves = frozen_head(lm, trace, block, head, position, word.direction.double())
        part.backward()
        near(part, direct["head", block, head], part.abs().item())
        read = composition(trace, model, block, head, 123, 77, position)
        for by, leaf in leaves.items():
            names, found = read[by]  # a query is of its own position: there are zeros at the others
            assert {part.kind for part in names[:-2]} == {"embedding", "head", "feed-forward"}
            # biases and the rest of rounding are no writes
            for i, part_of in enumerate(names[:-2]):
                wanted = (leaf.grad * wrote(trace, model, part_of)[: position + 1]).sum(dim=-1)
                near(found[i], wanted, found.abs().sum())
        near(read["V"][1].sum(), part, 1.0)
        scores = head_slope(trace, model, word, block, head, position)
        q = trace["q", block][head, position]
        k = trace["k", block][head, : position + 1]
        wanted = (scores * (k @ q) / math.sqrt(len(q))).sum()
        for by in "QK":  # the score is a product of the two: both ways give the same number in sum
            near(read[by][1].sum(), wanted, read[by][1].abs().sum())


def test_the_graph_is_bounded_and_hangs_together():
    lm = random_lm(1, n_layers=4)
    ids = [3, 9, 27, 81, 3, 9, 27, 81] * 4
    trace = lm.trace(ids, keep=SITES)  # without attn: rows from q and k
    found, whole = (paths(lm, one, 50, least=0.0) for one in (trace, lm.trace(ids)))
    edges = found.edges
    assert found.total == pytest.approx(above(trace.logits(-1), 50).item(), abs=1e-3)
    assert found.total == pytest.approx(whole.total, abs=1e-4)
    halved = lm.trace(ids, edits=["final=x0.5"])
    assert paths(lm, halved, 50).total == pytest.approx(
        above(halved.logits(-1), 50).item(), abs=1e-3
    )
    assert len(edges) <= HEADS + EDGES + EDGES * (3 * HEADS + EARLIER)
    assert (edges["share"] * found.scale).tolist() == pytest.approx(edges["logits"].abs().tolist())
    by_number = edges.set_index("edge")
    for row in edges[edges["level"] > 0].itertuples():
        parent = by_number.loc[row.parent]
        hangs = row.level - 1, "head", row.to_block, row.to_head, row.to_position
        assert tuple(parent[["level", "part", "block", "head", "position"]]) == hangs
        assert row.position <= row.to_position and (pd.isna(row.block) or row.block < row.to_block)
        assert row.exact == (row.by == "V" and bool(parent["exact"]))
    for threshold in (0.0, 0.01, 0.05, 0.5):
        kept = found.above(threshold)
        assert (kept["share"] >= threshold).all()
        assert set(kept["parent"].dropna()) <= set(kept["edge"])
        few = found.above(threshold, 7)
        assert set(few["parent"].dropna()) <= set(few["edge"]) <= set(kept["edge"])
        assert len(few) == min(7, len(kept))
    assert len(found.above(0.0)) == len(edges) and found.above(2.0).empty


def test_one_token_and_one_block():
    lm = random_lm(2, n_layers=1)
    found = paths(lm, lm.trace([7], keep=SITES), 5)
    assert set(found.edges["position"]) == {0}
    assert not set(found.edges["by"]) & {"Q", "K"}  # with one key no score changes anything
    assert found.edges["part"].isin(["embedding", "head", "feed-forward"]).all()


def test_an_edited_pass_says_what_its_parts_are():
    lm = random_lm(3)
    edits = [Edit("attn", 1, "uniform"), Edit("z", 0, "zero", heads=[2])]
    trace = lm.trace(IDS, edits=edits)
    for head in range(4):
        sources = source_tokens(trace, lm.model, 5, None, -1)[1, head].sum()
        read = composition(trace, lm.model, 1, head, 5)
        near(read["V"][1].sum(), sources, read["V"][1].abs().max())
        for names, found in read.values():
            muted = [part.kind == "head" and part.head == 2 for part in names]
            assert any(muted) and not found[muted].any()


def test_bfloat16_is_near():
    lm = random_lm(3)
    exact = paths(lm, lm.trace(IDS), 5).total
    lm.model.bfloat16()
    trace = lm.trace(IDS, keep=SITES)
    _, found = composition(trace, lm.model, 1, 2, 5)["V"]
    sources = source_tokens(lm.trace(IDS), lm.model, 5)[1, 2].sum().item()
    assert found.sum().item() == pytest.approx(sources, abs=0.05)
    assert paths(lm, trace, 5).total == pytest.approx(exact, rel=0.05, abs=0.1)
