"""From a checkpoint to the folder that gptviz.load reads."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import gptviz
from gptviz.engine.config import GPTConfig
from gptviz.tokenizer import encoding_from_ranks
from gptviz.training.export import export, full_weights, half_weights, rows_for
from gptviz.training.recipe import Recipe
from tests.training.conftest import learn_tokenizer, prose, trained

VOCAB = 300


def make_run(folder, tie=True, stop_at=None):
    config = GPTConfig(VOCAB, 16, 32, 2, 2, tie_embeddings=tie)
    ids = np.random.default_rng(0).integers(0, VOCAB, 400).astype(np.uint16)
    learn_tokenizer(folder, [prose(0, 100)], VOCAB)
    return trained(
        folder, config, Recipe(steps=4, batch_size=4, stride=16, warmup=2), ids, stop_at=stop_at
    )


@pytest.mark.parametrize("tie", [True, False])
def test_what_was_trained_is_what_is_loaded_from_a_file_of_float16(tmp_path, tie):
    run = make_run(tmp_path / "work", tie)
    export(tmp_path / "work", tmp_path / "out")
    lm = gptviz.load(tmp_path / "out")
    assert lm.config == run.config and (lm.model.out_head.weight is lm.model.tok_emb.weight) == tie
    loaded = lm.model.state_dict()
    for name, tensor in run.model.state_dict().items():
        assert torch.equal(loaded[name], tensor.half().float()), name
    ids = torch.arange(16)[None]
    with torch.no_grad():
        assert torch.allclose(lm.model(ids), run.model(ids), atol=2e-3)
    assert lm.decode(lm.encode("the fox, Zoë")) == "the fox, Zoë"
    with safe_open(tmp_path / "out" / "model.safetensors", framework="pt") as file:
        names = set(file.keys())
        metadata = file.metadata()
        assert {file.get_tensor(name).dtype for name in names} == {torch.float16}
    assert names == set(run.model.state_dict()) - ({"out_head.weight"} if tie else set())
    assert metadata["step"] == "4" and metadata["tokens"] == str(4 * 4 * 16)
    assert json.loads(metadata["recipe"]) == asdict(run.recipe)
    assert float(metadata["validation_loss"]) == run.curve[-1]["validation"]
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config == run.config.to_dict()
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["config.json", "model.safetensors", "tokenizer.tiktoken"]


def test_an_unfinished_run_is_exported_only_as_preliminary(tmp_path):
    make_run(tmp_path / "work", stop_at=2)
    with pytest.raises(ValueError, match=r"is at step 2 of 4; finish it, or say --preliminary"):
        export(tmp_path / "work", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert export(tmp_path / "work", tmp_path / "out", preliminary=True)["step"] == "2"
    assert gptviz.load(tmp_path / "out").config.n_layers == 2


def test_no_checkpoint_is_said_in_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`python -m gptviz\.training model --work"):
        export(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("value", [1e6, float("nan")])
def test_weights_beyond_float16_are_refused_by_name(value):
    config = GPTConfig(8, 4, 4, 1, 1)
    with pytest.raises(ValueError, match=r"do not fit or are not numbers: bad$"):
        half_weights({"good": torch.ones(2), "bad": torch.tensor([value])}, config)


def test_a_new_tokenizer_keeps_the_rows_of_common_tokens_and_makes_the_others_of_their_pieces(
    tmp_path,
):
    run = make_run(tmp_path / "work")
    folder = tmp_path / "out"
    export(tmp_path / "work", folder)
    words = "Wednesday Thursday " * 50
    learn_tokenizer(tmp_path / "new", [prose(0, 60), words], VOCAB)
    before, after = (
        encoding_from_ranks(place / "tokenizer.tiktoken") for place in (folder, tmp_path / "new")
    )
    rows = load_file(folder / "model.safetensors")["tok_emb.weight"].float()  # (V, D)
    state = full_weights(folder, run.config, tmp_path / "new")
    made = state["tok_emb.weight"]
    assert made.shape == rows.shape and torch.equal(state["out_head.weight"], made)

    common = {*before.token_byte_values()} & {*after.token_byte_values()}
    assert 256 < len(common) < VOCAB - 1
    for token in common:
        old = before.encode_single_token(token)
        assert torch.equal(made[after.encode_single_token(token)], rows[old])
    assert torch.equal(made[-1], rows[-1])  # of <|endoftext|>

    # one token of the new tokenizer, several of the old one
    (new,) = after.encode(" Wednesday")
    pieces = rows[before.encode(" Wednesday")]
    assert len(pieces) > 1
    assert torch.cosine_similarity(made[new], pieces.mean(dim=0), dim=0) > 0.9999
    assert made[new].norm() == pytest.approx(0.9 * pieces.norm(dim=1).mean().item(), rel=1e-4)
    same = full_weights(folder, run.config, folder)
    assert torch.equal(same["tok_emb.weight"], rows)


def test_a_new_token_of_half_a_character_has_the_pieces_of_its_bytes():
    before = {bytes([byte]): byte for byte in range(256)}
    after = before | {"“".encode()[:2]: 256}
    rows = torch.eye(257)
    made = rows_for(after, rows, before)
    assert set(made[256].nonzero().flatten().tolist()) == set("“".encode()[:2])
    assert torch.equal(made[257], rows[256])  # of <|endoftext|>
