"""Every reader against transformers on the same random weights: logits, attention and hidden states."""

import json
import pickle
import warnings
from pathlib import Path

import pytest
import torch
from transformers import GPT2DoubleHeadsModel
from transformers.activations import ACT2FN

import gptviz
from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.hub import HUB_MODELS, cached_folder
from gptviz.models.checkpoints.hugging_face import ACTIVATIONS
from tests.models.checkpoints import makers

CLOSE = {"atol": 1e-4, "rtol": 0}
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 53, 58, 60, 0]


def assert_same_model(path, truth, dialect, n_heads=None):
    """The model at `path` computes what transformers' does, and the reader called `dialect` read it."""
    assert recognise(path, n_heads).dialect.name == dialect
    makers.save_meta(path.parent / "characters.pkl", makers.character_meta(truth.config.vocab_size))
    lm = gptviz.load(path, n_heads=n_heads, tokenizer=path.parent / "characters.pkl")
    with torch.no_grad():
        expected = truth(torch.tensor([IDS]), output_attentions=True, output_hidden_states=True)
        logits = lm.model(torch.tensor([IDS]))
    trace = lm.trace(IDS)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    for block in range(truth.config.num_hidden_layers):
        torch.testing.assert_close(trace["attn", block], expected.attentions[block][0], **CLOSE)
        torch.testing.assert_close(
            trace["resid_pre", block], expected.hidden_states[block][0], **CLOSE
        )
    torch.testing.assert_close(trace["final"], expected.hidden_states[-1][0], **CLOSE)
    assert not lm.model.training
    assert all(p.dtype == torch.float32 and p.device.type == "cpu" for p in lm.model.parameters())
    assert not [*lm.model.buffers()]  # the mask is made for a text
    return lm


HF = "a Hugging Face GPT-2"
SHAPES = [
    {},
    {"n_head": 1, "n_layer": 3},
    {"n_head": 8, "n_layer": 1, "vocab_size": 97},
    {"layer_norm_epsilon": 1e-2},
    {"activation_function": "gelu"},
    {"activation_function": "gelu_pytorch_tanh"},
    {"tie_word_embeddings": False},
    {"n_inner": 64},
    {"reorder_and_upcast_attn": True},
    {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3},
    {"scale_attn_weights": False},
    {
        "scale_attn_weights": False,
        "scale_attn_by_inverse_layer_idx": True,
        "reorder_and_upcast_attn": True,
        "n_layer": 3,
    },
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_folder_of_transformers(tmp_path, shape):
    truth = makers.hf_model(1, **shape)
    lm = assert_same_model(makers.save_hf(truth, tmp_path / "model"), truth, HF)
    assert lm.name == "model"
    assert lm.config.tie_embeddings == shape.get("tie_word_embeddings", True)
    assert (lm.model.out_head.weight is lm.model.tok_emb.weight) == lm.config.tie_embeddings


def test_every_name_of_a_gelu_that_is_read_is_that_gelu():
    x = torch.linspace(-6, 6, 2001, dtype=torch.float64)
    for name, ours in ACTIVATIONS.items():
        kind = "tanh" if ours == "gelu_tanh" else "none"
        made = torch.nn.functional.gelu(x, approximate=kind)
        # the tanh of "gelu_fast" and "gelu_accurate" has a constant of ten digits
        torch.testing.assert_close(ACT2FN[name](x), made, atol=1e-9, rtol=0)


def headless(model):
    """The same weights in transformers' class without a head."""
    bare = model.transformer
    bare.config.architectures = None
    return bare


@pytest.mark.parametrize("make", [makers.hf_model, makers.neo_model])
def test_a_model_without_a_head_is_tied(tmp_path, make):
    truth = make(1)
    folder = makers.save_hf(headless(truth), tmp_path / "model")
    values = json.loads((folder / "config.json").read_text())
    assert values["architectures"] == [type(truth.transformer).__name__]
    lm = assert_same_model(folder, truth, HF if make is makers.hf_model else NEO)
    assert lm.config.tie_embeddings
    characters = tmp_path / "characters.pkl"
    wrapped = gptviz.wrap(truth.transformer, characters)
    torch.testing.assert_close(wrapped.trace(IDS).logits(), lm.trace(IDS).logits(), **CLOSE)
    (folder / "config.json").write_text(json.dumps(values | {"tie_word_embeddings": False}))
    with pytest.raises(CheckpointError, match=r"lacks lm_head\.weight"):
        gptviz.load(folder, tokenizer=characters)


def test_a_second_head_is_left_out(tmp_path):
    truth = makers.hf_model(1)
    model = GPT2DoubleHeadsModel(truth.config)
    model.load_state_dict(truth.state_dict(), strict=False)
    assert_same_model(makers.save_hf(model, tmp_path / "model"), truth, HF)


@pytest.mark.parametrize("tied", [True, False])
def test_names_of_a_head_in_older_files(tmp_path, tied):
    """DialoGPT's, and files in which one tensor of two names, head and embedding, is the head only."""
    truth = makers.hf_model(1, tie_word_embeddings=tied)
    folder = makers.save_hf_old(truth, tmp_path / "old")
    state = torch.load(folder / "pytorch_model.bin")
    state["lm_head.decoder.weight"] = truth.lm_head.weight.detach().clone()
    torch.save(state, folder / "pytorch_model.bin")
    assert_same_model(folder, truth, HF)
    if tied:
        del state["wte.weight"]
        torch.save(state, folder / "pytorch_model.bin")
        assert_same_model(folder, truth, HF)


NEO = "a Hugging Face GPT-Neo"


@pytest.mark.parametrize(
    ("shape", "context"),
    [
        ({}, 12),
        ({"num_layers": 4, "attention_types": [[["global", "local"], 2]], "window_size": 20}, 20),
        ({"attention_types": [[["global"], 2]], "hidden_size": 36, "num_heads": 3}, 24),
        ({"max_position_embeddings": 16, "window_size": 256, "tie_word_embeddings": False}, 16),
    ],
    ids=str,
)
def test_a_gpt_neo_of_transformers(tmp_path, shape, context):
    """Scores without a scale, windows that end where our context does, no bias in query, key and value."""
    truth = makers.neo_model(1, **shape)
    lm = assert_same_model(makers.save_hf(truth, tmp_path / "model"), truth, NEO)
    assert lm.config.context_length == context == len(lm.model.pos_emb.weight)
    assert not lm.config.qkv_bias and lm.config.linear_bias


def test_a_tiny_stories_at_its_longest_text(tmp_path):
    """The sizes of TinyStories-1M with fewer blocks and words, in the form in which it is on the hub."""
    sizes = {"hidden_size": 64, "num_heads": 16, "max_position_embeddings": 2048, "vocab_size": 300}
    truth = makers.neo_model(3, window_size=256, **sizes)
    folder = tmp_path / "tiny"
    folder.mkdir()
    truth.config.save_pretrained(folder)
    state = truth.state_dict()
    for block in range(2):  # as transformers of 2023 saved them: masks, too
        state[f"transformer.h.{block}.attn.attention.bias"] = (
            torch.ones(1, 1, 2048, 2048).tril().bool()
        )
        state[f"transformer.h.{block}.attn.attention.masked_bias"] = torch.tensor(-1e9)
    torch.save(state, folder / "pytorch_model.bin")
    model = recognise(folder).model()
    ids = torch.randint(300, (1, 256), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(model(ids), truth(ids).logits, **CLOSE)
        with pytest.raises(ValueError, match="257 tokens do not fit the context length of 256"):
            model(torch.zeros(1, 257, dtype=torch.long))


def test_shards_of_safetensors(tmp_path):
    truth = makers.hf_model(2)
    folder = makers.save_hf(truth, tmp_path / "model", max_shard_size="8KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert_same_model(folder, truth, HF)


@pytest.mark.parametrize("shards", [0, 3])
@pytest.mark.parametrize("zipped", [True, False])
def test_older_folders(tmp_path, shards, zipped):
    truth = makers.hf_model(3)
    assert_same_model(makers.save_hf_old(truth, tmp_path / "old", shards, zipped), truth, HF)


def test_the_weights_of_a_folder_may_be_named_themselves(tmp_path):
    truth = makers.hf_model(4)
    folder = makers.save_hf(truth, tmp_path / "model")
    assert_same_model(folder / "model.safetensors", truth, HF)


BOOK = "the book's state dict"


@pytest.mark.parametrize(("masks", "wrapped", "tied"), [(True, False, False), (False, True, True)])
def test_the_books_file(tmp_path, masks, wrapped, tied):
    truth = makers.hf_model(5)
    state = makers.book_state(truth, masks, tied)
    saved = {"model_state_dict": state, "optimizer_state_dict": {"state": {}}} if wrapped else state
    torch.save(saved, tmp_path / "model.pth")
    lm = assert_same_model(tmp_path / "model.pth", truth, BOOK, n_heads=4)
    assert (lm.config.qkv_bias, lm.config.tie_embeddings) == (True, tied)
    assert lm.name == "model"


def test_the_books_file_from_a_compiled_model_in_half_precision_without_qkv_bias(tmp_path):
    truth = makers.without_bias(makers.hf_model(7), "c_attn.bias").half().float()
    state = {
        k: v for k, v in makers.book_state(truth).items() if not (".W_" in k and k.endswith("bias"))
    }
    torch.save(
        {"_orig_mod." + k: v.half() for k, v in state.items()}, tmp_path / "model_and_optimizer.pth"
    )
    lm = assert_same_model(tmp_path / "model_and_optimizer.pth", truth, BOOK, n_heads=4)
    assert lm.config.qkv_bias is False


def test_the_books_file_asks_for_the_heads(tmp_path):
    makers.save_book(tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"n_heads=.*\b1, 2, 4, 8, 16 heads"):
        gptviz.load(tmp_path / "model.pth", tokenizer="gpt2")
    with pytest.raises(
        CheckpointError, match=r"cannot be divided among 3 heads.*\[1, 2, 4, 8, 16\]"
    ):
        gptviz.load(tmp_path / "model.pth", n_heads=3)


def test_heads_that_contradict_the_checkpoint_are_refused(tmp_path):
    folder = makers.save_hf(makers.hf_model(9), tmp_path / "model")
    with pytest.raises(CheckpointError, match="has 4 heads, not 2"):
        gptviz.load(folder, n_heads=2)


NANO = "a nanoGPT checkpoint"


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt(tmp_path, compiled, bias):
    truth = makers.hf_model(10, activation_function="gelu")
    if not bias:
        makers.without_bias(truth)
    torch.save(
        makers.nanogpt_checkpoint(truth, bias, compiled, masks=compiled), tmp_path / "ckpt.pt"
    )
    lm = assert_same_model(tmp_path / "ckpt.pt", truth, NANO)
    assert (lm.model.final_norm.shift is None) == (not bias)


@pytest.mark.parametrize(("theirs", "ours"), [("gelu", "gelu"), ("gelu_new", "gelu_tanh")])
def test_which_gelu_a_nanogpt_has_is_assumed_aloud_and_can_be_said(tmp_path, theirs, ours):
    truth = makers.hf_model(10, activation_function=theirs)
    torch.save(makers.nanogpt_checkpoint(truth), tmp_path / "ckpt.pt")
    makers.save_meta(tmp_path / "meta.pkl", makers.character_meta(61))
    with torch.no_grad():
        expected = truth(torch.tensor([IDS])).logits[0]

    def is_off(lm):
        return float((lm.trace(IDS).logits() - expected).abs().max())

    with pytest.warns(
        UserWarning, match=r"ckpt\.pt does not say which GELU .* the exact one is assumed"
    ):
        assumed = gptviz.load(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = gptviz.load(tmp_path, activation=ours)
    assert assumed.activation_is_assumed and "gelu, which is assumed" in assumed._repr_html_()
    assert not said.activation_is_assumed and "assumed" not in said._repr_html_()
    assert said.config.activation == ours and is_off(said) < 2e-6
    assert (is_off(assumed) < 2e-6) == (theirs == "gelu")
    for wrong in ("relu", "gelu_new", ""):
        with pytest.raises(CheckpointError, match="it must be one of gelu_tanh, gelu"):
            gptviz.load(tmp_path, activation=wrong)


def test_a_nanogpt_that_does_not_know_of_biases_is_older_than_the_exact_gelu(tmp_path):
    saved = makers.nanogpt_checkpoint(makers.hf_model(10))
    del saved["model_args"]["bias"]
    torch.save(saved, tmp_path / "ckpt.pt")
    found = recognise(tmp_path / "ckpt.pt")
    assert (found.config.activation, found.activation_is_assumed, found.doubt) == (
        "gelu_tanh",
        True,
        "",
    )


def test_an_activation_is_taken_where_the_files_do_not_say_it(tmp_path):
    book = tmp_path / "model.pth"
    makers.save_book(book)
    assert (
        recognise(book, 4).config.activation == "gelu_tanh"
        and recognise(book, 4).activation_is_assumed
    )
    said = recognise(book, 4, "gelu")
    assert said.config.activation == "gelu" and not said.activation_is_assumed
    folder = makers.save_hf(makers.hf_model(), tmp_path / "model")
    assert not recognise(folder, activation="gelu_tanh").activation_is_assumed
    with pytest.raises(
        CheckpointError, match="says that its activation is gelu_tanh, not gelu: leave"
    ):
        recognise(folder, activation="gelu")
    with pytest.raises(CheckpointError, match="mini has its own heads, activation and tokenizer"):
        gptviz.load("mini", activation="gelu")


def test_nothing_of_one_gelu_passes_for_the_others(tmp_path):
    """Two models of the same weights: what was made by the one is refused by the other."""
    makers.save_characters(tmp_path)
    exact, tanh = (gptviz.load(tmp_path, activation=kind) for kind in ("gelu", "gelu_tanh"))
    made = exact.trace(IDS[:8])
    with pytest.raises(ValueError, match="made by another model"):
        tanh.trace(IDS, after=made)
    with pytest.raises(ValueError, match="made by another model"):
        made.past(tanh.model)
    with pytest.raises(ValueError, match="made by another model"):
        tanh.hidden(torch.tensor([IDS[8:]]), past=made.past(exact))
    again = gptviz.load(tmp_path, activation="gelu")
    torch.testing.assert_close(
        again.trace(IDS, after=made).logits(), exact.trace(IDS).logits(), **CLOSE
    )


def test_nanogpt_characters(tmp_path):
    truth = makers.hf_model(11, activation_function="gelu")
    torch.save(makers.nanogpt_checkpoint(truth), tmp_path / "ckpt.pt")
    meta = makers.character_meta(truth.config.vocab_size)
    makers.save_meta(tmp_path / "meta.pkl", meta)
    lm = gptviz.load(tmp_path)
    text = 'é中🙂 !"#\n'
    assert lm.encode(text) == [meta["stoi"][character] for character in text]
    assert lm.decode(range(61)) == "".join(meta["itos"].values())
    assert lm.trace(text).next_tokens(61)["token"].nunique() == 61
    with pytest.raises(ValueError, match=r"'ß' in the text is none of .*'s 61 tokens"):
        lm.trace("! ß")


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("evil-was-here"),))


def test_meta_pickles_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(makers.nanogpt_checkpoint(makers.hf_model()), tmp_path / "ckpt.pt")
    for evil in (Evil(), {"stoi": Evil()}, {"stoi": {"a": 0}, "itos": Evil()}):
        makers.save_meta(tmp_path / "meta.pkl", evil)
        with pytest.raises(CheckpointError, match=r"meta\.pkl.*code"):
            gptviz.load(tmp_path / "ckpt.pt")
    for wrong in (
        [1],
        {"stoi": {"a": "b"}},
        {"stoi": {"ab": 0}, "itos": {0: "ab"}},
        {"stoi": {"a": 1}},
    ):
        makers.save_meta(tmp_path / "meta.pkl", wrong)
        with pytest.raises(CheckpointError, match=r"meta\.pkl is not nanoGPT's table"):
            gptviz.load(tmp_path / "ckpt.pt")
    assert not (tmp_path / "evil-was-here").exists()


@pytest.mark.parametrize("name", ["model.pth", "ckpt.pt", "pytorch_model.bin"])
@pytest.mark.parametrize("zipped", [True, False])
def test_pickles_with_code_are_refused(tmp_path, monkeypatch, name, zipped):
    monkeypatch.chdir(tmp_path)
    makers.save_hf(makers.hf_model(), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(
        {"model": Evil(), "w": torch.ones(2)},
        tmp_path / name,
        _use_new_zipfile_serialization=zipped,
    )
    path = tmp_path if name == "pytorch_model.bin" else tmp_path / name
    with pytest.raises(CheckpointError, match=r"run code.*only data is read"):
        gptviz.load(path)
    (tmp_path / "plain.pth").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError, match=r"torch\.save did not write.*nothing of it was run"):
        gptviz.load(tmp_path / "plain.pth")
    assert not (tmp_path / "evil-was-here").exists()


def test_a_whole_saved_model_is_refused_with_what_to_do(tmp_path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"torch\.save\(model\.state_dict\(\)"):
        gptviz.load(tmp_path / "model.pth")


@pytest.mark.parametrize("tied", [True, False])
def test_our_own_folder(tmp_path, tied):
    truth = makers.hf_model(12)
    config = makers.OUR_SIZES | {"tie_embeddings": tied}
    folder = makers.save_ours(
        tmp_path / "ours", config, makers.book_state(truth, masks=False, tied=tied)
    )
    assert_same_model(folder, truth, "gptviz's own folder")
    assert_same_model(folder / "model.safetensors", truth, "gptviz's own folder")


def test_known_models_load_by_name(mini):
    assert mini.name == "mini"
    assert set(gptviz.KNOWN_MODELS) == {"mini", "mini-world", "mini-untrained", "gpt2-untrained"}
    with pytest.raises(CheckpointError, match="mini, mini-world, mini-untrained, gpt2-untrained"):
        gptviz.load("no-such-model")


def test_a_model_does_not_depend_on_its_file(tmp_path):
    truth = makers.save_book(tmp_path / "model.pth")
    lm = assert_same_model(tmp_path / "model.pth", truth, BOOK, n_heads=4)
    before = lm.trace(IDS).logits(-1)
    (tmp_path / "model.pth").write_bytes(b"")
    assert torch.equal(lm.trace(IDS).logits(-1), before)


@pytest.mark.skipif(
    cached_folder(HUB_MODELS["gpt2"].repositories) is None,
    reason="GPT-2 is not in Hugging Face's cache: python -m gptviz download gpt2",
)
def test_gpt2_continues_greedily():
    """OpenAI's own, where it is on this machine: its first weights, and what it writes."""
    lm = gptviz.load("gpt2")
    assert lm.model.tok_emb.weight[0, :3].tolist() == pytest.approx(
        [-0.11010, -0.03927, 0.03311], abs=1e-5
    )
    assert sum(p.numel() for p in lm.model.parameters()) == 124_439_808
    start = lm.encode("Every effort moves you")
    ids = list(start)
    with torch.inference_mode():
        for _ in range(15):
            ids.append(int(lm.model(torch.tensor([ids]))[0, -1].argmax()))
    written = lm.decode(ids[len(start) :])
    assert written == " forward.\n\nThe first step is to understand the importance of your work"
