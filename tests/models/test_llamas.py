"""Llamas, Qwens and SmolLM2s from their folders, from memory and from the hub, against transformers itself."""

import json

import pytest
import torch
from transformers import PreTrainedTokenizerFast

import gptviz
from gptviz import CheckpointError
from gptviz.models.catalog import catalog
from gptviz.models.checkpoints import transfer
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.checkpoints.llama import config_of
from gptviz.models.convert import convert
from tests import llamas
from tests.models.checkpoints.hub_server import Hub
from tests.tokenizer import families
from tests.tokenizer.chats import TEMPLATES

# of each family, the class of transformers whose model has its tokenizer
MODELS = {"llama3": "llama", "qwen2": "qwen3", "smollm2": "llama"}
TEXT = "The cat sat on the mat: it's 1999, naïve cafe\u0301 🙂"


def made(family, seed=0, **changes):
    """A random model of transformers with a trained tokenizer of its family."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=families.tokenizer_of(family))
    size = max(tokenizer.get_vocab().values()) + 1
    own = {"vocab_size": size, "tie_word_embeddings": family != "llama3"}
    if family == "llama3":
        own["rope_parameters"] = llamas.LLAMA3
    return llamas.random_model(MODELS[family], seed, **own | changes), tokenizer


def save(folder, family, seed=0, **changes):
    model, tokenizer = made(family, seed, **changes)
    with torch.no_grad():  # 16 bits, as they are published; the copy in memory has the same numbers
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    model.config.dtype = torch.bfloat16
    state = {name: value.bfloat16() for name, value in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state, max_shard_size="100KB")
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def assert_alike(lm, model, tokenizer, text=TEXT):
    """The same ids, hidden states, attention and logits, within 1e-4."""
    ids = tokenizer(text)["input_ids"]
    assert lm.encode(text) == ids
    with torch.no_grad():
        theirs = model(
            torch.tensor([ids]), output_hidden_states=True, output_attentions=True, use_cache=False
        )
    trace = lm.trace(text, keep=None)
    close = {"atol": 1e-4, "rtol": 0}
    torch.testing.assert_close(trace.logits(), theirs.logits[0], **close)
    *streams, last = theirs.hidden_states
    assert len(streams) == lm.config.n_layers
    for block, stream in enumerate(streams):
        torch.testing.assert_close(trace["resid_pre", block], stream[0], **close)
        torch.testing.assert_close(trace["attn", block], theirs.attentions[block][0], **close)
    torch.testing.assert_close(trace["final"], last[0], **close)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_folder_of_transformers(tmp_path, family):
    model, tokenizer = save(tmp_path / "theirs", family)
    assert len(list((tmp_path / "theirs").glob("model-*.safetensors"))) > 1
    lm = gptviz.load(tmp_path / "theirs")
    assert lm.name == "theirs"
    assert_alike(lm, model, tokenizer)
    generated = [step.id for step in lm.generate(TEXT, 5, temperature=0.0)]
    ids = torch.tensor([lm.encode(TEXT)])
    expected = model.generate(ids, max_new_tokens=5, do_sample=False, eos_token_id=None)
    assert generated == expected[0, len(ids[0]) :].tolist()


@pytest.mark.parametrize("family", families.FAMILIES)
def test_what_was_converted_is_the_same_model(tmp_path, family):
    model, tokenizer = save(tmp_path / "theirs", family)
    out = tmp_path / "ours"
    out.mkdir()
    assert not convert(tmp_path / "theirs", out)
    assert_alike(gptviz.load(out), model, tokenizer)
    (tmp_path / "small").mkdir()
    convert(tmp_path / "theirs", tmp_path / "small", dtype="bfloat16")
    small = gptviz.load(tmp_path / "small", dtype="bfloat16")
    assert small.dtype == "bfloat16"
    for name, weights in gptviz.load(out).model.state_dict().items():  # they were of 16 bits before
        assert torch.equal(small.model.state_dict()[name].float(), weights)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_model_in_memory(family):
    model, tokenizer = made(family, 1)
    lm = gptviz.wrap(model, tokenizer)
    assert_alike(lm, model, tokenizer)
    again = gptviz.wrap(lm.model, tokenizer, name="ours")  # our class is taken as it is
    assert again.model is lm.model
    assert again.config == lm.config
    assert_alike(gptviz.wrap(model.model, tokenizer), *made_tied(model, tokenizer))


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_chat_template_is_a_text_and_changes_no_number(tmp_path, family):
    model, tokenizer = save(tmp_path / "plain", family)
    tokenizer.chat_template = TEMPLATES[family]
    tokenizer.save_pretrained(tmp_path / "plain")
    assert (tmp_path / "plain" / "chat_template.jinja").is_file()
    (tmp_path / "ours").mkdir()
    convert(tmp_path / "plain", tmp_path / "ours")
    for lm in (
        gptviz.load(tmp_path / "plain"),
        gptviz.load(tmp_path / "ours"),
        gptviz.wrap(model, tokenizer),
    ):
        assert lm.chat_template == TEMPLATES[family]
        assert lm.edited("z.0.0=zero").chat == lm.chat
        assert "a text that is applied to nothing" in lm._repr_html_()
        assert_alike(lm, model, tokenizer)
    assert gptviz.load().chat_template is None


def made_tied(model, tokenizer):
    """The model with its embedding as its head, which a model without one is taken to have."""
    model.lm_head.weight = model.model.embed_tokens.weight
    return model, tokenizer


def test_a_model_whose_numbers_are_not_its_weights_is_refused():
    model, tokenizer = made("smollm2", 2)
    model.model.layers[1].self_attn.scaling *= 2
    with pytest.raises(
        CheckpointError, match="gives other logits than its weights do in LlamaModel"
    ):
        gptviz.wrap(model, tokenizer)


@pytest.mark.parametrize("family", ["llama3", "qwen2"])
def test_the_books_own_files(tmp_path, family):
    """A state dict by the book's names, its settings as JSON beside it, and a tokenizer."""
    model, tokenizer = made(family, 3)
    state = llamas.ours_of(model).state_dict()
    if (
        family == "llama3"
    ):  # which has torch's RMSNorm there, and its tables of angles among the weights
        state = {
            name.replace(".scale", ".weight") if "norm" in name else name: value
            for name, value in state.items()
        }
        state["trf_blocks.0.att.cos"] = torch.ones(4, 8)
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(
        CheckpointError, match=r"does not say how many heads and groups.*config\.json"
    ):
        gptviz.load(tmp_path / "weights.pth")
    settings = llamas.book_config(model)
    (tmp_path / "config.json").write_text(json.dumps(settings | {"dtype": "bfloat16"}))
    tokenizer.save_pretrained(tmp_path)
    assert_alike(gptviz.load(tmp_path / "weights.pth"), model, tokenizer)
    assert_alike(gptviz.load(tmp_path), model, tokenizer)


def test_llama3s_own_tokenizer_beside_a_model(tmp_path):
    _, tokenizer = save(tmp_path, "llama3", vocab_size=len(families.llama3_ranks()) + 256)
    for file in tmp_path.glob("*token*"):
        file.unlink()
    families.save_ranks(tmp_path / "tokenizer.model")
    lm = gptviz.load(tmp_path)
    ids = lm.encode(TEXT)
    assert ids == tokenizer(TEXT)["input_ids"]
    assert lm.trace(TEXT).tokens[0].text == "<|begin_of_text|>"


def test_an_activation_is_no_question_of_a_llama(tmp_path):
    save(tmp_path, "smollm2")
    with pytest.raises(CheckpointError, match=r"has SwiGLU.*leave activation out"):
        gptviz.load(tmp_path, activation="gelu")
    with pytest.raises(CheckpointError, match="has 9 heads, not 3"):
        gptviz.load(tmp_path, n_heads=3)


# ---- the hub ----

# of their config.json, what says how large the model is
SMOLLM2 = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_act": "silu",
    "hidden_size": 576, "intermediate_size": 1536, "max_position_embeddings": 8192, "mlp_bias": False,
    "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "rms_norm_eps": 1e-05,
    "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True, "vocab_size": 49152,
}  # fmt: skip
QWEN3 = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
    "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None,
    "tie_word_embeddings": True, "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "values", "parameters"),
    [("smollm2-135m", SMOLLM2, 134_515_008), ("qwen3-0.6b", QWEN3, 596_049_920)],
)
def test_the_list_says_what_their_configs_say(tmp_path, name, values, parameters):
    assert HUB_MODELS[name].config == config_of(values, tmp_path / "config.json")
    assert HUB_MODELS[name].config.parameters == parameters
    (entry,) = [entry for entry in catalog() if entry.name == name]
    assert "licence Apache 2.0" in entry.about
    assert entry.where().startswith("no: ")


@pytest.mark.parametrize(("name", "family"), [("smollm2-135m", "smollm2"), ("qwen3-0.6b", "qwen2")])
def test_a_download_by_its_short_name(tmp_path, monkeypatch, name, family):
    model, tokenizer = save(tmp_path / "repository", family)
    (tmp_path / "repository" / "chat_template.jinja").write_text(TEMPLATES[family])
    (repository,) = HUB_MODELS[name].repositories
    served = Hub(tmp_path / "repository", repository)
    served.stands_for_hugging_face(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(transfer, "RETRY_SECONDS", 0.01)
    try:
        seen = []
        lm = gptviz.load(name, report=seen.append)
    finally:
        served.close()
    assert lm.name == name
    assert lm.chat_template == TEMPLATES[family]
    assert seen[-1].done == seen[-1].total > 0
    assert_alike(lm, model, tokenizer)
    assert_alike(gptviz.load(name), model, tokenizer)  # of the cache now
