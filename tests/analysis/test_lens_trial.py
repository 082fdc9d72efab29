"""The trial of both lenses against gradients, a plain pass, pandas' ranks, and a model that is linear."""

import numpy as np
import pandas as pd
import pytest
import torch

from gptviz.analysis import jacobian_lens as jl, lens, lens_trial as lt
from gptviz.analysis.against import difference
from gptviz.engine.past import Before
from tests.analysis.written_out import IDS, Stopped, Told, frozen
from tests.conftest import random_lm
from tests.engine.test_trace import plain_forward

TOKENS = [5, 300, 4000]


@pytest.mark.parametrize("mapped", [False, True])
def test_a_direction_is_the_gradient_of_what_the_lens_reads(lm, mapped):
    jacobian = torch.randn(32, 32, generator=torch.Generator().manual_seed(1)) if mapped else None
    found = lt.directions(lm, TOKENS, jacobian)
    x = torch.linspace(-1, 2, 32).double().requires_grad_()
    carried = x if jacobian is None else jacobian.double() @ x
    logits = frozen(lm.model.final_norm, carried)(carried) @ lm.model.out_head.weight.double().mT
    for token, direction in zip(TOKENS, found, strict=True):
        read = difference(logits, token, None)
        (gradient,) = torch.autograd.grad(read, x, retain_graph=True)
        assert torch.allclose(direction.double(), gradient / gradient.norm(), atol=1e-5)


@pytest.mark.parametrize(
    "row", [("embed", None), ("resid_mid", 0), ("resid_post", 0), ("resid_mid", 1)]
)
def test_the_rest_of_the_model_goes_on_from_a_changed_stream(lm, row):
    """Each changed text, run whole by a plain pass that replaces the stream at one position."""
    position = 4
    t = lm.trace(IDS)
    blocks = range(lm.config.n_layers)
    before = Before(
        [t["k", b][:, :position] for b in blocks], [t["v", b][:, :position] for b in blocks]
    )
    added = torch.randn(3, 32, generator=torch.Generator().manual_seed(2))
    changed = t[row][position] + added  # (3, D)
    found = lt._from(lm, row, changed[:, None], before)[:, 0]
    for stream, final in zip(changed, found, strict=True):

        def put(key, value, stream=stream):
            if key != row:
                return value
            value = value.clone()
            value[position] = stream
            return value

        expected = plain_forward(lm, IDS, put)["final", None][position]
        assert torch.allclose(final, expected, atol=1e-4)


def test_ranks_and_errors():
    random = np.random.default_rng(0)
    moves = random.normal(size=(6, 10, 2)).round(1)  # with ties
    moves[..., 1] += moves[..., 0]
    theirs = pd.DataFrame(moves.reshape(-1, 2)).corr(method="spearman").loc[0, 1]
    assert lt.rank_correlation(moves) == pytest.approx(theirs)
    assert lt.rank_correlation(np.zeros((4, 2))) == 0
    # of a mean, the jackknife's error is the standard error
    values = random.normal(size=9)
    mean, error = lt.jackknifed(values, np.mean)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / 3)
    means, errors = lt.mean_and_error(values[:, None])
    assert (float(means[0]), float(errors[0])) == pytest.approx((mean, error))


def test_alignment_is_a_weighted_cosine_of_centred_changes():
    g = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 3, 50, generator=g)
    weights = torch.rand(50, generator=g).softmax(0)
    found = lt.alignment(one, other, weights)
    for a, b, cosine in zip(one.double(), other.double(), found, strict=True):
        w = weights.double()
        a = a - (w * a).sum()
        b = b - (w * b).sum()
        assert float(cosine) == pytest.approx(
            float((w * a * b).sum() / ((w * a * a).sum() * (w * b * b).sum()).sqrt())
        )
    # what is added to all logits changes no probability
    assert torch.allclose(lt.alignment(one + 7, 2 * one - 3, weights), torch.ones(3).double())
    assert torch.allclose(lt.alignment(one, -one, weights), -torch.ones(3).double())


def test_on_a_model_that_is_linear_the_jacobian_lens_is_the_model():
    """Block 1 adds a constant: after block 0 the lens says what the model says, and moves as it moves."""
    lm = random_lm(seed=6)
    block = lm.model.trf_blocks[1]
    with torch.no_grad():
        block.att.out_proj.weight.zero_()
        block.ff.layers[2].weight.zero_()
    jl.keep(jl.fit(lm, jl.texts_of(lm, 2)))
    told = Told()
    found = lt.lens_trial(lm, 3, told)
    assert told.came_to(3)
    exact = found.of(lt.JACOBIAN).loc[[2, 3]]  # after block 0, and in the middle of block 1
    assert np.allclose(exact["kl_bits"], 0, atol=1e-5)
    assert np.allclose(exact[["same_token", "rank_correlation", "alignment"]], 1, atol=1e-4)
    assert (found.of(lt.LOGIT).loc[[2], "kl_bits"] > 1e-3).all()
    assert found.of(lt.JACOBIAN).loc[0, "alignment"] < 0.999
    assert len(found.table) == 3 * 4 and found.texts == 3
    assert found.positions == 3 * lt.SPAN and found.exchanges == 3 * lt.TOKENS
    assert not found.table.isna().any(axis=None)


def test_its_agreement_is_that_of_the_cells(monkeypatch):
    """Read again by the public functions, at the positions that the trial draws."""
    lm = random_lm(seed=7)
    jl.keep(jl.fit(lm, jl.texts_of(lm, 2)))
    monkeypatch.setattr(lt, "SPAN", 10**6)  # all from the first position that counts
    found = lt.lens_trial(lm, 3)
    texts = jl.pieces(lm, lt.passages_in(lt.FILE), 3)
    for name, of in ((lt.LOGIT, lens), (lt.JACOBIAN, jl)):
        kls = []
        alike = []
        same = []
        for ids in texts:
            t = lm.trace(ids, keep=lens.KEEP)
            mine, logit, jacobian = (one.cells(lm, t, 16, len(ids), 1) for one in (of, lens, jl))
            kls.append(mine.kl.mean(1))
            alike.append((mine.ids == mine.ids[-1]).mean(axis=(1, 2)))
            same.append((logit.ids == jacobian.ids).mean(axis=(1, 2)))
        table = found.of(name)
        assert np.allclose(table["kl_bits"], np.mean(kls, 0)[:-1], rtol=1e-4)
        assert np.allclose(table["kl_bits_se"], np.std(kls, 0, ddof=1)[:-1] / 3**0.5, rtol=1e-3)
        assert np.allclose(table["same_token"], np.mean(alike, 0)[:-1])
        assert np.allclose(table["other_same_token"], np.mean(same, 0)[:-1])


def test_what_it_refuses():
    lm = random_lm(seed=8)
    with pytest.raises(ValueError, match="no lens was fitted to these weights"):
        lt.lens_trial(lm, 3)
    jl.keep(jl.fit(lm, jl.texts_of(lm, 2)))
    with pytest.raises(ValueError, match="texts is 2"):
        lt.lens_trial(lm, 2)
    with pytest.raises(Stopped):
        lt.lens_trial(lm, 3, Told(stop_after=1))
