"""The logit lens against the model's own output, plain formulas, torch.distributions and transformers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis import lens, logit_lens
from gptviz.engine.edits import Edit
from gptviz.fast import kernels
from tests.analysis.written_out import IDS, frozen
from tests.conftest import TEXTS, models, random_lm
from tests.models.checkpoints import makers

TEXT = "Seven green parrots sang behind the old mill."


def plain(model, x):
    """The final LayerNorm as the book writes it, and the head as a sum over dimensions: (N, D) -> (N, V)."""
    after = frozen(model.final_norm, x)(x.double())
    if model.final_norm.shift is not None:
        after = after + model.final_norm.shift.double()
    return torch.einsum("nd,vd->nv", after, model.out_head.weight.double()).float()


@settings(max_examples=30)
@given(lm=models(), half=st.booleans(), ids=TEXTS, pick=st.integers(0, 11))
def test_the_last_row_is_the_models_output_to_the_bit_and_each_row_the_formula(lm, half, ids, pick):
    position = pick % len(ids)
    lm.model.to(torch.bfloat16 if half else torch.float32)
    t = lm.trace(ids, keep=lens.KEEP)
    found = logit_lens(t, lm.model, position)
    assert (
        found.shape == (1 + 2 * lm.config.n_layers, lm.config.vocab_size)
        and found.dtype == torch.float32
    )
    assert torch.equal(found[-1], t.logits(position))
    with torch.no_grad():
        stream = torch.stack([t[key][position] for key in lens.row_keys(lm.config)])
        expected = plain(lm.model, stream)
    near = 1e-3 if lm.dtype == "float32" else 0.05 * float(expected.abs().max())
    assert torch.allclose(found, expected, rtol=1e-4, atol=near)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_head_as_large_as_the_fast_kernels_want_it(dtype):
    """2^19 weights and more go through another kernel: the last row is still the same to the bit."""
    lm = random_lm(context_length=16, emb_dim=128, n_heads=2, n_layers=1)
    lm.model.to(getattr(torch, dtype))
    t = lm.trace([5, 6, 7, 8000], keep=lens.KEEP)
    for position in range(4):
        assert torch.equal(logit_lens(t, lm.model, position)[-1], t.logits(position))


def test_rows_are_transformers_hidden_states():
    """Our weights in GPT-2: hidden_states through transformers' own ln_f and lm_head, a row a block."""
    lm = random_lm(n_layers=3)
    truth = makers.in_transformers(lm.model, lm.config)
    t = lm.trace(IDS, keep=lens.KEEP)
    with torch.no_grad():
        states = truth(torch.tensor([IDS]), output_hidden_states=True).hidden_states
        # transformers' last state has gone through ln_f already
        rows = [truth.lm_head(truth.transformer.ln_f(state))[0] for state in states[:-1]]
        rows.append(truth.lm_head(states[-1])[0])
    for position in (0, 4, 6):
        found = logit_lens(t, lm.model, position)[::2]
        assert torch.allclose(found, torch.stack(rows)[:, position], rtol=1e-4, atol=1e-4)


def test_a_row_is_called_by_the_last_part_that_has_written(lm):
    halves = [f"block {b} · {part}" for b in (0, 1) for part in ("attention", "feed-forward")]
    assert lens.row_names(lm.config) == ["embedding", *halves]
    assert lens.row_keys(lm.config)[1:3] == [("resid_mid", 0), ("resid_post", 0)]


@settings(max_examples=25)
@given(lm=models(), half=st.booleans(), ids=TEXTS, k=st.integers(1, 12), data=st.data())
def test_cells_are_the_whole_a_part_at_a_time(lm, half, ids, k, data):
    """Against torch.distributions at one position after the other; parts put together are all."""
    lm.model.to(torch.bfloat16 if half else torch.float32)
    t = lm.trace(ids, keep=lens.KEEP)
    border = data.draw(st.integers(1, len(ids)))
    parts = [
        lens.cells(lm, t, start, stop, k)
        for start, stop in ((0, border), (border, len(ids)))
        if start < stop
    ]
    many = [data.draw(st.integers(0, lm.config.vocab_size - 1)) for _ in range(3)]
    whole = {
        field: np.concatenate([getattr(part, field) for part in parts], axis=1)
        for field in ("ids", "probabilities", "entropy", "kl")
    }
    assert {values.shape[:2] for values in whole.values()} == {
        (1 + 2 * lm.config.n_layers, len(ids))
    }
    for position in range(len(ids)):
        logits = logit_lens(t, lm.model, position)
        one = torch.distributions.Categorical(logits=logits.double())
        last = torch.distributions.Categorical(logits=logits[-1:].double().expand_as(logits))
        most = one.probs.sort(dim=-1, descending=True).values[:, :k]
        bits = (
            one.entropy() / math.log(2),
            torch.distributions.kl_divergence(last, one) / math.log(2),
        )
        for field, expected in zip(("probabilities", "entropy", "kl"), (most, *bits), strict=True):
            assert np.allclose(whole[field][:, position], expected, rtol=loose(lm), atol=loose(lm))
        # equal logits may change places where a kernel rounds otherwise
        named = one.probs.gather(1, torch.from_numpy(whole["ids"][:, position]).long())
        assert torch.allclose(named, most, rtol=loose(lm), atol=1e-6)
    ranks = lens.followed_cells(lm, t, 0, len(ids), many)
    for position in range(len(ids)):
        alone = lens.followed(logit_lens(t, lm.model, position), many)
        assert np.allclose(
            ranks.probabilities[:, position], alone.probabilities, rtol=loose(lm), atol=1e-6
        )
        # two equal logits in 8,192 random ones: a rank may change by a place
        if lm.dtype == "float32":
            assert np.abs(ranks.ranks[:, position] - alone.ranks).max() <= 2


def loose(lm):
    """How far a product of many rows may be from that of one: a digit of the head's precision."""
    return 1e-3 if lm.dtype == "float32" else 0.2


@settings(max_examples=60)
@given(
    logits=st.lists(st.lists(st.integers(-3, 3), min_size=7, max_size=7), min_size=1, max_size=4),
    k=st.integers(1, 9),
)
def test_equal_logits_stand_by_their_ids(logits, k):
    """bfloat16 has many of them. A stable sort, and a count, of the same numbers."""
    given_ = torch.tensor(logits, dtype=torch.float32)
    order = torch.sort(given_, dim=-1, descending=True, stable=True).indices
    assert lens.top_ids(given_, k).tolist() == order[:, :k].tolist()
    found = lens.followed(given_, list(range(7)))
    for row in range(len(given_)):
        assert [int(found.ranks[row, i]) for i in order[row]] == list(range(1, 8))
    assert np.allclose(found.probabilities, given_.softmax(-1))


def test_an_edit_of_the_run_is_in_the_rows_after_it(lm):
    edits = [Edit.parse("z.1.2=zero")]
    plain_ = lm.trace(TEXT, keep=lens.KEEP)
    edited = lm.trace(TEXT, keep=lens.KEEP, edits=edits)
    own = logit_lens(plain_, lm.model)
    other = logit_lens(edited, lm.model)
    assert torch.equal(own[:3], other[:3]) and not torch.equal(own[3:], other[3:])
    assert torch.equal(other[-1], edited.logits(-1))
    silenced = lm.trace(TEXT, keep=lens.KEEP, edits=[Edit.parse("final=zero")])
    assert torch.equal(logit_lens(silenced, lm.model)[-1], silenced.logits(-1))
    assert lens.cells(lm, silenced, 0, 2).ids[-1].tolist() == [list(range(10))] * 2


def test_never_all_rows_at_once(lm, monkeypatch):
    """What goes through the head together is a row's part, and nothing longer."""
    sizes = []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(kernels, "linear", lambda x, w: (sizes.append(len(x)), linear(x, w))[1])
    # as of a long text, or a large vocabulary
    monkeypatch.setattr("gptviz.analysis.lens.AT_ONCE", 0)
    lens.cells(lm, lm.trace(TEXT, keep=lens.KEEP), 2, 6)
    assert sizes == [4] * (2 + 2 * lm.config.n_layers)  # the last row's comes first, and again


def test_from_which_row_on_it_is_decided():
    assert lens.settled_from(np.array([4, 4, 2, 4, 4])) == 3
    assert lens.settled_from(np.array([4, 4])) == 0
    assert lens.settled_from(np.array([1, 4])) == 1
    assert lens.leaders(np.array([9, 7, 7, 4, 2, 2])) == [2, 4, 7]
    assert lens.leaders(np.array([5, 5])) == [5]


def test_who_peaks_in_the_middle_stands_before_who_never_did():
    """ndif#161: by the highest probability at any depth, not by the last."""
    logits = torch.tensor([[0.0, 9.0, 1.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert lens.contenders(logits, k=2) == [1, 3, 0, 2]
