"""OpenAI's folder without TensorFlow: an index that TensorFlow wrote, whole and damaged."""

import random

import pytest
import torch

from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.tensorflow import TensorFlowTensors, index_in, plain_name
from tests.models.checkpoints import brought
from tests.models.checkpoints.test_fuzz import mutate
from tests.models.checkpoints.test_readers import assert_same_model

NAME = "OpenAI's GPT-2 as TensorFlow keeps it"


@pytest.mark.parametrize(
    "file", ["", "model.ckpt.index", "hparams.json", "model.ckpt.data-00000-of-00001"]
)
def test_any_of_its_files_is_the_folder(tmp_path, file):
    home, truth, _ = brought.openais(tmp_path)
    assert_same_model(home / file, truth, NAME)


def test_its_names():
    assert plain_name("model/wte") == "wte.weight"
    assert plain_name("model/h11/mlp/c_proj/w") == "h.11.mlp.c_proj.weight"
    assert plain_name("model/h0/ln_1/g") == "h.0.ln_1.weight"
    assert plain_name("model/ln_f/b") == "ln_f.bias"
    for other in ("model/h0/attn/c_attn/w/Adam", "global_step", "bert/embeddings/word_embeddings"):
        assert plain_name(other) is None


def test_of_several_the_one_that_checkpoint_names(tmp_path):
    home, _, _ = brought.openais(tmp_path)
    for step in (100, 20):
        for ending in (".index", ".data-00000-of-00001"):
            (home / f"model-{step}{ending}").write_bytes(
                (home / f"model.ckpt{ending}").read_bytes()
            )
    (home / "checkpoint").write_text('model_checkpoint_path: "/elsewhere/model-100"\n')
    assert index_in(home) == home / "model-100.index"


@pytest.mark.parametrize("key", ["n_head", "n_vocab"])
def test_sizes_that_are_missing(tmp_path, key):
    home, _, _ = brought.openais(tmp_path)
    text = (home / "hparams.json").read_text()
    (home / "hparams.json").write_text(text.replace(key, "other"))
    with pytest.raises(CheckpointError, match=rf"hparams\.json lacks {key}"):
        recognise(home)


def test_numbers_that_are_cut_off(tmp_path):
    home, _, _ = brought.openais(tmp_path)
    data = home / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-4])
    with pytest.raises(
        CheckpointError, match=r"has 31,804 bytes; .* copy or download both files again"
    ):
        recognise(home)


def test_an_index_of_the_same_block_again_and_again_ends(tmp_path):
    """A few kilobytes that would have one block read ten million times."""
    home, _, _ = brought.openais(tmp_path)
    entry = b"\x00\x01\x00a"
    block = entry * 3000 + bytes(4) + b"\x00" + bytes(4)
    handle = b"\x00" + number(len(block) - 5)
    blocks = (b"\x00\x01" + number(len(handle)) + b"a" + handle) * 3000 + bytes(4)
    footer = b"\x00\x00" + number(len(block)) + number(len(blocks))
    magic = bytes.fromhex("57fb808b247547db")
    made = block + blocks + b"\x00" + bytes(4) + footer + bytes(40 - len(footer)) + magic
    (home / "model.ckpt.index").write_bytes(made)
    with pytest.raises(CheckpointError, match="more than 100,000 entries"):
        recognise(home)


def number(value):
    """A whole number as seven bits a byte."""
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


def test_damaged_indices_give_an_error_or_the_same_tensors(tmp_path):
    home, _, _ = brought.openais(tmp_path)
    index = home / "model.ckpt.index"
    whole = dict(TensorFlowTensors(index).read(TensorFlowTensors(index).shapes))
    chance = random.Random(3)
    outcomes = []
    for _ in range(400):
        index.write_bytes(mutate(brought.INDEX, chance))
        try:
            found = TensorFlowTensors(index)
            read = dict(found.read(found.shapes))
        except CheckpointError as error:
            assert len(str(error)) > 20
            outcomes.append("error")
            continue
        assert all(tensor.dtype == torch.float32 for tensor in read.values())
        outcomes.append("same" if read.keys() == whole.keys() else "other names")
    assert outcomes.count("error") > 100 and outcomes.count("same") > 20
