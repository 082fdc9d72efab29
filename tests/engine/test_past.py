"""Keys and values of what was read: the same logits in pieces as at once, and what surgery does to them."""

import inspect
from functools import partial

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.engine import forward, past
from gptviz.engine.attending import attend
from gptviz.engine.past import Past, past_bytes
from gptviz.fast import kernels, one_token
from tests.analysis.test_surgery import cached, written_out
from tests.conftest import models, random_lm
from tests.models.checkpoints import makers

IDS = torch.randint(0, 8000, (1, 40), generator=torch.Generator().manual_seed(3))


def in_pieces(model, ids, sizes, before=None):
    """The hidden rows of a text that is read piece by piece, and the past that it leaves."""
    found = before or Past(model, len(ids), room=1)
    rows = []
    start = 0
    for size in sizes:
        rows.append(forward.hidden(model, ids[:, start : start + size], past=found))
        start += size
    return torch.cat(rows, dim=1), found


@settings(max_examples=30)
@given(models(), st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 3), st.data())
def test_in_pieces_and_at_once_are_the_same(lm, sizes, batch, data):
    seed = data.draw(st.integers(0, 99))
    half = data.draw(st.booleans())
    ids = torch.randint(0, 200, (batch, sum(sizes)), generator=torch.Generator().manual_seed(seed))
    model = lm.model.bfloat16() if half else lm.model
    on = data.draw(st.sampled_from(["on", "off"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SETTING, on)
        whole = forward.hidden(model, ids)
        pieces, found = in_pieces(model, ids, sizes)
    assert len(found) == found.next == sum(sizes)
    worst = (pieces - whole).abs().max().item() / whole.abs().max().item()
    assert worst < (0.05 if half else 1e-5)  # bfloat16 has three digits


@pytest.mark.parametrize("on", ["on", "off"])
def test_long_queries_after_a_past(on, monkeypatch):
    """Past the length from which the kernel works row block by row block."""
    monkeypatch.setenv(kernels.SETTING, on)
    model = random_lm(context_length=512).model
    ids = torch.randint(0, 8000, (2, 470), generator=torch.Generator().manual_seed(0))
    whole = forward.hidden(model, ids)
    for sizes in ([1, 469], [200, 270], [300, 1, 169]):
        assert (in_pieces(model, ids, sizes)[0] - whole).abs().max() < 1e-4 * whole.abs().max()


def test_transformers_past_key_values_are_the_same_numbers():
    lm = random_lm(tie_embeddings=True)
    theirs = makers.in_transformers(lm.model, lm.config)
    with torch.no_grad():
        out = theirs(IDS[:, :30], use_cache=True)
        then = theirs(IDS[:, 30:33], past_key_values=out.past_key_values, use_cache=True)
    ours = Past(lm.model)
    forward.last_logits(lm.model, IDS[:, :30], ours)
    logits = forward.last_logits(lm.model, IDS[:, 30:33], ours)
    assert torch.allclose(logits, then.logits[:, -1], atol=1e-4, rtol=1e-4)
    for block in range(lm.config.n_layers):
        layer = then.past_key_values.layers[block]
        assert torch.allclose(ours.keys(block), layer.keys, atol=1e-4)
        assert torch.allclose(ours.values(block), layer.values, atol=1e-4)


def test_attend_is_the_books_attention_where_nothing_came_before(lm):
    att = lm.model.trf_blocks[0].att
    x = torch.randn(2, 9, lm.config.emb_dim)
    before = Past(lm.model, 2)
    before.make_room(9, 64)
    with torch.no_grad():
        assert torch.allclose(attend(att, x, 0, partial(before.append, 0)), att(x), atol=1e-5)
    assert len(inspect.getsource(attend).splitlines()) < 25, "a learner is shown these lines"


def test_the_memory_is_what_the_config_says(lm):
    found = Past(lm.model, batch=2, room=16)
    forward.hidden(lm.model, IDS[:, :10].repeat(2, 1), past=found)
    real = [part for block in range(2) for part in (found.keys(block), found.values(block))]
    assert (
        found.nbytes == sum(4 * part.numel() for part in real) == past_bytes(lm.config, 10, batch=2)
    )
    assert (
        found.nbytes
        < found.memory().untyped_storage().nbytes()
        == past_bytes(lm.config, 16, batch=2)
    )
    assert past_bytes(lm.config, 10, bytes_a_number=2) * 4 == found.nbytes


def test_a_cut_shares_its_memory_until_it_grows_and_nobody_writes_into_anothers(lm):
    model = lm.model
    _, whole = in_pieces(model, IDS[:, :20], [20], Past(model, room=64))
    keys = whole.keys(1).clone()
    branch = whole.cut(12)
    same = whole.cut(20)
    assert branch.memory().data_ptr() == whole.memory().data_ptr() and (
        len(branch),
        branch.next,
    ) == (12, 12)
    other = forward.hidden(model, IDS[:, 30:33], past=branch)
    assert torch.equal(whole.keys(1), keys) and len(whole) == 20
    assert torch.equal(branch.keys(1)[:, :, :12], keys[:, :, :12])
    direct = forward.hidden(model, torch.cat([IDS[:, :12], IDS[:, 30:33]], dim=1))[:, 12:]
    assert torch.allclose(other, direct, atol=1e-4)
    forward.hidden(model, IDS[:, 20:22], past=whole)  # in place: the memory's end is its own
    # no more: it must not stand where `whole` has its own
    forward.hidden(model, IDS[:, 35:36], past=same)
    assert whole.memory().data_ptr() != same.memory().data_ptr()
    at_once = forward.hidden(model, torch.cat([IDS[:, :20], IDS[:, 35:38]], dim=1))[:, 21:]
    assert torch.allclose(forward.hidden(model, IDS[:, 36:38], past=same), at_once, atol=1e-4)
    on = forward.hidden(model, IDS[:, 22:25], past=whole)
    assert torch.allclose(on, forward.hidden(model, IDS[:, :25])[:, 22:], atol=1e-4)


def test_rows_of_a_batch_are_copied_and_repeated(lm):
    texts = torch.cat([IDS[:, :8], IDS[:, 8:16]])
    found = Past(lm.model, 2)
    forward.hidden(lm.model, texts, past=found)
    beams = found.rows([1, 1, 0])
    logits = forward.last_logits(lm.model, torch.tensor([[5], [6], [7]]), beams)
    for row, (text, last) in enumerate([(1, 5), (1, 6), (0, 7)]):
        ids = torch.cat([texts[text], torch.tensor([last])])[None]
        assert torch.allclose(logits[row], forward.last_logits(lm.model, ids)[0], atol=1e-4)
    assert len(found) == 8 and found.batch == 2


def test_surgery(lm):
    """Against attention written out over keys and values of a trace; freezing is tests/analysis's."""
    ids = IDS[0, :12].tolist()
    order = list(range(11))
    cache = cached(lm, ids)
    found = Past(lm.model)
    forward.hidden(lm.model, torch.tensor([ids[:-1]]), past=found)
    plain = forward.last_logits(lm.model, torch.tensor([ids]))[0]
    swap = [0, 7, 2, 3, 4, 5, 6, 1, 8, 9, 10]
    for changed, keys, values, position in (
        (found.without([0, 5]), [p for p in order if p not in (0, 5)], None, 11),
        (found.without([-1]), order[:-1], None, 11),
        (found.without([2]), [0, 1, *range(3, 11)], None, 4),
        (found.swapped(1, -4), order, swap, 11),
    ):
        now = forward.last_logits(lm.model, torch.tensor([ids[-1:]]), changed, position)[0]
        moved = [(k[:, keys], v[:, values or keys]) for k, v in cache]
        assert torch.allclose(now, written_out(lm, moved, ids[-1], position), atol=1e-3, rtol=1e-4)
        assert not torch.allclose(now, plain, atol=1e-2)
    for same in (found.cut(11), found.swapped(1, 7, keys=True), found):  # which was left as it is
        now = forward.last_logits(lm.model, torch.tensor([ids[-1:]]), same)[0]
        assert torch.allclose(now, plain, atol=1e-4)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda found, model: found.cut(5), "cannot be cut to 5"),
        (lambda found, model: found.without([4]), "no token 4"),
        (
            lambda found, model: forward.hidden(model, IDS[:, :2].repeat(2, 1), past=found),
            "2 texts given",
        ),
        (
            lambda found, model: forward.hidden(
                model, torch.zeros(1, 61, dtype=torch.long), past=found
            ),
            "64",
        ),
        (lambda found, model: forward.last_logits(model, IDS[:, :1], found, position=64), "64"),
        (
            lambda found, model: forward.last_logits(model, IDS[:, :1], found, position=-1),
            "position -1",
        ),
    ],
)
def test_what_does_not_fit_is_said_and_changes_nothing(lm, attempt, words):
    found = Past(lm.model)
    forward.hidden(lm.model, IDS[:, :4], past=found)
    with pytest.raises(ValueError, match=words):
        attempt(found, lm.model)
    assert len(found) == found.next == 4
    assert all("forward" not in block.att.__dict__ for block in lm.model.trf_blocks)


def test_a_pass_that_fails_half_way_leaves_the_past_as_it_was(lm):
    found = Past(lm.model)
    forward.hidden(lm.model, IDS[:, :9], past=found)
    with pytest.raises(ZeroDivisionError):
        hook = forward.Hook("trf_blocks.1.ff", "output", lambda x: 1 / 0)
        forward.hidden(lm.model, IDS[:, 20:23], [hook], found)
    assert len(found) == 9 and not past._this_thread.blocks
    rows = forward.hidden(lm.model, IDS[:, 9:12], past=found)
    assert torch.allclose(rows, forward.hidden(lm.model, IDS[:, :12])[:, 9:], atol=1e-4)


@pytest.mark.parametrize("half", [False, True])
def test_a_token_that_nobody_watches_goes_the_short_way_to_the_same_bits(half, monkeypatch):
    ways = []
    real = one_token.hidden
    monkeypatch.setattr(one_token, "hidden", lambda *args: ways.append(1) or real(*args))
    for changes in ({}, {"activation": "gelu", "linear_bias": False, "norm_bias": False}):
        model = random_lm(**changes).model
        logits = []
        if half:
            model.bfloat16()
        for watched in (False, True):
            found = Past(model, 2)
            forward.hidden(model, IDS[:, :20].view(2, 10), past=found)
            ways.clear()
            hooks = (
                [forward.Hook("trf_blocks.1.ff.layers.1", "input", lambda x: None)]
                if watched
                else []
            )
            logits.append(forward.hidden(model, IDS[:, 20:22].view(2, 1), hooks, found))
            assert ways == ([] if watched else [1])
        if half:  # its attention is worked out in float32
            assert (logits[0] - logits[1]).abs().max() < 0.03 * logits[0].abs().max()
        else:
            assert torch.equal(*logits)


def hiding(query, key):
    """A mask that hides one key from one query, beside the later ones from all."""

    def mask(num_tokens, before=0, device=None):
        hidden = torch.ones(num_tokens, before + num_tokens, dtype=torch.bool, device=device).triu(
            before + 1
        )
        if before <= query < before + num_tokens:
            hidden[query - before, key] = True
        return hidden

    return mask


@pytest.mark.parametrize(
    "what", ["mask", "forward", "subclass", "off", "float64", "two tokens", "global"]
)
def test_the_short_way_is_for_the_books_own_lines_only(what, monkeypatch):
    """Whatever somebody has changed on a model is run: never what we think is there."""
    model = random_lm().model
    ids = IDS[:, 9:10]
    att = model.trf_blocks[0].att
    found = Past(model)
    if what == "mask":
        att.mask = hiding(9, 3)
    forward.hidden(model, IDS[:, :9], past=found)
    monkeypatch.setattr(one_token, "hidden", lambda *_: pytest.fail("the short way was taken"))
    if what == "forward":
        monkeypatch.setattr(model.trf_blocks[1].ff, "forward", lambda x: x)
    elif what == "subclass":
        model.trf_blocks[1].norm1.__class__ = type("Mine", (type(model.final_norm),), {})
    elif what == "off":
        monkeypatch.setenv(kernels.SETTING, "off")
    elif what == "float64":
        model.double()
        found = Past(model)
    elif what == "two tokens":
        ids = IDS[:, 9:11]
    elif what == "global":
        monkeypatch.setattr(one_token.torch_modules, "_has_any_global_hook", lambda: True)
    forward.last_logits(model, ids, found)
    monkeypatch.undo()
