"""The module that runs a model: what holds around every pass, captured or written on from."""

import threading

import pytest
import torch

from gptviz.engine import forward
from gptviz.engine.forward import Hook
from gptviz.engine.generate import generate
from tests.conftest import random_lm

IDS = torch.tensor([[5, 6, 7, 8]])


def test_a_pass_may_begin_at_any_block_for_several_texts(lm):
    trace = lm.trace(IDS[0].tolist())
    whole = forward.hidden(lm.model, IDS)
    for block in range(lm.config.n_layers):
        stream = trace["resid_pre", block][None]
        assert torch.allclose(forward.hidden_from(lm.model, block, stream), whole, atol=1e-5)
        both = forward.hidden_from(lm.model, block, torch.cat([stream, 2 * stream]))
        assert torch.allclose(both[:1], whole, atol=1e-5) and not torch.allclose(
            both[1:], whole, atol=1e-2
        )
        for row in (0, 2, 3):
            of_row = forward.hidden_from(lm.model, block, stream, row=row)
            assert torch.allclose(of_row, whole[:, row], atol=1e-5)


def test_a_hook_sees_and_replaces_inputs_and_outputs(lm):
    seen = []
    hooks = [
        Hook("trf_blocks.0", "input", lambda x: seen.append(("in", x.clone()))),
        Hook("drop_emb", "output", lambda x: x * 0),
        Hook("final_norm", "output", lambda x: seen.append(("out", x.clone()))),
    ]
    result = forward.hidden(lm.model, IDS, hooks)
    assert [name for name, _ in seen] == ["in", "out"]
    assert not seen[0][1].any() and torch.equal(seen[1][1], result)
    assert not torch.allclose(result, forward.hidden(lm.model, IDS))


def test_the_pass_is_in_eval_mode_however_the_model_was_left_and_however_it_ends():
    lm = random_lm(drop_rate=0.5)
    quiet = forward.last_logits(lm.model, IDS)
    written = [step.id for step in generate(lm, [5, 6, 7], 6, temperature=0)]
    lm.model.train()
    lm.model.trf_blocks[1].eval()  # half of it, as a person may have left it
    before = [module.training for module in lm.model.modules()]
    assert torch.equal(forward.last_logits(lm.model, IDS), quiet)
    assert [step.id for step in generate(lm, [5, 6, 7], 6, temperature=0)] == written
    with pytest.raises(ZeroDivisionError):
        forward.hidden(lm.model, IDS, [Hook("final_norm", "output", lambda x: 1 / 0)])
    assert [module.training for module in lm.model.modules()] == before


def test_no_gradient_is_recorded_and_none_is_asked_for(lm):
    assert not forward.hidden(lm.model, IDS).requires_grad
    assert torch.is_grad_enabled()


def test_a_hook_that_cannot_be_set_leaves_none_behind(lm):
    with pytest.raises(AttributeError):
        forward.hidden(
            lm.model, IDS, [Hook("final_norm", "output", print), Hook("nowhere", "output", print)]
        )
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in lm.model.modules())


def test_a_pass_waits_until_the_lock_is_free(lm):
    done = threading.Event()

    def other():
        forward.last_logits(lm.model, IDS)
        done.set()

    with forward.alone():
        thread = threading.Thread(target=other)
        thread.start()
        forward.last_logits(lm.model, IDS)  # the holder may go on
        assert not done.wait(0.2)
    thread.join(60)
    assert done.is_set()


@pytest.fixture
def three_threads(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(forward, "_pass_threads", None)
    yield
    torch.set_num_threads(before)


def test_in_a_server_only_a_pass_has_all_threads(lm, three_threads, monkeypatch):
    monkeypatch.setattr(forward, "LONG_PASS", 0)
    forward.threads_for_passes_only()
    forward.threads_for_passes_only()  # a second server in the process changes nothing
    seen = []

    def one_run():
        seen.append(torch.get_num_threads())
        look = Hook("final_norm", "output", lambda x: seen.append(torch.get_num_threads()))
        forward.hidden(lm.model, IDS, [look])
        with forward.alone(), forward.alone():
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    for _ in range(2):
        thread = threading.Thread(target=one_run)
        thread.start()
        thread.join(60)
    assert seen == [1, 3, 3, 1] * 2


def test_in_a_server_a_short_pass_has_one_thread(lm, three_threads, monkeypatch):
    monkeypatch.setattr(forward, "_pass_threads", 3)
    weights = sum(p.numel() for p in lm.model.trf_blocks.parameters() if p.dim() == 2)
    for long_pass, threads in ((4 * weights, 3), (4 * weights + 1, 1)):
        monkeypatch.setattr(forward, "LONG_PASS", long_pass)
        seen = []
        look = Hook(
            "final_norm", "output", lambda x, seen=seen: seen.append(torch.get_num_threads())
        )
        forward.hidden(lm.model, IDS, [look])
        assert seen == [threads] and torch.get_num_threads() == 3


def test_a_hook_does_not_look_at_another_threads_pass(lm):
    """Somebody runs the model itself, without a lock, in the middle of ours."""
    seen = []

    def visit(x):
        seen.append(x.shape[1])
        if len(seen) == 1:
            with torch.no_grad():
                stranger = threading.Thread(target=lm.model, args=(torch.arange(9)[None],))
                stranger.start()
                stranger.join(60)

    forward.hidden(
        lm.model, IDS, [Hook("trf_blocks.0", "input", visit), Hook("final_norm", "output", visit)]
    )
    assert seen == [4, 4]
