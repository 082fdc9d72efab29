"""The reader of Llama, Qwen2 and Qwen3: transformers' own random models, saved by transformers and read here."""

import json
from copy import deepcopy
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import load_file, save_file

from gptviz.engine.llama_config import LlamaConfig, RopeFreq
from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.assemble import LIMIT
from gptviz.models.checkpoints.llama import (
    FAMILIES,
    config_of,
    largest_possible,
)
from tests import llamas
from tests.llamas import IDS, LLAMA3

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def model_in(folder, dtype=torch.float32):
    """The model in a folder and its config, as every other reader's."""
    checkpoint = recognise(folder)
    return checkpoint.model(dtype), checkpoint.config


def assert_same_model(folder, theirs):
    model, config = model_in(folder)
    assert config == LlamaConfig.from_dict(llamas.book_config(theirs))
    with torch.no_grad():
        expected = theirs(torch.tensor([IDS])).logits
        torch.testing.assert_close(model(torch.tensor([IDS])), expected, **CLOSE)
    assert not model.training
    assert all(p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())
    assert (model.out_head.weight is model.tok_emb.weight) == config.tie_embeddings
    return model, config


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("rope", [LLAMA3, {"rope_type": "default", "rope_theta": 1e5}], ids=str)
@pytest.mark.parametrize("family", llamas.CLASSES)
def test_a_folder_of_transformers(tmp_path, family, rope, tied):
    theirs = llamas.random_model(family, 1, rope_parameters=rope, tie_word_embeddings=tied)
    theirs.save_pretrained(tmp_path)
    assert_same_model(tmp_path, theirs)


@pytest.mark.parametrize("family", llamas.CLASSES)
def test_shards_of_16_bits(tmp_path, family):
    theirs = llamas.random_model(family, 2)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.bfloat16())
    # a copy: this rounds the frequencies, too, which are in no file
    deepcopy(theirs).bfloat16().save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(files := list(tmp_path.glob("*.safetensors"))) > 1
    assert {t.dtype for file in files for t in load_file(file).values()} == {torch.bfloat16}
    model, _ = assert_same_model(tmp_path, theirs)
    again, _ = model_in(tmp_path, torch.bfloat16)
    assert {p.dtype for p in again.parameters()} == {torch.bfloat16}
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor.float(), model.state_dict()[name])


def test_an_older_folder(tmp_path):
    """As transformers 4 wrote it: RoPE's base outside, the type under another key, frequencies as weights."""
    theirs = llamas.random_model("llama", 3, rope_parameters=LLAMA3)
    theirs.config.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    scaling = {**values.pop("rope_parameters")}
    values |= {"rope_theta": scaling.pop("rope_theta"), "architectures": ["LlamaForCausalLM"]}
    values["rope_scaling"] = {**scaling, "type": scaling.pop("rope_type")}
    (tmp_path / "config.json").write_text(json.dumps(values))
    state = theirs.state_dict()
    for block in range(3):
        state[f"model.layers.{block}.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    torch.save(state, tmp_path / "pytorch_model.bin")
    assert_same_model(tmp_path, theirs)


def test_a_head_may_be_stored_though_it_is_tied(tmp_path):
    theirs = llamas.random_model("qwen3", 4, tie_word_embeddings=True)
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    state = load_file(file)
    assert "lm_head.weight" not in state
    embedding = state["model.embed_tokens.weight"]
    save_file(state | {"lm_head.weight": embedding.clone()}, file)
    assert_same_model(tmp_path, theirs)
    save_file(state | {"lm_head.weight": embedding + 1}, file)
    with pytest.raises(CheckpointError, match=r"lm_head\.weight .* is not the same as"):
        model_in(tmp_path)


def test_without_a_head_it_must_be_tied(tmp_path):
    theirs = llamas.random_model("qwen2", 5, tie_word_embeddings=True)
    theirs.model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["Qwen2Model"]
    assert_same_model(tmp_path, theirs)
    changed(tmp_path, tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match=r"lacks lm_head\.weight"):
        model_in(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_config_leaves_out_is_what_transformers_takes(tmp_path, family):
    kind, _ = llamas.CLASSES[family]
    theirs = kind()
    config = config_of({"model_type": family}, tmp_path / "config.json")
    assert config == config_of(theirs.to_dict(), tmp_path / "config.json")
    assert config.head_dim == getattr(theirs, "head_dim", 4096 // 32)
    assert config.n_kv_groups == theirs.num_key_value_heads
    assert (config.rope_base, config.rope_freq) == (10000.0, None)


def test_a_long_context_ends_where_one_can_be_shown(tmp_path):
    path = tmp_path / "config.json"
    values = {"model_type": "llama", "max_position_embeddings": 131072}
    rope = LLAMA3 | {"original_max_position_embeddings": 8192}
    config = config_of(values | {"rope_scaling": rope}, path)
    assert config.context_length == 32768
    assert config.rope_freq == RopeFreq(8.0, 1.0, 4.0, 8192)
    # where the scaling does not say what it was trained on, that is the context of theirs
    del rope["original_max_position_embeddings"]
    config = config_of(values | {"rope_scaling": rope}, path)
    assert config.rope_freq.original_context_length == 131072
    outside = values | {"rope_scaling": rope, "original_max_position_embeddings": 4096}
    assert config_of(outside, path).rope_freq.original_context_length == 4096


@pytest.mark.parametrize("values", [{}, {"layer_types": ["full_attention"] * 3}], ids=str)
def test_windows_that_no_block_has_are_no_reason_to_refuse(tmp_path, values):
    values = {"sliding_window": 32, "max_window_layers": 3, "num_hidden_layers": 3} | values
    values |= {"model_type": "qwen2", "use_sliding_window": True}
    assert config_of(values, tmp_path).n_layers == 3
    assert config_of(values | {"use_sliding_window": False}, tmp_path).n_layers == 3
    assert config_of({"model_type": "llama", "sliding_window": 32}, tmp_path).n_layers == 32


# ---- what is refused ----


def changed(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


QWEN = {"model_type": "qwen2", "num_hidden_layers": 4}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
NEEDS = {name: value for name, value in LLAMA3.items() if name != "high_freq_factor"}
REFUSED = [
    ({"model_type": "mistral"}, "\"model_type\" 'mistral'; only LlamaForCausalLM, .* llama, qwen2"),
    ({"model_type": "llama", "architectures": ["MistralForCausalLM"]}, "MistralForCausalLM"),
    ({"model_type": "qwen2", "architectures": ["LlamaForCausalLM"]}, "'qwen2'; only Llama"),
    ({"model_type": "llama", "architectures": "LlamaForCausalLM"}, "only LlamaForCausalLM"),
    ({}, '"architectures" is None and "model_type" None'),
    ({"model_type": "qwen3_moe"}, "a mixture of experts .*a few of many feed-forward layers"),
    ({"model_type": "llama", "num_local_experts": 8}, 'mixture of experts .*"num_local_experts" 8'),
    ({"model_type": "qwen3", "num_experts_per_tok": 2}, "mixture of experts"),
    ({"model_type": "llama", "rope_scaling": YARN}, "'yarn'; this model turns .* \"llama3\" do"),
    ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'"),
    ({"model_type": "qwen2", "rope_parameters": {"rope_type": "mrope"}}, "'mrope'"),
    ({"model_type": "llama", "rope_parameters": {"full_attention": LLAMA3}}, "for all blocks"),
    ({"model_type": "llama", "rope_scaling": NEEDS}, 'needs a number for "high_freq_factor"'),
    (
        {"model_type": "llama", "rope_scaling": LLAMA3 | {"high_freq_factor": 0.5}},
        "high_freq_factor is 0.5; it must be above low_freq_factor, 1.0",
    ),
    ({"model_type": "llama", "rope_scaling": LLAMA3 | {"factor": 0}}, "factor is 0; it must be"),
    ({"model_type": "llama", "rope_theta": "1e4"}, "rope_base is '1e4'; it must be a number"),
    ({"model_type": "llama", "partial_rotary_factor": 0.5}, '"partial_rotary_factor" is 0.5'),
    (
        {"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}},
        "only a part of each head",
    ),
    (
        QWEN | {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 3},
        r"sliding_attention \(a window of 64 tokens\); .* give a model with full attention",
    ),
    (QWEN | {"layer_types": ["full_attention", "sliding_attention"] * 2}, "sliding_attention"),
    (QWEN | {"use_sliding_window": True, "max_window_layers": "3"}, "config.json: "),
    ({"model_type": "llama", "hidden_act": "gelu"}, "\"hidden_act\" is 'gelu'; .* only 'silu'"),
    ({"model_type": "llama", "attention_bias": True}, '"attention_bias" is True'),
    ({"model_type": "llama", "mlp_bias": True}, '"mlp_bias" is True'),
    ({"model_type": "llama", "quantization_config": {"bits": 4}}, '"quantization_config" is'),
    ({"model_type": "llama", "num_key_value_heads": 5}, r"32 heads .* 5 groups; .* \[1, 2, 4, 8, "),
    ({"model_type": "llama", "hidden_size": 100}, "emb_dim 100 cannot be divided among 32 heads"),
    ({"model_type": "llama", "head_dim": 63}, "a head is 63 numbers wide; RoPE turns pairs"),
    ({"model_type": "llama", "intermediate_size": None}, "hidden_dim is None"),
    ({"model_type": "llama", "rms_norm_eps": 0}, "norm_eps is 0; it must be a number between"),
    ({"model_type": "llama", "tie_word_embeddings": 1}, "tie_embeddings is 1; it must be True or"),
]


@pytest.mark.parametrize(("values", "sentence"), REFUSED, ids=str)
def test_a_config_that_cannot_be_followed_is_a_sentence(tmp_path, values, sentence):
    with pytest.raises(CheckpointError, match=sentence) as refused:
        config_of(values, tmp_path / "config.json")
    assert str(refused.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_hidden_layers": 4}, r"lacks layers\.3\."),
        ({"num_hidden_layers": 2}, r"has model\.layers\.2\..*, which such a model does not have"),
        ({"intermediate_size": 96}, r"mlp\..* has the shape .*; the config asks for"),
        ({"num_key_value_heads": 9}, r"[kv]_proj\.weight has the shape \(24, 72\); .* \(72, 72\)"),
        ({"head_dim": 16}, r"self_attn\..* has the shape"),
        ({"vocab_size": 98}, r"has the shape \(97, 72\); the config asks for \(98, 72\)"),
        ({"model_type": "qwen2", "architectures": None}, r"lacks .*_proj\.bias"),
        ({"model_type": "qwen3", "architectures": None, "head_dim": 8}, r"lacks .*_norm\.weight"),
        ({"num_hidden_layers": 10**9}, "at most 1000 work"),
        ({"intermediate_size": 10**9}, "hidden_dim is 1000000000; it must be at most"),
    ],
    ids=str,
)
def test_tensors_that_are_not_the_configs_are_a_sentence(tmp_path, change, sentence):
    llamas.random_model("llama", 6).save_pretrained(tmp_path)
    changed(tmp_path, **change)
    with pytest.raises(CheckpointError, match=sentence):
        model_in(tmp_path)


def test_biases_that_the_config_does_not_know_are_a_sentence(tmp_path):
    llamas.random_model("qwen2", 6).save_pretrained(tmp_path)
    changed(tmp_path, model_type="llama", architectures=["LlamaForCausalLM"])
    with pytest.raises(CheckpointError, match=r"_proj\.bias, which such a model does not have"):
        model_in(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e20])
def test_damaged_numbers_are_a_sentence(tmp_path, value):
    theirs = llamas.random_model("llama", 7)
    with torch.no_grad():
        theirs.model.layers[1].mlp.up_proj.weight[3, 5] = value
    theirs.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"layers\.1\.mlp\.up_proj\.weight holds"):
        model_in(tmp_path)


@pytest.mark.parametrize("family", llamas.CLASSES)
def test_no_number_of_a_pass_is_above_the_bound(family):
    """And not so far below it that real weights would be refused."""
    theirs = llamas.random_model(family, 8)
    model = llamas.ours_of(theirs)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    largest = {name: float(w.abs().max()) for name, w in model.state_dict().items()}
    bound = largest_possible(config, largest)
    sites = llamas.sites_of(model, IDS)
    seen = max(float(value.abs().max()) for value in sites.values())
    squares = [float(sites[key].square().sum(-1).max()) for key in sites if "resid" in key[0]]
    assert max(seen, *squares) < bound < LIMIT * 1e-10
    # weights of real models: SmolLM2's and Qwen3's sizes, scales up to 30, matrices up to 2
    real = {name: 30.0 if "norm" in name else 2.0 for name in largest}
    sizes = {"emb_dim": 4096, "hidden_dim": 14336, "n_heads": 32, "n_kv_groups": 8, "head_dim": 128}
    assert largest_possible(LlamaConfig.from_dict(asdict(config) | sizes), real) < LIMIT


def test_a_folder_without_a_config_or_weights_is_a_sentence(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json and no weights"):
        model_in(tmp_path)
    llamas.random_model().config.save_pretrained(tmp_path)
    changed(tmp_path, architectures=["LlamaForCausalLM"])
    with pytest.raises(CheckpointError, match=r"has no weights: none of model\.safetensors"):
        model_in(tmp_path)
