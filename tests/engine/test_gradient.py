"""Gradients of a pass: against autograd on a forward written by hand, and against small steps."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz import Edit, Plus
from gptviz.engine.sites import SITES, all_keys
from tests.conftest import random_lm
from tests.engine.test_edit_values import IDS, LM, by_hand, edits, sampled, texts_of
from tests.engine.test_trace import hooks_left, plain_forward

TOKEN, AGAINST = 77, 4000


def written_out(logits, against):
    return logits[TOKEN] - (logits.mean() if against is None else logits[against])


def by_autograd(ids, edit, against, position):
    """Every site's gradient: what stands there is put in as a leaf of its own, site by site."""
    leaves = {}
    others = {}
    for text in texts_of(edit) if edit else ():
        passes = plain_forward(LM, [int(i) for i in text.split("+")])
        others[text] = passes

    def replace(key, value):
        if (
            edit is not None
            and (edit.site, key[1]) == key
            and key[1] in (edit.blocks(LM.config.n_layers) or (None,))
        ):
            elsewhere = {text: passes[key] for text, passes in others.items()}
            value = by_hand(edit, key, value, sampled(key) if edit.value == "sample" else elsewhere)
        if not value.requires_grad:
            value = value.detach().requires_grad_()
        leaves[key] = value
        return value

    sites = plain_forward(LM, ids, replace)
    found = torch.autograd.grad(
        written_out(sites["logits"][position], against), list(leaves.values()), allow_unused=True
    )
    return {
        key: torch.zeros_like(leaf) if grad is None else grad
        for (key, leaf), grad in zip(leaves.items(), found, strict=True)
    }


@settings(max_examples=30)
@given(st.none() | edits(), st.sampled_from([None, AGAINST]), st.integers(0, len(IDS) - 1))
def test_every_site_has_the_gradient_of_a_forward_by_hand(edit, against, position):
    text = [] if edit is None else [str(edit)]
    trace = LM.trace(IDS, edits=text, grad=(TOKEN, against, position))
    wanted = by_autograd(IDS, edit, against, position)
    assert list(trace.grad.values) == all_keys(LM.config)
    for key in trace.sites():
        grad, truth = trace.grad[key], wanted[key]
        assert grad.shape == trace[key].shape and not grad.requires_grad and not trace[key].requires_grad
        assert (grad - truth).abs().max() <= 1e-3 * max(1.0, float(truth.abs().max())), key
    plain = LM.trace(IDS, edits=text)
    logits = plain.logits(position)
    assert trace.grad.value == pytest.approx(float(written_out(logits, against)), abs=1e-3)
    assert all(torch.allclose(trace[key], plain[key], atol=1e-3, rtol=1e-4) for key in plain.sites())


@pytest.mark.parametrize(
    "edit", [[], ["resid_mid.0@3=zero", "z.1=x0.5", "attn.0=hide2"]], ids=["plain", "edited"]
)
def test_a_small_step_moves_the_metric_by_the_gradient(edit):
    lm = random_lm(6)
    grad = lm.trace(IDS, edits=edit, grad=TOKEN).grad
    steps = torch.Generator().manual_seed(1)
    for site, block in all_keys(lm.config):
        if SITES[site].form == "weights":
            continue  # which Plus is not for; by hand above
        step = torch.randn(grad[site, block].shape, generator=steps)
        ends = [
            float(
                written_out(
                    lm.trace(IDS, keep=[], edits=[*edit, Edit(site, block, Plus(step, eps))]).logits(-1), None
                )
            )
            for eps in (-0.002, 0.002)
        ]
        slope = float((grad[site, block] * step).sum())
        assert (ends[1] - ends[0]) / 0.004 == pytest.approx(slope, abs=0.05 + 0.02 * abs(slope)), (
            site,
            block,
        )


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


@pytest.mark.parametrize(
    ("grad", "says"),
    [
        ((), "grad is"),
        ((1, 2, 3, 4), "give a token, .token, against. or"),
        ("two words", "which is not one token"),
        ((5, 9999), "grad is 9999; the ids go from 0"),
        ((5, None, 8), "there is no position 8"),
    ],
)
def test_what_has_no_gradient_is_a_sentence(lm, grad, says):
    with pytest.raises(ValueError, match=says):
        lm.trace(IDS, grad=grad)
    with pytest.raises(ValueError, match="this trace has no gradient"):
        _ = lm.trace(IDS, grad=5).cut(3).grad
    with pytest.raises(ValueError, match=r"there is no gradient of .'q', 0.; this trace has it of z"):
        _ = lm.trace(IDS, keep=["z"], grad=5).grad["q", 0]
