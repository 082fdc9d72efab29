"""The capture against an independent forward pass, written here with plain tensor operations."""

import gc
import math
import pickle
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal

import gptviz
from gptviz.analysis import attribution, circuit, knock_out, logit_lens, patching, source_tokens
from gptviz.engine import sites
from gptviz.engine.edits import Edit
from gptviz.engine.reduction import Reduction
from gptviz.engine.sites import all_keys
from tests.conftest import models, random_lm

TEXT = "The cat sat on the mat, and the cat slept."


def plain_forward(lm, ids, replace=None, dtype=torch.float32):
    """Every site of the table, and the LayerNorms' rows, from the weights alone: no module of ours is called.

    `replace(key, value)` may return another value for a site, as an edit does.
    """
    w = {name: value.detach().to(dtype) for name, value in lm.model.state_dict().items()}
    heads = lm.config.n_heads
    sites = {}

    def note(value, name, block=None):
        value = value if replace is None else replace((name, block), value)
        sites[name, block] = value
        return value

    def norm(x, prefix):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return w[prefix + ".scale"] * (x - mean) / (variance + 1e-5).sqrt() + w[prefix + ".shift"]

    def linear(x, prefix):
        return x @ w[prefix + ".weight"].mT + w.get(prefix + ".bias", torch.zeros(()))

    def split(x):
        return torch.stack(x.chunk(heads, dim=-1))  # (T, D) -> (H, T, D/H)

    def merge(x):
        return torch.cat(list(x), dim=-1)  # (H, T, D/H) -> (T, D)

    n = len(ids)
    tok = note(w["tok_emb.weight"][ids], "tok_emb")
    pos = note(w["pos_emb.weight"][:n], "pos_emb")
    x = note(tok + pos, "embed")
    for b in range(lm.config.n_layers):
        p = f"trf_blocks.{b}."
        x = note(x, "resid_pre", b)
        h = sites["norm1", b] = norm(x, p + "norm1")
        q, k, v = (
            note(split(linear(h, p + f"att.W_{long}")), short, b)
            for long, short in (("query", "q"), ("key", "k"), ("value", "v"))
        )
        scores = torch.einsum("hqd,hkd->hqk", q, k) / math.sqrt(q.shape[-1])
        scores = scores + torch.full((n, n), -math.inf).triu(1)
        weights = note(scores.exp() / scores.exp().sum(-1, keepdim=True), "attn", b)
        z = note(torch.einsum("hqk,hkd->hqd", weights, v), "z", b)
        x = x + note(linear(merge(z), p + "att.out_proj"), "attn_out", b)
        x = note(x, "resid_mid", b)
        sites["norm2", b] = norm(x, p + "norm2")
        h = note(linear(sites["norm2", b], p + "ff.layers.0"), "mlp_pre", b)
        gelu = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        act = note(gelu, "mlp_act", b)
        x = note(x + note(linear(act, p + "ff.layers.2"), "mlp_out", b), "resid_post", b)
    final = note(norm(x, "final_norm"), "final")
    sites["logits"] = final @ w["out_head.weight"].mT
    return sites


def assert_same(trace, whole, atol=1e-5):
    """All sites of one trace as in the other; the scale of a site is its largest number."""
    assert trace.tokens == whole.tokens and trace.edits == whole.edits
    assert trace.sites() == whole.sites()
    for key in whole.sites():
        one = trace[key]
        two = whole[key]
        assert one.shape == two.shape and one.dtype == torch.float32
        assert (one - two).abs().max() <= atol * max(1, two.abs().max()), key
    assert torch.allclose(trace.logits(-1), whole.logits(-1), atol=10 * atol, rtol=10 * atol)


def hooks_left(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.mark.parametrize(
    "changes", [{}, {"n_heads": 1}, {"n_heads": 8, "n_layers": 3}, {"qkv_bias": False}]
)
def test_every_site_equals_the_independent_forward(changes):
    lm = random_lm(3, **changes)
    trace = lm.trace(TEXT)
    truth = plain_forward(lm, [token.id for token in trace.tokens])
    assert trace.sites() == all_keys(lm.config)
    for name, block in trace.sites():
        got = trace[name, block]
        assert got.dtype == torch.float32 and not got.requires_grad
        assert torch.allclose(got, truth[name, block], atol=2e-4), (name, block)
    for position in range(len(trace)):
        assert torch.allclose(trace.logits(position), truth["logits"][position], atol=2e-4)


def test_norms_table(lm):
    t = lm.trace(TEXT)
    table = t.norms()
    columns = [
        "norm",
        "block",
        "position",
        "token",
        "mean",
        "variance",
        "mean_after",
        "variance_after",
    ]
    assert list(table.columns) == columns
    assert len(table) == (2 * lm.config.n_layers + 1) * len(t)
    names = [f"block {b} · {norm}" for b in (0, 1) for norm in ("norm1", "norm2")]
    # their numbers: tests/analysis/test_norms.py
    assert list(table["norm"].unique()) == [*names, "final"]
    assert table[table["norm"] == "final"]["block"].isna().all()
    assert np.allclose(
        table[table["norm"] == "final"]["mean_after"], t["final"].mean(-1), atol=1e-5
    )


def test_next_tokens_table(lm):
    t = lm.trace(TEXT)
    table = t.next_tokens(k=7, position=2)
    assert list(table.columns) == ["rank", "id", "token", "logit", "probability"]
    truth = torch.softmax(plain_forward(lm, [token.id for token in t.tokens])["logits"][2], dim=-1)
    best = truth.topk(7)
    assert table["id"].tolist() == best.indices.tolist()
    assert np.allclose(table["probability"], best.values, atol=1e-5)
    assert table["rank"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert table["token"].tolist() == [lm.tokenizer.decode([i]) for i in best.indices.tolist()]
    everything = t.next_tokens(k=lm.config.vocab_size, temperature=0.7, top_k=50, top_p=0.9)
    assert len(everything) == lm.config.vocab_size
    assert everything["probability"].sum() == pytest.approx(1, abs=1e-5)
    assert 0 < (everything["probability"] > 0).sum() <= 50


def test_keep_limits_what_is_held(lm):
    t = lm.trace(TEXT, keep=["attn", ("q", 1), "embed"])
    assert t.sites() == [("attn", 0), ("attn", 1), ("q", 1), ("embed", None)]
    assert t.nbytes < lm.trace(TEXT).nbytes
    assert torch.equal(t["attn", 1], lm.trace(TEXT)["attn", 1])
    assert t.logits(-1).shape == (lm.config.vocab_size,)  # always there
    with pytest.raises(ValueError, match=r"'z', 0.*not kept"):
        t["z", 0]
    with pytest.raises(ValueError, match=r"resid_pre.*not kept"):
        t.norms()


def test_nbytes_counts_what_is_held():
    lm = random_lm(n_layers=1)
    t = lm.trace([5, 6, 7], keep=["attn", "tok_emb"])
    attn = 4 * 3 * 3 * 4  # H x T x T and T x D, four bytes each
    rows = 3 * 32 * 4
    assert t.nbytes == attn + rows + rows  # attn, tok_emb, and the final rows for the logits


def test_a_trace_that_was_sent_is_one_of_the_model_that_received_it(monkeypatch):
    monkeypatch.setattr(sites, "SMALL", 0)  # it works out what it does not hold
    lm = random_lm()
    trace = lm.edited("z.0.1=zero").trace("Hello")
    size = lm.nbytes
    letter = pickle.dumps(trace.sent())
    assert len(letter) < 2 * trace.nbytes + 10_000 < size  # nothing of the weights
    there = random_lm().edited("z.0.1=zero")
    found = pickle.loads(letter).received(there)
    assert found.lm.model is there.model and found.edits == trace.edits
    for key in trace.sites():
        assert torch.equal(found[key], trace[key])
    assert torch.equal(found.logits(), trace.logits()) and found.norms().equals(trace.norms())


def test_a_place_is_any_whole_number_also_from_the_end(lm):
    t = lm.trace("Hello there, you")
    for block in (-1, np.int64(1), torch.tensor(1)):
        assert torch.equal(t["attn", block], t["attn", 1])
    assert torch.equal(t["attn"], torch.stack([t["attn", 0], t["attn", 1]]))
    assert torch.equal(lm.trace("Hello there, you", keep=[("z", -1)])["z", 1], t["z", 1])
    every = t.logits()
    assert every.shape == (len(t), lm.config.vocab_size)
    for position in (-1, np.int64(len(t) - 1), torch.tensor(-1)):
        assert torch.allclose(t.logits(position), every[-1], atol=1e-5)
    last = Edit("z", np.int64(-1), heads=torch.tensor([1]))
    assert str(last) == "z.-1.1=zero" and Edit.parse(str(last)) == last
    edited = lm.edited(last)
    assert (
        edited.edits == lm.trace("Hello", edits=["z.-1.1=zero"]).edits == (Edit("z", 1, heads=[1]),)
    )
    assert [len(one) for one in lm.traces(["Hello", [1, 2, 3]])] == [len(lm.encode("Hello")), 3]


@settings(max_examples=20)
@given(models(), st.lists(st.integers(1, 8), min_size=1, max_size=5), st.integers(2, 4))
def test_texts_that_go_through_the_model_together_have_each_its_own_numbers(lm, lengths, at_a_time):
    texts = [[(7 * number + place) % 32 for place in range(n)] for number, n in enumerate(lengths)]
    for alone, one in zip(lm.traces(texts), lm.traces(texts, at_a_time), strict=True):
        assert_same(one, alone)
        assert one.nbytes == alone.nbytes


def test_what_is_asked_of_its_model_is_what_the_functions_say(lm):
    # nobody holds the edited one; its model is held by `lm`
    t = lm.edited("z.0.1=zero").trace("Hello there")
    assert t.lm.edits == t.edits and t.lm.model is lm.model
    assert_frame_equal(t.attribution(7, 8, -1), attribution(t, lm.model, 7, 8))
    assert torch.equal(t.source_tokens(7), source_tokens(t, lm, 7))
    assert torch.equal(t.logit_lens(), logit_lens(t, lm.model))
    assert_frame_equal(lm.knock_out("Hello", 7, baseline="mean"), knock_out(lm, "Hello", 7, "mean"))
    assert_frame_equal(
        lm.patching([1, 2], [1, 3], target=(4, 5)), patching(lm, [1, 2], [1, 3], (4, 5))
    )
    assert lm.circuit([1, 2, 3], 7).heads == circuit(lm, [1, 2, 3], 7).heads


def test_a_trace_holds_its_model_until_it_is_released():
    lm = random_lm()
    trace = lm.trace("Hello")
    model = weakref.ref(lm.model)
    del lm
    gc.collect()
    gone = trace.released()
    before = trace.logits(-1)
    assert len(trace.attribution(7)) and gone.lm.model is model()
    del trace
    gc.collect()
    assert model() is None and torch.equal(gone.logits(-1), before)
    with pytest.raises(
        ValueError, match="released, and nobody holds it any longer: trace the text again"
    ):
        gone.attribution(7)


def test_what_they_print_is_short():
    lm = gptviz.load("mini")
    assert repr(lm) == "LanguageModel('mini', 6 blocks x 8 heads, 256 wide)"
    assert repr(lm.edited("z.4.3=zero"))[-13:] == ", z.4.3=zero)"
    assert repr(lm.trace("The cat", edits=["z.4.3=zero"])).startswith(
        "Trace('mini', 2 tokens, 1 edit, "
    )
    assert repr(Edit("z", 4, torch.zeros(4), heads=[3])) == "Edit('z.4.3=<a tensor>')"
    assert len(repr(next(lm.generate("The cat " * 50, 1)))) < 150
    assert dir(gptviz) == sorted([*gptviz.__all__, "__version__"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"text": ""}, "empty"),
        ({"text": "so \udc80"}, r"'\\udc80' at character 3 .*gptviz.tokenizer.well_formed"),
        ({"text": [1] * 65}, "65 tokens; random reads at most 64"),
        ({"text": "x", "keep": "attn"}, r"give a list of sites"),
        ({"text": "x", "keep": ["atn"]}, "no site 'atn'"),
        ({"text": "x", "keep": ("attn", 1)}, "1 is neither a site nor a site and a block"),
        ({"text": "x", "keep": [("attn", 7)]}, "no block 7; they go from 0 to 1"),
        ({"text": "x", "edits": [Edit("z", 0, lambda z: z[0])]}, "not a tensor"),
    ],
)
def test_bad_requests_are_sentences_and_leave_nothing_behind(lm, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lm.trace(**arguments)
    assert hooks_left(lm.model) == 0


# edits


def test_an_edit_is_never_in_place(lm):
    def scribble(value):
        value.fill_(7.0)
        return value

    before = lm.trace(TEXT)
    scribbled = lm.trace(TEXT, edits=[Edit("tok_emb", None, scribble)])
    assert (scribbled["tok_emb"] == 7).all()
    assert torch.equal(lm.trace(TEXT).logits(-1), before.logits(-1))  # the weights are untouched


# what could go wrong


def test_a_run_that_raises_leaves_nothing_behind(lm):
    def burst(value):
        raise ZeroDivisionError("in the middle of the pass")

    before = lm.trace(TEXT)
    for more in ({"edits": [Edit("mlp_act", 1, burst)]}, {"reduce": [Reduction("x", "z", burst)]}):
        with pytest.raises(ZeroDivisionError):
            lm.trace(TEXT, **more)
        assert hooks_left(lm.model) == 0
    assert torch.equal(lm.trace(TEXT).logits(-1), before.logits(-1))


@settings(max_examples=40, deadline=None)
@given(text=st.text(min_size=1, max_size=30))
def test_any_text_can_be_traced(lm, text):
    ids = lm.encode(text)[: lm.config.context_length]
    t = lm.trace(ids)
    assert [token.id for token in t.tokens] == ids
    for b in range(lm.config.n_layers):
        assert torch.allclose(
            t["attn", b].sum(-1), torch.ones(lm.config.n_heads, len(ids)), atol=1e-5
        )
        assert torch.equal(t["resid_mid", b], t["attn_out", b] + t["resid_pre", b])
        assert torch.equal(t["resid_post", b], t["mlp_out", b] + t["resid_mid", b])
    # the past does not depend on the future
    if len(ids) > 1:
        shorter = lm.trace(ids[:-1])
        assert torch.allclose(shorter["final"], t["final"][:-1], atol=1e-4)
