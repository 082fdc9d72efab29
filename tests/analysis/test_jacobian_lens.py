"""The Jacobian lens against torch's own Jacobian, models that are linear, TransformerLens, and its file."""

import numpy as np
import pytest
import torch

from gptviz.analysis import jacobian_lens as jl, lens
from gptviz.engine.edits import Edit
from gptviz.engine.sample import passages
from gptviz.files import disk_cache
from tests.analysis.written_out import Stopped, Told
from tests.conftest import random_lm
from tests.engine.test_trace import plain_forward
from tests.models.checkpoints import makers

SKIP = 2
TEXTS = [[5, 300, 17, 17, 4000, 8, 300], [1, 2, 3, 4, 5], [99, 7, 7, 99, 12, 12]]


def small(**changes):
    return random_lm(emb_dim=8, n_heads=2, context_length=8, **changes)


def rest(lm, row, stream):
    """The stream after the last block, from the stream (T, D) at a row, by the blocks' own modules."""
    site, block = row
    blocks = list(lm.model.trf_blocks)
    x = stream[None]
    if site == "embed":
        first = 0
    elif site == "resid_mid":
        x = x + blocks[block].ff(blocks[block].norm2(x))
        first = block + 1
    else:
        first = block + 1
    for part in blocks[first:]:
        x = part(x)
    return x[0]


@pytest.mark.parametrize("changes", [{}, {"n_layers": 3, "qkv_bias": False}])
def test_a_matrix_is_the_mean_jacobian_that_torch_gives(changes):
    lm = small(**changes)
    fitted = jl.fit(lm, TEXTS, skip=SKIP)
    sites = [plain_forward(lm, ids) for ids in TEXTS]
    last = ("resid_post", lm.config.n_layers - 1)
    for row in lens.row_keys(lm.config)[:-1]:
        jacobians = []
        for ids, site in zip(TEXTS, sites, strict=True):
            whole = torch.autograd.functional.jacobian(
                lambda x, row=row: rest(lm, row, x), site[row]
            )  # (T, D, T, D): of each target, by each source
            counted = range(SKIP, len(ids) - 1)
            sums = [sum(whole[target, :, t] for target in counted if target >= t) for t in counted]
            jacobians.append(torch.stack(sums).mean(0))
        expected = torch.stack(jacobians).mean(0)
        scale = float(expected.abs().max())
        assert torch.allclose(fitted.maps[row], expected, rtol=1e-4, atol=1e-5 * scale)
        h, end = (
            torch.stack([site[key][SKIP:-1].mean(0) for site in sites]).mean(0)
            for key in (row, last)
        )
        assert torch.allclose(fitted.constants[row], end - expected @ h, atol=1e-4 * scale)


def test_where_the_rest_of_the_model_is_linear_the_lens_is_exact():
    """Block 1 adds a constant: from block 0 on, J is 1, c is the constant, and each row is the output."""
    lm = random_lm()
    block = lm.model.trf_blocks[1]
    with torch.no_grad():
        block.att.out_proj.weight.zero_()
        block.ff.layers[2].weight.zero_()
    fitted = jl.fit(lm, [list(range(20)), list(range(50, 80))], skip=SKIP)
    row = ("resid_post", 0)
    added = block.att.out_proj.bias + block.ff.layers[2].bias
    assert torch.allclose(fitted.maps[row], torch.eye(32), atol=1e-6)
    assert torch.allclose(fitted.constants[row], added.detach(), atol=1e-5)
    jl.keep(fitted)
    t = lm.trace([5, 300, 17, 4000], keep=lens.KEEP)
    logits = jl.jacobian_lens(t, lm)
    assert logits.shape == (5, lm.config.vocab_size)
    assert torch.equal(logits[-1], t.logits(-1))
    # c is kept as it is, and 1 is a number of float16
    assert torch.allclose(logits[2], t.logits(-1), atol=1e-4)
    # without the constant the same row is another
    assert float((jl.jacobian_lens(t, lm, constant=False)[2] - t.logits(-1)).abs().max()) > 0.1


def test_of_a_matrix_that_changes_nothing_it_is_the_logit_lens_to_the_bit():
    lm = random_lm(seed=3)
    rows = lens.row_keys(lm.config)[:-1]
    digest = jl.fit(lm, TEXTS, skip=SKIP).weights
    same = jl.JacobianLens(
        {row: torch.eye(32) for row in rows}, {row: torch.zeros(32) for row in rows}, digest, 1, 8
    )
    jl.keep(same)
    t = lm.trace(TEXTS[0], keep=lens.KEEP)
    assert torch.equal(jl.jacobian_lens(t, lm, 3), lens.logit_lens(t, lm.model, 3))
    ours, plain = (of.cells(lm, t, 1, 5) for of in (jl, lens))
    for name, value in vars(plain).items():
        assert np.array_equal(getattr(ours, name), value)
    ours, plain = (of.followed_cells(lm, t, 1, 5, (7, 8)) for of in (jl, lens))
    assert np.array_equal(ours.ranks, plain.ranks)
    assert jl.depths(lm, t, 3).contenders == lens.depths(lm, t, 3).contenders


def test_cells_and_depths_are_its_logits():
    lm = random_lm(seed=4)
    jl.keep(jl.fit(lm, TEXTS, skip=SKIP))
    t = lm.trace(TEXTS[0], keep=lens.KEEP)
    cells = jl.cells(lm, t, 2, 5, 4)
    followed = jl.followed_cells(lm, t, 2, 5, (7, 4000))
    for number, position in enumerate(range(2, 5)):
        p = jl.jacobian_lens(t, lm, position).softmax(-1)
        assert np.allclose(cells.probabilities[:, number], p.topk(4).values, atol=1e-6)
        assert np.allclose(followed.probabilities[:, number], p[:, [7, 4000]], atol=1e-6)
        assert torch.equal(jl.depths(lm, t, position).logits.softmax(-1), p)


def test_the_same_texts_give_the_same_lens_whatever_is_edited():
    lm = random_lm(seed=1)
    one = jl.fit(lm, TEXTS, skip=SKIP)
    other = jl.fit(lm.edited(Edit("z", 0, "zero")), TEXTS, skip=SKIP)
    assert all(torch.equal(one.maps[row], other.maps[row]) for row in one.maps)
    assert all(torch.equal(one.constants[row], other.constants[row]) for row in one.maps)


def test_an_edit_of_the_pass_is_read_with_the_same_lens():
    lm = random_lm(seed=5)
    jl.keep(jl.fit(lm, TEXTS, skip=SKIP))
    edited = lm.edited("mlp_out.1=zero")
    t = edited.trace(TEXTS[0], keep=lens.KEEP)
    rows = jl.jacobian_lens(t, edited)
    assert torch.equal(rows[-1], t.logits(-1))
    before = jl.jacobian_lens(lm.trace(TEXTS[0], keep=lens.KEEP), lm)
    assert torch.equal(rows[:4], before[:4]) and not torch.equal(rows[-1], before[-1])


def test_it_is_kept_for_these_weights_and_no_others(tmp_path):
    lm = random_lm(seed=2)
    assert jl.known(lm) is None
    with pytest.raises(ValueError, match="no lens was fitted to these weights of random"):
        jl.of(lm)
    fitted = jl.fit(lm, TEXTS, skip=SKIP)
    path = jl.keep(fitted, tmp_path / "lens.safetensors")
    assert jl.known(lm) is None
    for read in (jl.load(lm, path), jl.load(random_lm(seed=2), path)):
        for row, matrix in fitted.maps.items():
            assert torch.equal(read.maps[row], matrix.half().float())
            assert torch.equal(read.constants[row], fitted.constants[row])
        assert (read.texts, read.length) == (3, 7)
    jl.keep(fitted)
    assert jl.known(lm) is not None
    with torch.no_grad():
        lm.model.trf_blocks[0].att.W_key.weight[3, 4] += 1e-3
    assert jl.known(lm) is None
    with pytest.raises(ValueError, match="was fitted to other weights than these of random"):
        jl.load(lm, path)
    path.write_bytes(b"no lens")
    with pytest.raises(ValueError, match="is no lens of"):
        jl.load(lm, path)


def test_progress_can_stop_it():
    told = Told(stop_after=2)
    with pytest.raises(Stopped):
        jl.fit(small(), TEXTS, skip=SKIP, progress=told)
    assert told == [(1, 3), (2, 3)]


@pytest.mark.parametrize("texts", [[], [[1, 2, 3]], [TEXTS[0], [1, 2, 3]]])
def test_what_it_cannot_be_fitted_to(texts):
    with pytest.raises(ValueError, match="give texts of at least 4 tokens"):
        jl.fit(small(), texts, skip=SKIP)


def test_a_model_that_cannot_read_the_sample():
    with pytest.raises(ValueError, match="cannot read the sample of books"):
        jl.texts_of(random_lm(context_length=16))


def test_no_text_of_the_trial_is_one_of_the_fit(mini):
    fitted_to = set(jl.texts_of(mini, 10**6))
    assert len(jl.texts_of(mini)) == jl.TEXTS <= len(fitted_to)
    assert not fitted_to & set(jl.pieces(mini, passages(), 10**6))
    assert {len(ids) for ids in fitted_to} == {jl.LENGTH}


def test_the_lens_that_ships_is_minis(mini):
    """One output of the last block, by plain autograd over all texts, is its row of every matrix."""
    fitted = jl.known(mini)
    assert fitted is not None and fitted.texts == jl.TEXTS
    assert (disk_cache.ASSETS / "mini" / jl.SHIPPED).stat().st_size < 1_600_000
    output = 100
    rows = lens.row_keys(mini.config)[:-1]
    sums = {row: torch.zeros(mini.config.emb_dim) for row in rows}
    for ids in jl.texts_of(mini):
        site = {key: value for key, value in plain_forward(mini, list(ids)).items() if key in sums}
        # two rows are enough: the embedding's, and one in the middle of a block
        for row in (("embed", None), ("resid_mid", 3)):
            x = site[row].detach().requires_grad_()
            end = rest(mini, row, x)[jl.SKIP : -1, output].sum()
            (gradient,) = torch.autograd.grad(end, x)
            sums[row] += gradient[jl.SKIP : -1].mean(0) / jl.TEXTS
    for row in (("embed", None), ("resid_mid", 3)):
        near = 2e-3 * float(sums[row].abs().max())
        assert torch.allclose(fitted.maps[row][output], sums[row], atol=near)


def test_transformer_lens_has_the_same_matrices_and_logits(tmp_path, monkeypatch):
    """Our weights in GPT-2, in TransformerLens: its lens has no constant, and one matrix a block."""
    bridge = pytest.importorskip("transformer_lens.model_bridge").TransformerBridge
    analysis = pytest.importorskip("transformer_lens.tools.analysis")
    lm = random_lm(vocab_size=300, n_layers=3)
    texts = [[n * i % 300 for i in range(1, 24)] for n in (7, 11, 13)]
    truth = makers.in_transformers(lm.model, lm.config).eval()
    truth.save_pretrained(tmp_path)
    theirs = bridge.boot_transformers(str(tmp_path), hf_model=truth, device="cpu")
    asked = {str(number): torch.tensor([ids]) for number, ids in enumerate(texts)}
    monkeypatch.setattr(theirs, "to_tokens", asked.__getitem__, raising=False)
    found = analysis.JacobianLens.fit(
        theirs, [*asked], corpus="test", skip_first_positions=SKIP, show_progress=False
    )
    fitted = jl.fit(lm, texts, skip=SKIP)
    read = found.readout(theirs, asked["0"], return_full_logits=True)
    t = lm.trace(texts[0], keep=lens.KEEP)
    ours = lens.logits_by(fitted.without_constant, t, lm.model, -1)
    for block in (0, 1):
        assert torch.allclose(fitted.maps["resid_post", block], found.jacobians[block], atol=1e-5)
    for block in (0, 1, 2):
        assert torch.allclose(read.lens_logits[block][-1], ours[2 + 2 * block], atol=1e-4)
