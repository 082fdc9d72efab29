"""nanoGPT's relatives and its bare files: GPT-2's names with torch's Linears, read as what they are."""

import dataclasses
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import gptviz
from gptviz.models.checkpoints import CheckpointError, HeadsMissing, recognise
from tests.models.checkpoints import makers
from tests.models.checkpoints.test_readers import assert_same_model

NANO = "a nanoGPT checkpoint"


@pytest.fixture
def script(monkeypatch):
    """The module `train_gpt2` of build-nanogpt, with its dataclass; gone again before a file is read."""
    module = types.ModuleType("train_gpt2")
    source = (
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class GPTConfig:\n"
        "    block_size: int = 1024\n"
        "    vocab_size: int = 50257\n"
        "    n_layer: int = 12\n"
        "    n_head: int = 12\n"
        "    n_embd: int = 768\n"
        "    def __setstate__(self, state):\n"
        "        raise SystemExit('the class of the file was used')\n"
    )
    monkeypatch.setitem(sys.modules, "train_gpt2", module)
    exec(source, module.__dict__)
    return module


@pytest.mark.parametrize("zipped", [True, False])
def test_build_nanogpts_own_file(tmp_path, script, zipped, monkeypatch):
    truth = makers.hf_model(1)
    saved = makers.build_nanogpt_checkpoint(truth, script.GPTConfig)
    assert dataclasses.is_dataclass(saved["config"])
    torch.save(saved, tmp_path / "model_00005.pt", _use_new_zipfile_serialization=zipped)
    # the class is there, and is not used
    assert_same_model(tmp_path / "model_00005.pt", truth, NANO)
    monkeypatch.delitem(sys.modules, "train_gpt2")
    lm = assert_same_model(tmp_path / "model_00005.pt", truth, NANO)
    assert lm.config.activation == "gelu_tanh" and lm.config.tie_embeddings


def test_build_nanogpts_file_with_a_dict_of_settings(tmp_path):
    truth = makers.hf_model(2)
    torch.save(makers.build_nanogpt_checkpoint(truth), tmp_path / "model.pt")
    assert_same_model(tmp_path / "model.pt", truth, NANO)


def test_build_nanogpts_weights_alone_and_with_a_config_beside(tmp_path):
    """The two other stations of what was a circle: each of them loads, or asks for the heads."""
    truth = makers.hf_model(3, activation_function="gelu")
    state = makers.nanogpt_checkpoint(truth)["model"]
    torch.save(state, tmp_path / "bare.pt")
    with pytest.raises(HeadsMissing, match=r"n_heads=\.\.\..*\b1, 2, 4, 8, 16 heads"):
        gptviz.load(tmp_path / "bare.pt")
    assert_same_model(tmp_path / "bare.pt", truth, NANO, n_heads=4)
    truth.config.save_pretrained(tmp_path)
    assert_same_model(tmp_path / "bare.pt", truth, NANO)
    assert_same_model(tmp_path, truth, NANO)
    (tmp_path / "bare.pt").unlink()
    save_file(
        {name: tensor.clone() for name, tensor in state.items()}, tmp_path / "model.safetensors"
    )
    lm = assert_same_model(tmp_path, truth, NANO)
    assert lm.config.tie_embeddings


def test_nanogpts_weights_without_bias(tmp_path):
    truth = makers.without_bias(makers.hf_model(4, activation_function="gelu"))
    torch.save(
        makers.nanogpt_checkpoint(truth, bias=False, masks=True)["model"], tmp_path / "bare.pt"
    )
    lm = assert_same_model(tmp_path / "bare.pt", truth, NANO, n_heads=4)
    assert not (lm.config.norm_bias or lm.config.linear_bias or lm.config.qkv_bias)


@pytest.mark.parametrize(
    "config", [None, {"system": {"seed": 3}, "model": {"n_head": 4}, "trainer": {}}]
)
def test_mingpts_file_has_a_head_of_its_own(tmp_path, config):
    truth = makers.hf_model(5, tie_word_embeddings=False)
    torch.save(makers.nanogpt_checkpoint(truth, masks=True)["model"], tmp_path / "model.pt")
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    heads = 4 if config is None else None
    for path in (tmp_path / "model.pt", tmp_path):
        lm = assert_same_model(path, truth, NANO, n_heads=heads)
        assert not lm.config.tie_embeddings and lm.config.activation == "gelu_tanh"


def test_hugging_faces_weights_still_ask_for_their_config(tmp_path):
    torch.save(makers.hf_model().state_dict(), tmp_path / "model.bin")
    with pytest.raises(
        CheckpointError, match=r"tensors of a Hugging Face model, but no config\.json"
    ):
        gptviz.load(tmp_path / "model.bin", n_heads=4)


# ---- objects beside the weights ----


def test_settings_beside_the_weights_are_data(tmp_path, monkeypatch):
    """Objects of other classes are not looked up, and their fields are read where they are wanted."""
    truth = makers.hf_model(6)
    state = makers.book_state(truth)
    beside = {
        "args": types.SimpleNamespace(n_heads=4, out=Path("runs")),
        "loss": np.float64(1.5),
        "values": np.float32(2.0),
    }
    torch.save({"model_state_dict": state} | beside, tmp_path / "m.pth")
    assert recognise(tmp_path / "m.pth").config.n_heads == 4


class EvilConfig:
    """A class whose name is one of settings, and which has code run when it is read by pickle itself."""

    def __reduce__(self):
        return (Path.touch, (Path("evil-was-here"),))


class Called:
    def __init__(self, function, *given):
        self.made = function, given

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("zipped", [True, False])
def test_code_beside_the_weights_never_runs(tmp_path, monkeypatch, zipped):
    monkeypatch.chdir(tmp_path)
    state = makers.book_state(makers.hf_model())
    for evil in (
        EvilConfig(),
        Called(exec, "open('evil-was-here', 'w')"),
        Called(getattr, state, "clear"),
    ):
        torch.save({"model": state, "config": evil}, "m.pth", _use_new_zipfile_serialization=zipped)
        with pytest.raises(CheckpointError, match=r"run code.*only data is read"):
            recognise(Path("m.pth"), 4)
    assert not Path("evil-was-here").exists()
