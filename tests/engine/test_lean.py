"""A trace of a long text holds little and gives everything: what it works out is what the pass made."""

import gc

import pytest
import torch

from gptviz import Edit, Reduction
from gptviz.engine import forward, opened, sites
from gptviz.engine.config import GPTConfig
from gptviz.engine.edit_values import Plus
from gptviz.engine.sites import SITES, all_keys, held_keys
from gptviz.model import GPT_CONFIG_124M
from tests.conftest import random_lm
from tests.engine.test_after import CAUSAL, IDS
from tests.engine.test_trace import assert_same

LM = random_lm(3)
HALF = random_lm(3)
HALF.model.bfloat16()
NOT_CAUSAL = [(Edit("mlp_out", 0, "mean"), Edit("attn", 1, "uniform", positions=[-1]))]


@pytest.fixture(autouse=True)
def every_text_is_long(monkeypatch):
    monkeypatch.setattr(sites, "SMALL", 0)


@pytest.mark.parametrize(
    ("lm", "edits"), [*((LM, some) for some in CAUSAL + NOT_CAUSAL), (HALF, CAUSAL[3])]
)
def test_it_gives_what_a_pass_that_holds_all_has(lm, edits):
    whole = lm.trace(IDS, keep=all_keys(lm.config), edits=edits)
    lean = lm.trace(IDS, edits=edits)
    assert whole.holds() and not lean.holds() and lean.holds(held_keys(lm.config, len(IDS)))
    assert lean.sites() == all_keys(lm.config)
    for key in lean.sites():
        assert (lean[key] - whole[key]).abs().max() <= 1e-6 * whole[key].abs().max(), key
    assert lean.norms().equals(whole.norms()) and torch.equal(lean.logits(), whole.logits())
    assert torch.equal(lean.rows("attn", 1, -1), whole["attn", 1][:, -1:])
    most = Reduction("most", "attn", torch.Tensor.sum)
    at_once = lm.trace(IDS, (), edits, reduce=[most]).reduced("most")
    assert lean.reduced(most) == whole.reduced(most) == at_once


@pytest.mark.parametrize("edits", CAUSAL[2::3])
def test_it_goes_on_is_cut_and_is_read_on_from(edits):
    lm = LM
    whole = lm.trace(IDS, keep=all_keys(lm.config), edits=edits)
    half = lm.trace(IDS[:30], edits=edits)
    grown = lm.trace(IDS, edits=edits, after=lm.trace(IDS[:31], edits=edits, after=half))
    assert not grown.holds()
    assert_same(grown, whole)
    for n in (30, 1):
        assert_same(grown.cut(n), whole.cut(n))
    assert_same(lm.trace(IDS, all_keys(lm.config), edits, after=half), whole)
    assert len(half.past(lm)) == 30
    assert_same(lm.trace(IDS, ["k"], edits).joined(half := lm.trace(IDS, edits=edits)), half)


def test_a_block_is_opened_once_and_no_other_one_is_run():
    lm = random_lm(n_layers=3)
    run = []
    trace = lm.trace(IDS)
    for b, block in enumerate(lm.model.trf_blocks):
        block.att.register_forward_hook(lambda *_, b=b: run.append(("attention", b)))
        block.ff.register_forward_hook(lambda *_, b=b: run.append(("feed-forward", b)))
        for held in (block.att.W_key, block.att.W_value):
            held.register_forward_hook(lambda *_, b=b: run.append(("keys and values", b)))
    for key in (("resid_pre", 2), ("resid_post", 1), ("k", 1), ("embed", None)):
        assert len(trace[key]) and not run
    for site in ("attn", "z", "q"):
        assert len(trace[site, 1]) and run == [("attention", 1)]
    for site in ("mlp_act", "resid_mid"):
        assert len(trace[site, 1]) and run == [
            ("attention", 1),
            ("attention", 1),
            ("feed-forward", 1),
        ]
    inner = trace.uncopied()
    assert inner["z", 1] is inner["z", 1]


def test_a_pass_that_begins_while_a_block_is_opened_works_its_own_keys_out():
    lm = random_lm(n_layers=2)
    inside = []
    trace = lm.trace(IDS)
    other = lm.trace(IDS[::-1]).logits(-1)
    norm = lm.model.trf_blocks[1].norm1

    def look(*_):
        handle.remove()
        inside.append(lm.trace(IDS[::-1]).logits(-1))

    truth = lm.trace(IDS, ["attn"])["attn", 1]
    handle = norm.register_forward_hook(look)
    assert torch.equal(trace["attn", 1], truth) and torch.equal(inside[0], other)


def test_what_is_opened_is_bounded_for_all_traces_together(monkeypatch):
    lm = random_lm(n_layers=3)
    one = lm.trace(IDS)
    two = lm.trace(IDS[::-1])
    attention = 4 * (2 * len(IDS) * 32 + 4 * len(IDS) ** 2)  # q and z (T, D), attn (H, T, T)
    monkeypatch.setattr(opened, "_latest", [])
    monkeypatch.setattr(opened, "MOST_BYTES", 2 * attention)
    before = one["attn"]
    assert two["attn", 0].shape == before[0].shape
    assert list(one._opened) == [(2, True)] and list(two._opened) == [(0, True)]
    assert torch.equal(one["attn"], before)
    del one
    gc.collect()
    assert two["attn", 1].shape and len(two._opened) >= 1 and len(opened._latest) <= 2


def test_what_it_holds_is_counted():
    lm = random_lm(n_layers=3)
    rows = 4 * len(IDS) * 32  # T x D numbers of four bytes
    trace = lm.trace(IDS)
    assert len(trace["attn"]) == 3
    assert trace.nbytes == (3 * 3 + 4) * rows  # stream, k, v; the ends, two embeddings
    assert lm.trace(IDS, at_once=["attn"]).nbytes == trace.nbytes + 3 * 4 * 4 * len(IDS) ** 2
    gpt2 = GPTConfig.from_dict(GPT_CONFIG_124M)
    long = 1024
    named = {key: 4 * SITES[key[0]].floats(long, gpt2) for key in held_keys(gpt2, long)}
    assert sum(named.values()) - named["embed", None] == 125_829_120, (
        "embed is the first stream's memory"
    )


def test_changed_weights_and_a_model_that_is_gone_are_refused():
    lm = random_lm()
    trace = lm.trace(IDS)
    kept = trace["attn", 0]
    gone = trace.released()
    assert torch.equal(gone["attn", 0], kept)
    lm.model.trf_blocks[1].att.W_value.weight.data.mul_(2)
    with pytest.raises(ValueError, match="weights were changed: trace the text again"):
        trace["z", 1]
    assert torch.equal(trace["attn", 0], kept) and len(trace["v", 1])  # these are the pass's
    gone = (lm := random_lm()).trace(IDS).released()
    del lm
    gc.collect()
    assert len(gone["resid_pre", 1])
    with pytest.raises(
        ValueError, match="released, and nobody holds it any longer: trace the text again"
    ):
        gone["attn", 1]


def test_another_pass_takes_its_numbers(lm):
    """Whose blocks are opened before that pass, and not in the middle of it."""
    source = lm.trace(IDS[::-1])
    whole = lm.trace(IDS[::-1], keep=all_keys(lm.config))
    for value in (lambda trace: trace, lambda trace: (Plus(trace, 0.5), Plus(trace, 2))):
        one, two = (
            lm.trace(
                IDS,
                ["final"],
                [Edit(site, 1, value(trace)) for site in ("z", "attn_out", "mlp_act")],
            )
            for trace in (source, whole)
        )
        assert torch.equal(one["final"], two["final"])
    most = Reduction("most", "attn", torch.Tensor.sum)
    grown = lm.trace(IDS, reduce=[most], after=lm.trace(IDS[:30]))
    assert grown.reduced("most") == lm.trace(IDS).reduced(most)


def test_what_cannot_be_worked_out_twice_is_held(lm):
    ticks = []
    edited = lm.trace(IDS, edits=[Edit("z", 0, lambda z: z * (ticks.append(1) or len(ticks)))])
    assert edited.holds() and len(ticks) == 1
    assert lm.trace(IDS, grad=7).holds()


def test_it_is_opened_under_the_lock_of_a_pass(lm, monkeypatch):
    trace = lm.trace(IDS)
    entered = []
    real = forward.running
    monkeypatch.setattr(
        forward, "running", lambda *given, **named: entered.append(1) or real(*given, **named)
    )
    assert len(trace["attn", 0]) and len(trace["attn", 0]) and len(entered) == 1
