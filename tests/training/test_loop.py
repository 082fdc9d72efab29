"""The loop: initial weights, optimizers, exact resume, safe saves, and that it learns."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gptviz.engine.blank import init_weights
from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel
from gptviz.training.datasets import Batches, TokenWindows
from gptviz.training.loop import (
    MuonInFloat32,
    TrainingRun,
    make_loss,
    make_optimizers,
    orthogonalized,
    validation_loss,
)
from gptviz.training.recipe import Recipe
from tests.training.conftest import trained

CONFIG = GPTConfig(64, 16, 32, 2, 2, qkv_bias=True, tie_embeddings=True)
RECIPE = Recipe(steps=6, batch_size=4, stride=16, warmup=2, decay_share=0.5)
IDS = np.random.default_rng(0).integers(0, 64, 900).astype(np.uint16)


def train(folder, recipe=RECIPE, config=CONFIG, ids=IDS, **options):
    return trained(folder, config, recipe, ids, **{"validate_every": 2} | options)


def saved(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)


def same(one, other):
    """Equal to the last bit, through dicts and lists."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other


def test_an_untrained_model_is_as_good_as_a_guess():
    model = GPTModel(CONFIG)
    init_weights(model, 0)
    row = torch.from_numpy(IDS[:17].astype(np.int64))[None]
    loss = make_loss(model, torch.device("cpu"), compiled=False)(row[:, :-1], row[:, 1:])
    assert loss.item() == pytest.approx(math.log(64), abs=0.05)


@pytest.mark.parametrize("name", ["muon", "adamw"])
def test_every_parameter_has_one_optimizer_and_muon_only_the_blocks_matrices(name):
    model = GPTModel(CONFIG)
    adam, hidden = make_optimizers(
        model, Recipe(hidden_optimizer=name, hidden_lr=0.03, other_lr=0.004)
    )
    of_hidden, of_adam = (
        {id(p) for g in o.param_groups for p in g["params"]} for o in (hidden, adam)
    )
    assert not of_hidden & of_adam
    assert of_hidden | of_adam == {id(p) for p in model.parameters()}
    assert of_hidden == {id(p) for p in model.trf_blocks.parameters() if p.dim() == 2}
    assert type(hidden).__name__.lower() == name and type(adam).__name__ == "AdamW"
    assert hidden.param_groups[0]["peak_lr"] == 0.03 and adam.param_groups[0]["peak_lr"] == 0.004


def test_a_run_in_float32_has_muon_in_float32():
    _, hidden = make_optimizers(GPTModel(CONFIG), Recipe(precision="float32"))
    assert type(hidden) is MuonInFloat32


@pytest.mark.parametrize("shape", [(8, 8), (8, 20), (20, 8)])
def test_an_orthogonalized_matrix_has_the_same_directions_and_lengths_near_one(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.T @ orthogonalized(matrix, (3.4445, -4.775, 2.0315), 5, 1e-7) @ right.T
    lengths = found.diagonal()
    assert torch.allclose(found, torch.diag(lengths), atol=1e-4)
    assert lengths.min() > 0.5 and lengths.max() < 1.5


def test_muon_in_float32_is_torchs_but_for_the_rounding():
    ours, theirs = (torch.nn.Parameter(torch.ones(12, 5)) for _ in range(2))
    options = {"lr": 0.02, "weight_decay": 0.1}
    mine = MuonInFloat32([ours], **options)
    torchs = torch.optim.Muon([theirs], **options)
    generator = torch.Generator().manual_seed(5)
    for _ in range(8):
        ours.grad = torch.randn(12, 5, generator=generator)
        theirs.grad = ours.grad.clone()
        mine.step()
        torchs.step()
    moved = (theirs - 1).abs().mean()
    assert (ours - theirs).abs().mean() < 0.01 * moved
    buffers = [
        optimizer.state_dict()["state"][0]["momentum_buffer"] for optimizer in (mine, torchs)
    ]
    assert torch.allclose(*buffers)


def test_a_resumed_run_is_the_unbroken_run_to_the_last_bit_and_can_be_made_longer(tmp_path):
    whole = train(tmp_path / "whole", validate_every=3)
    train(tmp_path / "parts", validate_every=3, stop_at=3)
    assert saved(tmp_path / "parts")["step"] == 3
    torch.manual_seed(999)  # nothing may hang on the global generator
    torch.rand(5)
    resumed = train(tmp_path / "parts", validate_every=3)
    a = saved(tmp_path / "whole")
    b = saved(tmp_path / "parts")
    assert same(a["model"], b["model"]) and same(a["optimizers"], b["optimizers"])
    assert whole.step == resumed.step == 6
    assert [{**p, "seconds": 0} for p in whole.curve] == [
        {**p, "seconds": 0} for p in resumed.curve
    ]
    train(tmp_path / "parts", validate_every=3)  # it is finished, and does nothing more
    assert same(b, saved(tmp_path / "parts"))
    longer = replace(RECIPE, steps=8, decay_share=0.25)
    assert train(tmp_path / "parts", longer).curve[-1]["step"] == 8
    assert saved(tmp_path / "parts")["step"] == saved(tmp_path / "parts")["recipe"]["steps"] == 8


@pytest.mark.parametrize(
    "change", [{"batch_size": 8}, {"seed": 1}, {"hidden_lr": 0.1}, {"repeat_share": 0.5}]
)
def test_another_recipe_or_model_cannot_resume(tmp_path, change):
    train(tmp_path, stop_at=2)
    other = GPTConfig.from_dict(CONFIG.to_dict() | {"n_layers": 1})
    for config, recipe in ((CONFIG, replace(RECIPE, **change)), (other, RECIPE)):
        with pytest.raises(ValueError, match="can only be resumed with the same"):
            TrainingRun.start(config, recipe, tmp_path)


def test_a_save_that_is_killed_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    run = train(tmp_path, stop_at=2)
    before = (tmp_path / "checkpoint.pt").read_bytes()

    def killed(state, path):
        path.write_bytes(b"half of a chec")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", killed)
    run.step = 4
    with pytest.raises(KeyboardInterrupt):
        run.save()
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    assert TrainingRun.start(CONFIG, RECIPE, tmp_path).step == 2


@pytest.mark.parametrize("drop_rate", [0.0, 0.5])  # which is off while validating
def test_the_curve_says_what_was_measured(tmp_path, drop_rate):
    run = train(
        tmp_path, config=GPTConfig.from_dict(CONFIG.to_dict() | {"drop_rate": drop_rate}), stop_at=5
    )
    # every second step, and the last one
    assert [point["step"] for point in run.curve] == [2, 4, 5]
    assert [point["tokens"] for point in run.curve] == [step * 4 * 16 for step in (2, 4, 5)]
    assert json.loads((tmp_path / "curve.json").read_text()) == run.curve
    windows = TokenWindows(IDS, 16, 16)
    run.model.eval()
    loss = validation_loss(make_loss(run.model, run.device, False), windows, 4, run.device, 8)
    assert run.curve[-1]["validation"] == pytest.approx(loss, abs=1e-4)


def test_validation_loss_is_the_mean_over_windows():
    windows = TokenWindows(np.arange(32 * 20 + 1, dtype=np.uint16), 20, 20)

    def counted(inputs, targets):
        return F.mse_loss(inputs.float(), targets.float() * 0)  # any function of the batch

    # 8 batches of 4 take all 32 windows
    # its inputs
    truth = np.mean([(np.arange(start, start + 20) ** 2).mean() for start in windows.starts])
    assert validation_loss(counted, windows, 4, torch.device("cpu"), 8) == pytest.approx(truth)


def test_it_learns_to_copy_passages_it_never_saw(tmp_path):
    """Eight random tokens, four times: only looking back predicts the last three, and nothing the first."""

    def passages(seed, count):
        rng = np.random.default_rng(seed)
        return np.concatenate([np.tile(rng.permutation(24)[:8], 4) for _ in range(count)]).astype(
            np.uint16
        )

    config = GPTConfig(24, 32, 32, 2, 2, tie_embeddings=True)
    recipe = Recipe(steps=100, batch_size=16, stride=32, warmup=5, hidden_lr=0.05, other_lr=0.01)
    run = TrainingRun.start(config, recipe, tmp_path)
    batches = Batches(TokenWindows(passages(0, 1000), 32, 32), 16, 0, repeat_share=0)
    run.train(batches, TokenWindows(passages(1, 130), 32, 32), progress=False, validate_every=50)
    # a window's 32 targets: 7 tokens drawn from the 23, 22, ... left, copies of all, another passage's first
    best_possible = (sum(math.log(24 - drawn) for drawn in range(1, 8)) + math.log(24)) / 32
    assert best_possible == pytest.approx(0.75, abs=0.01)
    assert best_possible < run.curve[-1]["validation"] < 1.0
    assert run.curve[-1]["validation"] < run.curve[0]["validation"]


def test_too_little_to_validate_on_is_said_before_training(tmp_path):
    run = TrainingRun.start(CONFIG, RECIPE, tmp_path)
    with pytest.raises(
        ValueError, match="held-out books have 16 tokens; validation needs at least 17"
    ):
        run.train(
            Batches(TokenWindows(IDS, 16, 16), 4, 0), TokenWindows(IDS[:16], 16, 16), progress=False
        )
    assert run.step == 0
