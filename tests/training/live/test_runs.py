"""Runs that are watched: the same twice, paused, forked, thinned, with parts off, and as files."""

import errno
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import gptviz
from gptviz import GPTModel
from gptviz.analysis.head_formulas import induction_score, previous_token_score
from gptviz.lessons.dropout import drop
from gptviz.training.live import LiveRun, begin, fork, model_files, train, work
from gptviz.training.live.config import V2, V3
from gptviz.training.live.parts import SteppedDropout, make_model, set_noise
from gptviz.training.live.tasks import VALIDATION_BATCHES
from gptviz.training.loop import validation_windows
from tests.training.live.conftest import tiny


def points(run):
    return run.curve.drop(columns="seconds")


def trained(folder, stop_at=None, text=None, **changes):
    return train(begin(folder, tiny(**changes), text).folder, stop_at)


def test_a_seeded_run_gives_the_same_curve_twice_and_another_seed_another(done, tmp_path):
    again = trained(tmp_path / "again")
    assert points(again).equals(points(done)) and again.measures == done.measures
    assert list(done.curve["step"]) == [2, 4, 6]
    assert not points(trained(tmp_path / "other", seed=5)).equals(points(done))


def test_a_pause_between_two_points_changes_nothing(done, tmp_path):
    run = trained(tmp_path / "parts", stop_at=3)
    paused = run.status
    assert paused.state == "paused" and paused.step == 3
    torch.rand(3)
    train(run.folder)
    assert points(run).equals(points(done)) and run.measures == done.measures
    assert run.status.state == done.status.state == "done"
    for status, seconds in (
        (paused, paused.seconds),
        (run.status, run.status.seconds - paused.seconds),
    ):
        # of its own steps
        assert status.tokens_per_second * seconds == pytest.approx(3 * 4 * 16, rel=0.01)


def test_measures_are_those_of_the_models_that_are_kept(done):
    assert [m.step for m in done.measures] == [0, 2, 4, 6] == [s.step for s in done.snapshots]
    assert [m.train for m in done.measures] == [None, *done.curve["train"]]
    assert [m.validation for m in done.measures[1:]] == list(done.curve["validation"])
    windows = validation_windows(done.task.validation, 4, VALIDATION_BATCHES).flatten(0, 1)
    for step in (0, 4):
        lm = done.lm(step)
        attn = done.attention(step)
        assert attn.shape == (len(done.task.probes), 2, 2, 16, 16)
        scores = []
        for probe, kept in zip(done.task.probes, attn, strict=True):
            trace = lm.trace(list(probe.ids), keep=["attn"])
            truth = trace["attn"]  # (L, H, T, T)
            assert np.allclose(kept, truth, atol=1e-5)
            scores.append((induction_score(truth, probe.period), previous_token_score(truth)))
        found = next(m for m in done.measures if m.step == step)
        means = np.mean(scores, axis=0)
        assert np.allclose([found.induction, found.previous_token], means, atol=1e-4)
        with torch.no_grad():
            logits = lm.model(windows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        assert found.validation == pytest.approx(loss.item(), abs=1e-4)
        score, block, head = found.best_induction
        assert score == max(map(max, found.induction)) == found.induction[block][head]
        assert len(lm.encode(done.task.prompt + found.sample)) == len(done.task.prompt) + 40


def test_a_fork_that_mutes_nothing_is_the_run_itself(done, tmp_path):
    same = train(fork(done, 2, tmp_path / "same").folder)
    assert points(same).equals(points(done)) and same.measures == done.measures
    assert same.origin.step == 2 and done.origin is None


def test_a_fork_goes_on_without_a_head(done, tmp_path):
    off = train(fork(done, 4, tmp_path / "off", mute=((1, 0),), steps=8).folder)
    assert list(off.curve["step"]) == [2, 4, 6, 8] and off.config.muted == ((1, 0),)
    assert off.measures[:2] == done.measures[:2]  # before the fork it is the same run
    assert off.measures[2].step == 4 and off.measures[2].validation != done.measures[2].validation
    ids = list(off.task.probes[0].ids)
    for step in (4, 8):  # where it goes on, and later: in any program that opens it
        lm = off.lm(step)
        plain = lm.trace(ids)
        muted = lm.trace(ids, edits=[gptviz.Edit("z", 1, "zero", [0])])
        assert torch.equal(plain["attn_out", 1], muted["attn_out", 1])
        assert lm.model.trf_blocks[1].att.out_proj.weight[:, :4].abs().max() == 0
        assert lm.model.trf_blocks[1].att.out_proj.weight[:, 4:].abs().min() > 0
    again = train(fork(off, 6, tmp_path / "more", mute=((0, 1),), steps=7).folder)
    assert again.config.muted == ((0, 1), (1, 0)) and again.status.step == 7


def test_a_fork_of_what_is_not_there_is_a_sentence(done, tmp_path):
    with pytest.raises(ValueError, match="no snapshot of step 3; there are 0, 2, 4, 6"):
        fork(done, 3, tmp_path / "a")
    with pytest.raises(ValueError, match="steps must be more than that"):
        fork(done, 6, tmp_path / "b")
    with pytest.raises(ValueError, match="has a training run already"):
        begin(done.folder, tiny())
    with pytest.raises(ValueError, match="no training run was begun there"):
        LiveRun(tmp_path)


@pytest.mark.parametrize(
    "off", ["layer_norm", "shortcut", "positions", "attention", "feed_forward"]
)
def test_a_part_that_is_off_is_off(off, tmp_path):
    run = trained(tmp_path / off, steps=2, **{off: False})
    lm = run.own_lm(2)
    ids = torch.tensor([run.task.probes[0].ids])
    block = lm.model.trf_blocks[0]
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        if off == "positions":
            assert lm.model.pos_emb.weight.abs().max() == 0
        if off == "feed_forward":
            assert torch.equal(block(x), block.att(block.norm1(x)) + x)
        if off == "attention":
            assert torch.equal(block(x), x + block.ff(block.norm2(x)))
            assert run.measures[-1].off == ((0, 0), (0, 1), (1, 0), (1, 1))
        if off == "shortcut":
            assert torch.allclose(block(x), block.ff(block.norm2(block.att(block.norm1(x)))))
        if off == "layer_norm":
            mid = block.att(x) + x
            assert torch.allclose(block(x), block.ff(mid) + mid)
        if run.config.why_not_elsewhere is None:  # the files say all of it
            (tmp_path / "files").mkdir()
            for name, content in model_files(run, 2).items():
                (tmp_path / "files" / name).write_bytes(content)
            loaded = gptviz.load(tmp_path / "files")
            assert torch.allclose(loaded.model(ids), lm.model(ids), atol=1e-6)
        else:
            with pytest.raises(ValueError, match="So it stays on this page"):
                model_files(run, 2)
    written = lm.encode(run.task.prompt)
    for _ in run.measures[-1].sample:  # greedily, by nothing but the model itself
        with torch.no_grad():
            written.append(int(lm.model(torch.tensor([written[-16:]]))[0, -1].argmax()))
    assert lm.decode(written) == run.task.prompt + run.measures[-1].sample


@pytest.mark.parametrize(
    ("attention", "feed_forward"), [(True, False), (False, True), (False, False), (True, True)]
)
def test_without_shortcuts_an_absent_part_hands_the_stream_on(attention, feed_forward, tmp_path):
    run = trained(
        tmp_path / "a", steps=1, shortcut=False, attention=attention, feed_forward=feed_forward
    )
    block = run.own_lm(1).model.trf_blocks[0]
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        expected = block.att(block.norm1(x)) if attention else x
        if feed_forward:
            expected = block.ff(block.norm2(expected))
        assert torch.equal(block(x), expected)


@pytest.mark.parametrize("config", [V2, V3])
def test_the_notebooks_models_compute_what_the_notebook_computes(config, tmp_path):
    run = train(begin(tmp_path / "run", replace(config, steps=3, every=3)).folder)
    model = run.own_lm(3).model
    ids = torch.tensor([run.task.probes[0].ids])
    with torch.no_grad():
        x = model.tok_emb(ids) + model.pos_emb(torch.arange(ids.shape[1]))  # (b, T, D)
        if config is V3:  # the notebook's Head, and out_proj, which its last layer takes in
            att = model.trf_blocks[0].att
            q = att.W_query(x)
            k = att.W_key(x)
            v = att.W_value(x)
            scores = q @ k.transpose(-2, -1) * (32**-0.5)
            weights = scores.masked_fill(torch.ones(16, 16).tril() == 0, -torch.inf).softmax(dim=-1)
            x = att.out_proj(weights @ v)
        assert torch.allclose(model(ids), x @ model.out_head.weight.T, atol=1e-6)
    assert run.measures[-1].validation < run.measures[0].validation


def test_relu_stands_where_gelu_stood(tmp_path):
    run = trained(tmp_path / "relu", activation="relu")
    ff = run.own_lm(6).model.trf_blocks[1].ff
    x = torch.randn(1, 5, 8)
    up = ff.layers[0]
    down = ff.layers[2]
    with torch.no_grad():
        assert torch.equal(ff(x), down(up(x).clamp(min=0)))
    assert not points(run).equals(points(trained(tmp_path / "gelu")))
    with pytest.raises(ValueError, match="has ReLU where a GPTModel has GELU"):
        run.lm(6)


def test_dropout_is_of_the_step_and_of_nothing_else(tmp_path):
    """The same curve whatever else draws random numbers, paused between two points, and forked."""
    whole = trained(tmp_path / "whole", dropout=0.4)
    run = trained(tmp_path / "parts", stop_at=3, dropout=0.4)
    torch.rand(3)
    train(run.folder)
    assert points(run).equals(points(whole)) and run.measures == whole.measures
    same = train(fork(whole, 2, tmp_path / "same").folder)
    assert points(same).equals(points(whole))
    plain = trained(tmp_path / "plain")
    assert plain.measures[0] == whole.measures[0]  # nothing is dropped where it is measured
    assert not points(plain).equals(points(whole))
    assert whole.lm(6).config.drop_rate == 0.4


def test_dropout_is_torchs_in_the_books_three_places():
    config = tiny(dropout=0.25)
    noise = torch.Generator()
    gpt = config.gpt_config(64)
    model = make_model(config, gpt, noise).train()
    dropped = {name for name, one in model.named_modules() if isinstance(one, SteppedDropout)}
    of_book = {
        name for name, one in GPTModel(gpt).named_modules() if isinstance(one, torch.nn.Dropout)
    }
    assert dropped == of_book and len(dropped) == 5  # of the embedding, and twice in each block
    x = torch.randn(40, 50)
    set_noise(noise, 123, 7)
    found = model.drop_emb(x)
    set_noise(noise, 123, 7)
    expected = drop(x, 0.25, noise.initial_seed()).after
    assert torch.allclose(found, expected) and (found == 0).float().mean() == pytest.approx(
        0.25, abs=0.05
    )
    for seed, step in ((123, 8), (124, 7)):
        set_noise(noise, seed, step)
        assert not torch.equal(model.drop_emb(x), found)
    assert model.eval().drop_emb(x) is x


def test_weight_decay_makes_weights_smaller(tmp_path):
    sizes = []
    for decay in (0.0, 1.0):
        run = trained(tmp_path / f"decay{decay}", weight_decay=decay, learning_rate=0.05, warmup=0)
        sizes.append(float(run.lm(6).model.tok_emb.weight.norm()))
        assert run.kept.state(6)["recipe"]["weight_decay"] == decay
    assert sizes[1] < 0.9 * sizes[0]


def test_model_pth_makes_the_round_trip(done, tmp_path):
    files = model_files(done, 6)
    assert sorted(files) == ["config.json", "meta.pkl", "model.pth"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    mine = done.lm(6)
    loaded = gptviz.load(tmp_path)
    text = "Any text will do, now!"[:16]
    assert torch.equal(loaded.trace(text).logits(-1), mine.trace(text).logits(-1))
    assert loaded.config == mine.config and loaded.decode(loaded.encode(text)) == text
    state = torch.load(tmp_path / "model.pth", weights_only=True)  # as the book does
    book = gptviz.model.GPTModel(json.loads(files["config.json"]))
    book.load_state_dict(state)
    alone = gptviz.load(tmp_path / "model.pth", n_heads=2, tokenizer=str(tmp_path / "meta.pkl"))
    assert torch.equal(alone.trace(text).logits(-1), mine.trace(text).logits(-1))


def test_snapshots_stay_within_their_bytes_and_say_so(tmp_path):
    run = begin(tmp_path / "thin", tiny(steps=12, every=1))
    train(run.folder, stop_at=1)
    one = run.kept.nbytes / 2
    train(run.folder, max_bytes=int(5.5 * one))
    assert run.kept.nbytes <= 5.5 * one
    assert [s.step for s in run.snapshots] == [0, 4, 8, 12]
    assert "of every 4th step" in run.kept.thinned
    assert [m.step for m in run.measures] == list(range(13))  # what was measured is never let go
    assert run.nbytes > run.kept.nbytes


def test_a_learning_rate_without_bounds_ends_in_a_sentence(tmp_path):
    run = trained(tmp_path / "wild", stop_at=1, learning_rate=10.0)
    checkpoint = tmp_path / "wild" / "checkpoint.pt"
    state = torch.load(checkpoint, weights_only=True)
    state["model"]["out_head.weight"] *= 1e38
    torch.save(state, checkpoint)
    with pytest.raises(ValueError, match="A learning rate of 10 is too high"):
        train(run.folder)
    assert (
        run.status.state == "failed"
        and "At step 2 the loss was no number any more" in run.status.said
    )
    assert [m.step for m in run.measures] == [0]


def test_a_wish_is_heard_after_the_step(tmp_path):
    run = begin(tmp_path / "asked", tiny())
    run.ask("stop")
    train(run.folder)
    assert run.status.state == "stopped" and run.status.step == 1
    run.ask(None)
    train(run.folder, stop_at=2)
    assert run.status.state == "paused" and run.status.step == 2


def test_a_text_of_ones_own_stays_as_it_was_typed(tmp_path):
    text = "the cat sat on the mat.\r\n" * 8
    run = trained(tmp_path / "own", text=text, task="own", steps=2)
    assert run.task.characters == "".join(sorted(set(text)))
    assert set(run.measures[-1].sample) <= set(text)
    forked = train(fork(run, 0, tmp_path / "forked").folder)
    assert points(forked).equals(points(run))


def test_a_training_on_a_full_disk_says_so(tmp_path, monkeypatch):
    run = begin(tmp_path / "full", tiny(steps=4, every=1))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(work, "snapshot", full)
    with pytest.raises(OSError, match="No space"):
        train(run.folder)
    assert run.status.state == "failed" and "the disk is full" in run.status.said
    assert "OSError" not in run.status.said
