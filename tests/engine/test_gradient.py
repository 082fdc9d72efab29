"""Gradients of a pass: against autograd on a forward written by hand, and against small steps."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz import Edit, Plus
from gptviz.engine.sites import SITES, all_keys
from tests.conftest import random_lm
from tests.engine.test_edit_values import IDS, LM, by_hand, edits, sampled, texts_of
from tests.engine.test_trace import hooks_left, plain_forward

TOKEN = 77
AGAINST = 4000


def written_out(logits, against):
    return logits[TOKEN] - (logits.mean() if against is None else logits[against])


def by_autograd(ids, edit, against, position):
    """Every site's gradient: what stands there is put in as a leaf of its own, site by site."""
    leaves = {}
    others = {}
    edited = set()
    if edit is not None:
        others = {
            text: plain_forward(LM, [int(i) for i in text.split("+")]) for text in texts_of(edit)
        }
        edited = {(edit.site, block) for block in edit.blocks(LM.config.n_layers) or (None,)}

    def replace(key, value):
        if key in edited:
            elsewhere = {text: passes[key] for text, passes in others.items()}
            value = by_hand(edit, key, value, sampled(key) if edit.value == "sample" else elsewhere)
        leaves[key] = value if value.requires_grad else value.detach().requires_grad_()
        return leaves[key]

    metric = written_out(plain_forward(LM, ids, replace)["logits"][position], against)
    found = torch.autograd.grad(
        metric, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    return dict(zip(leaves, found, strict=True))


@settings(max_examples=30)
@given(st.none() | edits(), st.sampled_from([None, "mean", AGAINST]), st.integers(0, len(IDS) - 1))
def test_every_site_has_the_gradient_of_a_forward_by_hand(edit, against, position):
    text = [] if edit is None else [str(edit)]
    trace = LM.trace(IDS, edits=text, grad=(TOKEN, against, position))
    against = None if against == "mean" else against  # its name
    wanted = by_autograd(IDS, edit, against, position)
    assert trace.grad.sites() == all_keys(LM.config)
    for key in trace.sites():
        grad = trace.grad[key]
        truth = wanted[key]
        assert (
            grad.shape == trace[key].shape
            and not grad.requires_grad
            and not trace[key].requires_grad
        )
        assert (grad - truth).abs().max() <= 1e-3 * max(1.0, float(truth.abs().max())), key
    plain = LM.trace(IDS, edits=text)
    logits = plain.logits(position)
    assert trace.grad.value == pytest.approx(float(written_out(logits, against)), abs=1e-3)
    assert all(
        torch.allclose(trace[key], plain[key], atol=1e-3, rtol=1e-4) for key in plain.sites()
    )


@pytest.mark.parametrize("edits", [[], ["resid_mid.0@3=zero", "z.1=x0.5", "attn.0=hide2"]], ids=str)
def test_a_small_step_moves_the_metric_by_the_gradient(edits):
    lm = random_lm(6)
    grad = lm.trace(IDS, edits=edits, grad=TOKEN).grad
    steps = torch.Generator().manual_seed(1)

    def after(key, step):
        trace = lm.trace(IDS, keep=[], edits=[*edits, Edit(*key, step)])
        return float(written_out(trace.logits(-1), None))

    for key in all_keys(lm.config):
        if SITES[key[0]].form == "weights":
            continue  # which Plus is not for; by hand above
        step = torch.randn(grad[key].shape, generator=steps)
        moved = after(key, Plus(step, 0.002)) - after(key, Plus(step, -0.002))
        slope = float((grad[key] * step).sum())
        assert moved / 0.004 == pytest.approx(slope, abs=0.05 + 0.02 * abs(slope)), key


def test_weights_without_gradients_other_modes_and_what_is_left_on_the_model(lm):
    wanted = lm.trace(IDS, grad=(TOKEN, AGAINST)).grad["z", 1]
    for parameter in lm.model.parameters():
        parameter.requires_grad_(False)
    with torch.inference_mode():
        frozen = lm.trace(IDS, keep=["z"], grad=(TOKEN, AGAINST))
    for parameter in lm.model.parameters():
        parameter.requires_grad_()
    with torch.no_grad():
        again = lm.trace(IDS, keep=["z"], grad=(TOKEN, AGAINST, -1), after=lm.trace(IDS[:4]))
    assert torch.equal(frozen.grad["z", 1], wanted) and torch.equal(again.grad["z", 1], wanted)
    assert not hooks_left(lm.model) and all(p.grad is None for p in lm.model.parameters())
    assert again.nbytes > lm.trace(IDS, keep=["z"]).nbytes
    half = random_lm(0)
    half.model.bfloat16()
    near = half.trace(IDS, keep=["z"], grad=(TOKEN, AGAINST)).grad["z", 1]
    assert (near - wanted).norm() < 0.1 * wanted.norm()
