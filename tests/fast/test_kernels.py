"""The fast kernels against the book's own path: the same numbers, and nothing left behind."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from gptviz.engine import forward
from gptviz.engine.edits import Edit
from gptviz.engine.generate import generate_batch
from gptviz.engine.sites import SITES
from gptviz.fast import attention as fast_attention, kernels
from gptviz.model import MultiHeadAttention
from tests.conftest import random_lm

LONGEST = 300  # beyond the length up to which attention is computed in one piece


class Always(dict):
    """In the place of the measurements: every linear layer goes through oneDNN."""

    def __contains__(self, _key):
        return True

    def __getitem__(self, _key):
        return True


@pytest.fixture(autouse=True)
def _small_layers_too(monkeypatch):
    """The models of these tests are small, and all that is tested here is for the large ones."""
    monkeypatch.setattr(kernels, "SMALL_WEIGHT", 0)


@pytest.fixture(params=["oneDNN everywhere", "as measured"])
def linears(request, monkeypatch):
    if request.param == "oneDNN everywhere":
        if not kernels._has_onednn():
            pytest.skip("this torch has no oneDNN")
        monkeypatch.setattr(kernels, "_onednn_is_faster", Always())
    return request.param


@pytest.fixture
def book(monkeypatch):
    """Calls a function with the kernels turned off."""

    def call(function, *args, **options):
        with monkeypatch.context() as setting:
            setting.setenv(kernels.SETTING, "off")
            return function(*args, **options)

    return call


def bound(model):
    return [module for module in model.modules() if "forward" in vars(module)]


def off(got, truth):
    """By how much, relative to the largest number."""
    return ((got - truth).abs().max() / truth.abs().max().clamp(min=1e-30)).item()


def worst_difference(one, other):
    """Of all sites and the logits."""
    assert one.sites() == other.sites()
    return max(
        off(one.logits(-1), other.logits(-1)), *(off(one[key], other[key]) for key in one.sites())
    )


def calm(lm):
    """With weights as small as a trained model's: attention that is all or nothing magnifies any rounding."""
    with torch.no_grad():
        for parameter in lm.model.parameters():
            parameter.mul_(0.3)
    return lm


SIZES = [{"activation": "gelu"}, {"n_heads": 1}, {"n_heads": 8, "emb_dim": 40}]
SIZES += [{"qkv_bias": False}, {"linear_bias": False}]
MODELS = [
    calm(random_lm(seed, context_length=LONGEST, **sizes)) for seed, sizes in enumerate(SIZES)
]
halved = Edit("attn", 1, lambda a: 0.5 * a + 0.5 * a.flip(0))
EDITS = [
    (),
    (Edit("attn", 0, "mean", heads=[0]),),
    (halved,),
    (Edit("z", 0, "zero", heads=[0], positions=[-1]),),
    (Edit("q", 1, lambda q: q * 1.5), Edit("v", 0, "mean")),
    (Edit("attn_out", 0, "zero"), Edit("resid_mid", 1, lambda x: x + 1)),
]


@settings(max_examples=40, deadline=None)
@given(
    which=st.integers(0, len(MODELS) - 1),
    n=st.one_of(st.integers(1, 40), st.sampled_from([159, 160, 161, 192, 193, 256, LONGEST])),
    edits=st.sampled_from(EDITS),
    everywhere=st.booleans(),
)
def test_every_site_has_the_numbers_of_the_books_path(which, n, edits, everywhere):
    lm = MODELS[which]
    ids = torch.randint(
        0, lm.config.vocab_size, (n,), generator=torch.Generator().manual_seed(n)
    ).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SETTING, "off")
        truth = lm.trace(ids, edits=edits)
    with pytest.MonkeyPatch.context() as patch:
        if everywhere and kernels._has_onednn():
            patch.setattr(kernels, "_onednn_is_faster", Always())
        got = lm.trace(ids, edits=edits)
        little = lm.trace(ids, ["final"], edits)
    assert worst_difference(got, truth) <= 1e-5
    assert (little["final"] - truth["final"]).abs().max() <= 1e-5 * truth["final"].abs().max()
    for b in range(lm.config.n_layers):
        assert torch.allclose(got["attn", b].sum(-1), torch.ones(lm.config.n_heads, n), atol=1e-5)
        assert not got["attn", b].triu(1).any()  # exactly 0 where it is masked
    assert not bound(lm.model)


def test_the_bundled_model_has_the_numbers_of_the_books_path(mini, linears, book):
    """A trained model's attention magnifies any rounding: the book's own float32 is 8e-6 from float64."""
    ids = mini.encode("The cat sat on the mat, and the dog slept under the old table. " * 20)
    for n in (1, 20, 200):
        assert worst_difference(mini.trace(ids[:n]), book(mini.trace, ids[:n])) <= 3e-5


@pytest.mark.parametrize("n", [1, 7, 160, 161, LONGEST])
def test_a_pass_is_the_same_to_the_bit_whoever_looks_at_it(n, linears):
    lm = MODELS[0]
    ids = [(7 * i) % 500 for i in range(n)]
    batch = torch.tensor([ids])
    inside = ("mlp_pre", "mlp_act")  # oneDNN's own GELU is used where nobody looks at these
    full = lm.trace(ids)
    little = lm.trace(ids, keep=["final"])
    some = lm.trace(ids, keep=[site for site in SITES if site not in inside])
    assert torch.equal(some["final"], little["final"])
    assert torch.equal(some["final"], forward.hidden(lm.model, batch)[0])
    assert (some["final"] - full["final"]).abs().max() <= 1e-6 * full["final"].abs().max()
    logits = forward.last_logits(lm.model, batch)[0]  # in inference mode
    assert torch.allclose(logits, full.logits(-1), atol=1e-5)


@pytest.mark.parametrize("n", [9, 200])
def test_several_texts_at_once(n, linears, book):
    model = MODELS[0].model
    ids = torch.randint(0, 500, (3, n), generator=torch.Generator().manual_seed(n))
    truth = book(forward.hidden, model, ids)
    got = forward.hidden(model, ids)
    assert off(got, truth) <= 1e-5


def test_weights_changed_in_place_by_a_hook_count(linears, book):
    """gptviz never does so, but a person's own hook may: what it wrote is what the values are weighted by."""
    lm = MODELS[0]
    ids = torch.arange(200).view(1, -1)

    def blind_to_the_first_key(_module, args):
        args[0][..., 0] = 0

    hook = lm.model.trf_blocks[0].att.dropout.register_forward_pre_hook(blind_to_the_first_key)
    try:
        truth = book(forward.hidden, lm.model, ids)
        got = forward.hidden(lm.model, ids)
        untouched = forward.last_logits(lm.model, ids)
        logits = book(forward.last_logits, lm.model, ids)
    finally:
        hook.remove()
    assert off(got, truth) <= 1e-5
    assert torch.allclose(untouched, logits, atol=1e-4)
    assert not torch.allclose(got, forward.hidden(lm.model, ids), atol=1e-4)


def test_a_mask_that_is_not_the_books_is_obeyed(book):
    lm = calm(random_lm(1, context_length=LONGEST))
    hidden = torch.ones(LONGEST, LONGEST, dtype=torch.bool).triu(1)
    hidden[:, 100:] = False  # late keys hide from nobody
    hidden[250:, :100] = True
    for block in lm.model.trf_blocks:
        block.att.mask = lambda num_tokens, before=0, device=None: hidden
    ids = torch.arange(LONGEST).view(1, -1)
    truth = book(forward.hidden, lm.model, ids)
    got = forward.hidden(lm.model, ids)
    assert off(got, truth) <= 1e-5


def test_the_kernels_are_used_and_the_setting_turns_them_off(monkeypatch):
    lm = MODELS[0]
    calls = []
    real = kernels.attention
    monkeypatch.setattr(
        kernels, "attention", lambda att, x, **how: calls.append(att) or real(att, x, **how)
    )
    monkeypatch.setattr(kernels, "_onednn_is_faster", Always())
    onednn = kernels._onednn
    monkeypatch.setattr(
        kernels, "_onednn", lambda x, w, *rest: calls.append(w) or onednn(x, w, *rest)
    )
    lm.trace([1, 2, 3])
    assert sum(isinstance(call, MultiHeadAttention) for call in calls) == lm.config.n_layers
    assert len(calls) == lm.config.n_layers * 7  # and six linear layers a block
    calls.clear()
    monkeypatch.setenv(kernels.SETTING, "off")
    lm.trace([1, 2, 3]).logits(-1)
    assert not calls
    monkeypatch.setenv(kernels.SETTING, "fast")
    with pytest.raises(ValueError, match=r"GPTVIZ_KERNELS is 'fast'.*\"on\" or \"off\""):
        lm.trace([1, 2, 3])


def test_what_they_are_not_for_takes_the_books_path(monkeypatch):
    def never(*_args):
        raise AssertionError("a kernel was used")

    monkeypatch.setattr(kernels, "attention", never)
    monkeypatch.setattr(kernels, "_linear", never)
    lm = random_lm()
    model = lm.model
    ids = torch.tensor([[1, 2, 3]])
    with kernels.fast(model):
        model(ids).sum().backward()  # somebody trains
    assert model.tok_emb.weight.grad is not None
    with forward.running(model), torch.autocast("cpu", dtype=torch.bfloat16):
        model(ids)
    model.bfloat16()
    forward.hidden(model, ids)
    model.double()
    forward.hidden(model, ids)


def test_another_thread_on_the_same_model_gets_the_books_path(monkeypatch):
    model = MODELS[0].model
    ids = torch.arange(200).view(1, -1)
    threads = set()
    real = kernels.attention

    def attention(att, x, **how):
        threads.add(threading.get_ident())
        return real(att, x, **how)

    @torch.no_grad()
    def stranger():
        return model(ids)

    monkeypatch.setattr(kernels, "attention", attention)
    truth = stranger()
    with forward.running(model), ThreadPoolExecutor(1) as pool:
        assert torch.equal(pool.submit(stranger).result(), truth)
        model(ids)
    assert threads == {threading.get_ident()}


def test_a_pass_that_raises_and_one_within_another_leave_nothing_behind():
    lm = MODELS[0]
    seen = []

    def inner(x):
        with forward.running(lm.model):
            seen.append(len(bound(lm.model)))
        seen.append(len(bound(lm.model)))  # what was entered again does not end what it is within
        return x

    def burst(_x):
        raise ZeroDivisionError

    lm.trace([3, 4, 5], edits=[Edit("mlp_out", 0, inner)])
    with pytest.raises(ZeroDivisionError):
        lm.trace([3, 4, 5], edits=[Edit("mlp_out", 0, burst)])
    assert seen == [lm.config.n_layers * 8 + 1] * 2  # and the output head
    assert not bound(lm.model)
    assert kernels._this_thread.depth == 0


def test_a_model_copied_or_pickled_during_a_pass_is_whole():
    lm = random_lm()
    ids = torch.tensor([[1, 2, 3]])
    with forward.running(lm.model):
        copied = copy.deepcopy(lm.model)
        pickled = pickle.loads(pickle.dumps(lm.model))
    with torch.no_grad():
        truth = lm.model(ids)
        for parameter in lm.model.parameters():
            parameter.zero_()
        assert torch.equal(copied(ids), truth) and torch.equal(pickled(ids), truth)


def test_a_forward_that_somebody_replaced_stays():
    lm = random_lm()
    att = lm.model.trf_blocks[0].att
    own = att.forward = lambda x: att.out_proj(x)
    forward.hidden(lm.model, torch.tensor([[1, 2]]))
    assert att.forward is own


def test_a_kernel_with_fewer_digits_is_not_taken(monkeypatch):
    x = torch.randn(20, 64)
    weight = torch.randn(32, 64)
    monkeypatch.setattr(kernels, "_onednn_is_faster", {})
    monkeypatch.setattr(
        kernels, "_onednn", lambda x, w, b: (x.bfloat16() @ w.mT.bfloat16()).float()
    )
    assert torch.equal(kernels.linear(x, weight), nn.functional.linear(x, weight))
    assert list(kernels._onednn_is_faster.values()) == [False]


@settings(max_examples=30)
@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(1, 3), st.booleans(), st.integers(0, 99)
)
def test_a_row_in_bfloat16_is_as_exact_as_through_onednn(inputs, outputs, dims, biased, seed):
    generator = torch.Generator().manual_seed(seed)
    x, weight, bias = (
        torch.randn(shape, generator=generator).bfloat16()
        for shape in ((*[1] * (dims - 1), inputs), (outputs, inputs), (outputs,))
    )
    bias = bias if biased else None
    truth = nn.functional.linear(
        x.double(), weight.double(), None if bias is None else bias.double()
    )
    got = kernels.row(x, weight, bias)
    assert got.shape == truth.shape and got.dtype is torch.bfloat16
    assert off(got, truth) <= 2**-7  # its last digit, or the bias's beside it
    with pytest.raises(RuntimeError):
        kernels.row(x, weight[:, 1:], None)
    assert torch.backends.mkldnn.enabled, "the process's switch is as it was"


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_in_bfloat16_writes_by_rows(tied, monkeypatch, book):
    """Alone, several at once, hooks that must see the modules: the same logits, and never another's rows."""
    lm = random_lm(tie_embeddings=tied)
    calm(lm).model.bfloat16()
    rows = []
    real = kernels.row
    monkeypatch.setattr(kernels, "row", lambda *args: rows.append(args[0].shape) or real(*args))
    edited = lm.edited("z.1.2=zero")
    for writer in (lm, edited):
        steps = list(writer.generate([1, 2, 3], 6, seed=4))
        assert len(rows) == 1 + 5 * (6 * lm.config.n_layers + 1), "of the prompt the head only"
        rows.clear()
        ids = [1, 2, 3, *(step.id for step in steps)]
        for n, step in enumerate(steps):
            truth = book(writer.last_logits, torch.tensor([ids[: 3 + n]]))[0].float()
            assert off(step.logits, truth) <= 0.05
    assert not rows, "the setting turns it off"
    first, *_ = generate_batch(lm, [1, 2, 3], 4, [1, 2])
    assert len(rows) == 1 and first is not None, "a product of two rows is oneDNN's"
    assert not bound(lm.model)


@pytest.mark.parametrize("shape", [(5, 0), (0, 8), (2, 0, 8), (8,), (2, 3, 8)])
def test_linear_takes_what_f_linear_takes(shape, linears):
    x = torch.randn(shape)
    weight = torch.randn(6, shape[-1])
    bias = torch.randn(6)
    got = kernels.linear(x, weight, bias)
    assert got.shape == (*shape[:-1], 6)
    assert torch.allclose(got, nn.functional.linear(x, weight, bias), atol=1e-5)


def test_a_large_buffer_is_as_large_as_it_says_and_goes_with_its_tensor():
    buffer = fast_attention._buffer(3, 700, 700)
    assert (
        buffer.shape == (3, 700, 700) and buffer.dtype == torch.float32 and buffer.is_contiguous()
    )
    assert buffer.untyped_storage().nbytes() == 3 * 700 * 700 * 4
    view = buffer[2].fill_(2.0)
    del buffer
    assert (view == 2).all()


def test_by_the_book_runs_the_books_own_lines(lm, linears):
    """What the tab *Code* shows at work is what it prints."""
    seen = []

    def watch(frame, event, arg):
        seen.append(frame.f_code)

    sys.setprofile(watch)
    try:
        with kernels.by_the_book():
            lm.trace(range(5), keep=())
        assert MultiHeadAttention.forward.__code__ in seen
        seen.clear()
        lm.trace(range(5), keep=())
        assert MultiHeadAttention.forward.__code__ not in seen
    finally:
        sys.setprofile(None)
