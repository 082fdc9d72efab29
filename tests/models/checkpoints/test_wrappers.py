"""Whatever stands around a model comes off: words before all names, dicts around them, modules in memory."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import gptviz
from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.wrappers import bare_names, inner_model, keys_to_state
from tests.models.checkpoints import makers
from tests.models.test_wrapping import BYTES, CONFIG, GPTModel, is_the_same

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 53, 58, 60, 0]])

BEFORE = [
    "module.",
    "_orig_mod.",
    "model.",
    "_orig_mod.module.",
    "model._orig_mod.model.gpt.",
    "transformer.",
]

AROUND = [
    lambda state: state,
    lambda state: {"state_dict": state, "hyper_parameters": {"lr": 1e-3}, "epoch": 3},
    lambda state: {"model": state, "step": 100, "best": torch.tensor(1.5)},
    lambda state: {
        "model_state_dict": state,
        "optimizer_state_dict": {"state": {}, "param_groups": []},
    },
    lambda state: {
        "model": {"state_dict": state},
        "optimizer": {"state": {0: {"exp_avg": torch.ones(2)}}},
    },
    lambda state: {"module": {"model": {"model_state_dict": state}}},
    lambda state: {"model": {"n_layer": 2}, "state_dict": state},
]


def state_of(family, truth):
    """The state dict of a model as its family saves it."""
    if family == "book":
        return makers.book_state(truth)
    if family in ("nanoGPT", "bare nanoGPT"):
        return makers.nanogpt_checkpoint(truth)["model"]
    return {name: tensor for name, tensor in truth.state_dict().items() if name != "lm_head.weight"}


def logits(checkpoint):
    with torch.no_grad():
        return checkpoint.model()(IDS)


FAMILIES = ["book", "nanoGPT", "bare nanoGPT", "GPT-2", "GPT-Neo"]


@pytest.mark.parametrize("family", FAMILIES)
def test_of_every_family_in_every_kind_of_file(family, tmp_path):
    truth = (
        makers.neo_model(1)
        if family == "GPT-Neo"
        else makers.hf_model(1, activation_function="gelu")
    )
    if family == "book":
        truth = makers.hf_model(1)
    with torch.no_grad():
        expected = truth(IDS).logits
    heads = 4 if family in ("book", "bare nanoGPT") else None
    state = state_of(family, truth)
    for number, before in enumerate(["", *BEFORE]):
        names = {before + name: tensor.clone() for name, tensor in state.items()}
        folder = tmp_path / str(number)
        folder.mkdir()
        saved = AROUND[number % len(AROUND)](names)
        if family == "nanoGPT":
            saved = makers.nanogpt_checkpoint(truth) | {"model": names}
        if family in ("GPT-2", "GPT-Neo"):
            truth.config.save_pretrained(folder)
            torch.save(
                saved, folder / "pytorch_model.bin", _use_new_zipfile_serialization=number % 2 == 0
            )
            torch.testing.assert_close(logits(recognise(folder)), expected, atol=1e-4, rtol=0)
            save_file(names, folder / "model.safetensors")
            torch.testing.assert_close(logits(recognise(folder)), expected, atol=1e-4, rtol=0)
            continue
        torch.save(saved, folder / "some.ckpt", _use_new_zipfile_serialization=number % 2 == 0)
        for path in (folder / "some.ckpt", folder):
            torch.testing.assert_close(logits(recognise(path, heads)), expected, atol=1e-4, rtol=0)
        if family != "nanoGPT":
            save_file(names, folder / "some.safetensors")
            found = recognise(folder / "some.safetensors", heads)
            torch.testing.assert_close(logits(found), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("around", range(len(AROUND)))
@pytest.mark.parametrize("zipped", [True, False])
def test_dicts_around_a_state_dict(around, zipped, tmp_path):
    truth = makers.hf_model(2)
    state = {"module." + name: tensor for name, tensor in makers.book_state(truth).items()}
    torch.save(AROUND[around](state), tmp_path / "m.pt", _use_new_zipfile_serialization=zipped)
    with torch.no_grad():
        expected = truth(IDS).logits
    torch.testing.assert_close(logits(recognise(tmp_path / "m.pt", 4)), expected, atol=1e-4, rtol=0)


def test_shards_with_words_before_all_names(tmp_path):
    truth = makers.hf_model(3)
    makers.save_hf_old(truth, tmp_path / "old", shards=3)
    index = tmp_path / "old" / "pytorch_model.bin.index.json"
    homes = json.loads(index.read_text())["weight_map"]
    for file in set(homes.values()):
        part = torch.load(tmp_path / "old" / file, weights_only=True)
        torch.save(
            {"module.model." + name: tensor for name, tensor in part.items()},
            tmp_path / "old" / file,
        )
    changed = {"module.model." + name: file for name, file in homes.items()}
    index.write_text(json.dumps({"weight_map": changed}))
    with torch.no_grad():
        expected = truth(IDS).logits
    torch.testing.assert_close(logits(recognise(tmp_path / "old")), expected, atol=1e-4, rtol=0)


def test_layers_that_were_compiled_one_by_one(tmp_path):
    truth = makers.hf_model(4)
    state = {
        name.replace("blocks.0.", "blocks.0._orig_mod._checkpoint_wrapped_module."): tensor
        for name, tensor in makers.book_state(truth).items()
    }
    torch.save(state, tmp_path / "m.pth")
    with torch.no_grad():
        expected = truth(IDS).logits
    torch.testing.assert_close(
        logits(recognise(tmp_path / "m.pth", 4)), expected, atol=1e-4, rtol=0
    )


def test_what_is_part_of_a_name_stays():
    for names in (
        ["transformer.wte.weight", "transformer.h.0.ln_1.weight"],
        ["wte.weight", "h.0.ln_1.weight"],
        ["model.embed_tokens.weight", "model.layers.0.x"],  # Llama's own
        ["tok_emb.weight", "model.trf_blocks.0.x"],
        ["student.tok_emb.weight", "teacher.tok_emb.weight"],
    ):
        assert bare_names(names) == {name: name for name in names}


def test_names_that_become_one_are_refused(tmp_path):
    state = makers.book_state(makers.hf_model())
    state["tok_emb._orig_mod.weight"] = state["tok_emb.weight"]
    torch.save(state, tmp_path / "m.pth")
    with pytest.raises(
        CheckpointError, match=r"has both tok_emb\.weight and tok_emb\._orig_mod\.weight"
    ):
        recognise(tmp_path / "m.pth", 4)


def test_a_dict_that_holds_itself_ends(tmp_path):
    endless = {}
    endless["model"] = endless
    assert len(keys_to_state(endless)) == 8
    torch.save(endless, tmp_path / "m.pth")
    with pytest.raises(CheckpointError, match="holds dict, not a tensor"):
        recognise(tmp_path / "m.pth", 4)


def test_heads_that_stand_beside_the_weights(tmp_path):
    truth = makers.hf_model(5)
    state = makers.book_state(truth)
    with torch.no_grad():
        expected = truth(IDS).logits
    for beside in (
        {"config": {"n_heads": 4}},
        {"hyper_parameters": {"cfg": {"n_heads": 4}, "lr": 0.1}},
    ):
        torch.save({"state_dict": state} | beside, tmp_path / "m.ckpt")
        torch.testing.assert_close(
            logits(recognise(tmp_path / "m.ckpt")), expected, atol=1e-4, rtol=0
        )
        with pytest.raises(CheckpointError, match="has 4 heads, not 2: leave n_heads out"):
            recognise(tmp_path / "m.ckpt", 2)
    torch.save({"state_dict": state, "a": {"n_heads": 4}, "b": {"n_head": 2}}, tmp_path / "m.ckpt")
    with pytest.raises(CheckpointError, match=r"n_heads=\.\.\."):
        recognise(tmp_path / "m.ckpt")


# ---- in memory ----


class Lightning(nn.Module):
    """What a LightningModule is to `wrap`: it holds the model, and its own forward gives a loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return (self.model(batch[0]).logits - batch[1]).square().mean()


MODULES = {
    "compiled": torch.compile,
    "DataParallel": nn.DataParallel,
    "Lightning": Lightning,
    "all of them": lambda model: nn.DataParallel(torch.compile(Lightning(torch.compile(model)))),
}


@pytest.mark.parametrize("around", MODULES)
@pytest.mark.parametrize(
    "make", [lambda: makers.hf_model(vocab_size=300), lambda: makers.neo_model(vocab_size=300)]
)
def test_transformers_models_in_memory(around, make):
    model = make()
    whole = MODULES[around](model)
    assert inner_model(whole) is model
    lm = gptviz.wrap(whole, BYTES)
    is_the_same(lm, model)
    assert lm.name == type(model).__name__


@pytest.mark.parametrize("around", MODULES)
def test_the_books_model_and_ours_in_memory(around, mini):
    model = GPTModel(CONFIG)
    is_the_same(gptviz.wrap(MODULES[around](model), BYTES), model)
    assert gptviz.wrap(MODULES[around](mini.model), mini.tokenizer).model is mini.model
