"""Checkpoints that are broken, one way at a time and by the hundred: a clear error or a whole model."""

import json
import random
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.checkpoints import CheckpointError, recognise
from tests.checkpoints import makers


@pytest.fixture
def hf(tmp_path):
    return makers.save_hf(makers.hf_model(), tmp_path / "model")


def change(folder, **changes):
    """Rewrite model.safetensors with tensors replaced, or left out where None."""
    path = folder / "model.safetensors"
    state = {k: v for k, v in (load_file(path) | changes).items() if v is not None}
    save_file(state, path)


def model_at(path, n_heads=None):
    return recognise(path, n_heads).model()


def test_missing_surplus_and_misshapen_tensors_are_named(hf):
    weight = "transformer.h.1.mlp.c_fc.weight"
    change(hf, **{weight: None})
    with pytest.raises(
        CheckpointError, match=r"lacks h\.1\.mlp\.c_fc\.weight \(1 tensors missing, 0 too many, 28"
    ):
        model_at(hf)
    change(hf, **{weight: torch.ones(64, 16)})
    with pytest.raises(
        CheckpointError, match=r"h\.1\.mlp\.c_fc\.weight has the shape \(64, 16\);.*\(16, 64\)"
    ):
        model_at(hf)
    change(hf, **{weight: torch.ones(16, 64), "extra": torch.ones(1)})
    with pytest.raises(CheckpointError, match=r"has extra, which such a model does not have"):
        model_at(hf)


def test_numbers_that_are_no_weights_are_refused(hf):
    bias = "transformer.ln_f.bias"
    for value, what in (
        (torch.full((16,), torch.inf), "infinity or NaN"),
        (torch.tensor([torch.nan] * 16), "infinity or NaN"),
        (torch.arange(16), "torch.int64; expected floating-point"),
    ):
        change(hf, **{bias: value})
        with pytest.raises(CheckpointError, match=rf"ln_f\.bias holds {what}"):
            model_at(hf)
    change(hf, **{bias: torch.full((16,), 3e38)})  # large, but numbers: the sum overflows
    assert model_at(hf).final_norm.shift.max() > 2e38


def test_a_tied_head_must_be_the_embedding(hf):
    embedding = load_file(hf / "model.safetensors")["transformer.wte.weight"]
    change(hf, **{"lm_head.weight": embedding.clone()})
    assert model_at(hf).out_head.weight.shape == (61, 16)
    change(hf, **{"lm_head.weight": embedding + 1})
    with pytest.raises(CheckpointError, match=r"lm_head\.weight .* not the same as transformer\.wte\.weight"):
        model_at(hf)


REFUSED = {
    "scale_attn_by_inverse_layer_idx": True,
    "reorder_and_upcast_attn": True,
    "scale_attn_weights": False,
    "add_cross_attention": True,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "gpt_neo",
    "n_inner": 32,
    "activation_function": "relu",
    "quantization_config": {"bits": 4},
    "pruned_heads": {"0": [1]},
    "tie_word_embeddings": "yes",
    "n_head": 5,
    "n_layer": "2",
    "n_embd": None,
    "resid_pdrop": "high",
    "layer_norm_epsilon": "small",
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_config_that_asks_for_more_is_refused_by_the_keys_name(hf, key):
    values = json.loads((hf / "config.json").read_text())
    (hf / "config.json").write_text(json.dumps(values | {key: REFUSED[key]}))
    named = {"n_head": "5 heads", "n_layer": "n_layers", "n_embd": "emb_dim", "resid_pdrop": "drop_rate"}
    named["layer_norm_epsilon"] = "norm_eps"
    with pytest.raises(CheckpointError, match=named.get(key, f'"{key}"')):
        model_at(hf)


@pytest.mark.parametrize("depth", [1, 3, 10**9])
def test_another_depth_than_the_configs(hf, depth):
    values = json.loads((hf / "config.json").read_text())
    (hf / "config.json").write_text(json.dumps(values | {"n_layer": depth}))
    with pytest.raises(CheckpointError, match=r"blocks|lacks|has transformer\.h\.1"):
        model_at(hf)


def test_sizes_that_no_memory_holds_cost_nothing(hf):
    values = json.loads((hf / "config.json").read_text())
    for sizes in ({"vocab_size": 10**12}, {"n_positions": 10**9}, {"n_embd": 10**9, "n_head": 1}):
        (hf / "config.json").write_text(json.dumps(values | sizes))
        with pytest.raises(CheckpointError, match=r"shape|context length|emb_dim"):
            model_at(hf)


def test_shards_must_agree_with_their_index(tmp_path):
    folder = makers.save_hf_old(makers.hf_model(), tmp_path / "old", shards=2)
    index = folder / "pytorch_model.bin.index.json"
    whole = json.loads(index.read_text())
    for name, file, message in (
        ("wte.weight", "pytorch_model-00002-of-00002.bin", r"lacks wte\.weight, which"),
        ("wte.weight", "missing.bin", r"missing\.bin is not there"),
        ("wte.weight", "../elsewhere.bin", "expected a file beside the index"),
        ("wte.weight", "config.json", "expected a file beside the index"),
        ("wte.weight", 3, "expected a file beside the index"),
    ):
        index.write_text(json.dumps({"weight_map": whole["weight_map"] | {name: file}}))
        with pytest.raises(CheckpointError, match=message):
            model_at(folder)
    del whole["weight_map"]["wpe.weight"]
    index.write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match=r"has wpe\.weight, which .* does not list"):
        model_at(folder)


def test_what_is_no_checkpoint_says_what_it_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match="no file or folder"):
        recognise(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match=r"no config\.json and no weights"):
        recognise(tmp_path)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(CheckpointError, match=r"end in \.safetensors, \.pth"):
        recognise(tmp_path / "model.gguf")
    torch.save({"linear.weight": torch.ones(2, 2)}, tmp_path / "other.pth")
    with pytest.raises(CheckpointError, match=r"no model known here \(such as linear\.weight\)"):
        recognise(tmp_path / "other.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds list, not a state dict"):
        recognise(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match=r"several files.*list\.pth, other\.pth"):
        recognise(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="expected a JSON object"):
        recognise(tmp_path)


def test_a_model_without_a_tokenizer_asks_for_one(hf):
    with pytest.raises(CheckpointError, match=r"vocabulary of 61 is not GPT-2's.*tokenizer="):
        gptviz.load(hf)
    with pytest.raises(CheckpointError, match="tokenizer has 8,192 tokens, the model 61"):
        gptviz.load(hf, tokenizer="mini")
    with pytest.raises(CheckpointError, match="no tokenizer 'gpt3'"):
        gptviz.load(hf, tokenizer="gpt3")


def seeds(folder):
    """One small checkpoint of each kind, and the files of it that are damaged."""
    truth = makers.hf_model()
    makers.save_hf(truth, folder / "hf")
    makers.save_hf_old(truth, folder / "old")
    makers.save_hf_old(truth, folder / "legacy", zipped=False)
    makers.save_hf_old(truth, folder / "shards", shards=2)
    makers.save_ours(folder / "ours", makers.OUR_SIZES, makers.book_state(truth, masks=False))
    for name, saved in (("book", makers.book_state(truth)), ("nano", makers.nanogpt_checkpoint(truth))):
        (folder / name).mkdir()
        torch.save(saved, folder / name / "ckpt.pt")
    makers.save_meta(folder / "nano" / "meta.pkl", makers.character_meta(61))
    return sorted(path for path in folder.rglob("*") if path.is_file() and "generation" not in path.name)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """A damaged copy: cut short, bytes changed, a stretch removed, repeated or zeroed; mostly near its ends,
    where headers and tables of contents are."""
    if not data:
        return data
    edge = min(len(data), 600)
    place = chance.choice(
        [chance.randrange(edge), len(data) - 1 - chance.randrange(edge), chance.randrange(len(data))]
    )
    length = chance.choice([1, 1, 2, 8, 64])
    kind = chance.randrange(6)
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + data[place + length :]
    if kind == 2:
        return data[:place] + data[place : place + length] * 2 + data[place + length :]
    if kind == 3:
        return data[:place] + bytes(length) + data[place + length :]
    if kind == 4:
        return data[:place] + chance.randbytes(length) + data[place + length :]
    flipped = data[place] ^ (1 << chance.randrange(8))
    return data[:place] + bytes([flipped]) + data[place + 1 :]


def test_hundreds_of_mutations_give_an_error_or_a_whole_model(tmp_path):
    files = seeds(tmp_path / "good")
    chance = random.Random(7)
    outcomes = {"error": 0, "model": 0}
    for turn in range(420):
        victim = files[turn % len(files)]
        kind = victim.parent
        whole = victim.read_bytes()
        victim.write_bytes(mutate(whole, chance))
        try:
            checkpoint = recognise(kind, 4 if kind.name == "book" else None)
            model = checkpoint.model()
            checkpoint.vocabulary()
        except CheckpointError as error:
            assert str(error), victim
            outcomes["error"] += 1
        else:
            assert all(p.isfinite().all() and not p.is_meta for p in model.parameters())
            assert model(torch.tensor([[0, 1, 2]])).shape == (1, 3, checkpoint.config.vocab_size)
            outcomes["model"] += 1
        finally:
            victim.write_bytes(whole)
    assert min(outcomes.values()) > 40, outcomes
    shutil.rmtree(tmp_path / "good")
