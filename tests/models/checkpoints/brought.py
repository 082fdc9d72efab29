"""What people bring: one file or folder of each kind in the table, as its own program writes it.

`LOADS[kind](folder)` gives where it is, its model in transformers and the heads that must be said;
`REFUSED[kind](folder)` only where it is.
"""

import base64
import json
import tarfile
import zipfile

import torch
from safetensors.torch import save_file
from torch import nn

from gptviz.model import GPTModel
from tests import llamas
from tests.models.checkpoints import makers


def saved(folder, name, what, **options):
    torch.save(what, folder / name, **options)
    return folder / name


def written(folder, name, content=b"\x08\x07"):
    (folder / name).write_bytes(content)
    return folder / name


# ---- read ----


def book(folder):
    truth = makers.hf_model(1)
    return saved(folder, "gpt2-medium355M-sft.pth", makers.book_state(truth)), truth, 4


def nanogpt(folder):
    truth = makers.hf_model(2, activation_function="gelu")
    return saved(folder, "ckpt.pt", makers.nanogpt_checkpoint(truth)), truth, None


def build_nanogpt(folder):
    truth = makers.hf_model(3)
    return saved(folder, "model_00005.pt", makers.build_nanogpt_checkpoint(truth)), truth, None


def bare(folder):
    truth = makers.hf_model(4, tie_word_embeddings=False)
    return saved(folder, "model.pt", makers.nanogpt_checkpoint(truth)["model"]), truth, 4


def hugging_face(folder):
    truth = makers.hf_model(5)
    return makers.save_hf(truth, folder / "gpt2", max_shard_size="8KB"), truth, None


def llama(folder):
    truth = llamas.random_model("qwen2", 7, vocab_size=61)
    truth.save_pretrained(folder / "qwen", max_shard_size="100KB")
    return folder / "qwen", truth, None


def books_llama(folder):
    truth = llamas.random_model("qwen3", 8, vocab_size=61)
    (folder / "config.json").write_text(json.dumps(llamas.book_config(truth)))
    return saved(folder, "qwen3.pth", llamas.ours_of(truth).state_dict()), truth, None


def wrapped(folder):
    truth = makers.hf_model(6)
    state = {"model._orig_mod." + name: tensor for name, tensor in makers.book_state(truth).items()}
    return saved(folder, "epoch=3.ckpt", {"state_dict": state, "epoch": 3}), truth, 4


def trainer(folder):
    """Two checkpoints: the newest by its number, which is not the last by its name."""
    truth = makers.hf_model(7)
    makers.save_hf(makers.hf_model(8), folder / "checkpoint-500")
    makers.save_hf(truth, folder / "checkpoint-1000")
    saved(folder / "checkpoint-1000", "optimizer.pt", {"state": {}, "param_groups": []})
    return folder, truth, None


def cache(folder):
    truth = makers.hf_model(9)
    home = folder / "models--owner--name"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("0" * 40)
    (home / "snapshots").mkdir()
    makers.save_hf(truth, home / "snapshots" / ("0" * 40))
    return home, truth, None


# model.ckpt.index as TensorFlow 2.21 wrote it for a GPT-2 of makers.SIZES; its data are the numbers one after
# another, by name
INDEX = base64.b64decode(
    "AAAGCAEaAggBABYQbW9kZWwvaDAvYXR0bi9jX2F0dG4vYggBEgQSAggwKMABNRA9N9gVARt3CAESDBICCAESAggQEgIIMCDA"
    "ASiAGDWsRaALEAYScHJvai9iCAESBBICCBAgwBkoQDV73tcJFQEbdwgBEgwSAggBEgIIEBICCBAggBoogAg1T5zJKgkGEmxu"
    "XzEvYggBEgQSAggQIIAiKEA1QmxNSQ4BEmcIARIEEgIIECDAIihANbbOoToMAxIyL2IIARIEEgIIECCAIyhANa1ON1EOARJn"
    "CAESBBICCBAgwCMoQDVr2XxyCQoTbWxwL2NfZmMvYggBEgQSAghAIIAkKIACNTsEKtUSARt3CAESDBICCAESAggQEgIIQCCA"
    "JiiAIDVLv9sbDwYScHJvai9iCAESBBICCBAggEYoQDU4Uf2hFAEbdwgBEgwSAggBEgIIQBICCBAgwEYogCA1YvTi8wcPEzEv"
    "YXR0bi9jX2F0dG4vYggBEgQSAggwIMBmKMABNea2VJ4VARt3CAESDBICCAESAggQEgIIMCCAaCiAGDX9qEVIEAYTcHJvai9i"
    "CAESBBICCBAggIABKEA1FTIGoAAWHG1vZGVsL2gxL2F0dG4vY19wcm9qL3cIARIMEgIIARICCBASAggQIMCAASiACDUHneHw"
    "CQYTbG5fMS9iCAESBBICCBAgwIgBKEA1CqyOVQ4BE2cIARIEEgIIECCAiQEoQDXw4Zu1DAMTMi9iCAESBBICCBAgwIkBKEA1"
    "2gke/A4BE2cIARIEEgIIECCAigEoQDXfQ0t2CQoUbWxwL2NfZmMvYggBEgQSAghAIMCKASiAAjUib99vEgEcdwgBEgwSAggB"
    "EgIIEBICCEAgwIwBKIAgNfeRZzYPBhNwcm9qL2IIARIEEgIIECDArAEoQDUF13FMFAEcdwgBEgwSAggBEgIIQBICCBAggK0B"
    "KIAgNQvpAn8GBhNsbl9mL2IIARIEEgIIECCAzQEoQDUG63smCwETZwgBEgQSAggQIMDNAShANcmENQMGAxh3cGUIARIIEgII"
    "GBICCBAggM4BKIAMNTed83kHAhh0ZQgBEggSAgg9EgIIECCA2gEowB41bPKEegAAAADDAQAAAgAAAACf/gfsAAAAAAEAAAAA"
    "wPKhsAABA24A0gYAAAAAAQAAAABhGzY11wYI5AYPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb"
)


def openais(folder):
    """The book's folder gpt2/124M."""
    truth = makers.hf_model(13)
    tensors = {}
    for name, tensor in truth.transformer.state_dict().items():
        if name.startswith("h."):
            name = name.replace("h.", "h", 1)
        part, _, kind = name.replace(".", "/").rpartition("/")
        letter = "g" if "ln_" in part and kind == "weight" else kind[0]
        is_embedding = part in ("wte", "wpe")
        tensors[f"model/{part}" if is_embedding else f"model/{part}/{letter}"] = tensor
    numbers = b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))
    home = folder / "124M"
    home.mkdir()
    written(home, "model.ckpt.data-00000-of-00001", numbers)
    written(home, "model.ckpt.index", INDEX)
    written(home, "model.ckpt.meta", b"\n\x9e")
    written(home, "checkpoint", b'model_checkpoint_path: "model.ckpt"\n')
    sizes = {"n_vocab": 61, "n_ctx": 24, "n_embd": 16, "n_head": 4, "n_layer": 2}
    written(home, "hparams.json", json.dumps(sizes).encode())
    return home, truth, None


LOADS = {
    "the book's state dict": book,
    "a nanoGPT checkpoint": nanogpt,
    "a checkpoint of build-nanogpt": build_nanogpt,
    "a bare state dict of nanoGPT, minGPT or build-nanogpt": bare,
    "a folder of Hugging Face's GPT-2 or GPT-Neo": hugging_face,
    "a folder of Hugging Face's Llama, Qwen2, Qwen3 or SmolLM2": llama,
    "a state dict of the book's Llama or Qwen3": books_llama,
    "a model inside of a wrapper": wrapped,
    "the folder of a Trainer's checkpoints": trainer,
    "a model's folder in Hugging Face's cache": cache,
    "OpenAI's GPT-2 as TensorFlow keeps it": openais,
}


# ---- not read ----


def tensorflow(folder, without="hparams.json"):
    """OpenAI's folder without one of its files."""
    home, _, _ = openais(folder)
    (home / without).unlink()
    return home


def peft_state(folder):
    state = {}
    for block in range(2):
        at = f"base_model.model.transformer.h.{block}.attn.c_attn"
        state |= {
            f"{at}.lora_A.weight": torch.ones(2, 16),
            f"{at}.lora_B.weight": torch.ones(48, 2),
        }
    return state


def peft(folder):
    (folder / "adapter").mkdir()
    written(folder / "adapter", "adapter_config.json", json.dumps({"peft_type": "LORA"}).encode())
    save_file(peft_state(folder), folder / "adapter" / "adapter_model.safetensors")
    return folder / "adapter"


def peft_unmerged(folder):
    """What torch.save(peft_model.state_dict()) has: the model's own layers as well."""
    state = {"base_model.model." + name: w for name, w in makers.hf_model().state_dict().items()}
    return saved(folder, "tuned.pth", state | peft_state(folder))


class LoRALayer(nn.Module):
    """As in the book's appendix E."""

    def __init__(self, in_dim, out_dim, rank, alpha):
        super().__init__()
        self.A = nn.Parameter(torch.randn(in_dim, rank))
        self.B = nn.Parameter(torch.randn(rank, out_dim))
        self.alpha = alpha

    def forward(self, x):
        return self.alpha * (x @ self.A @ self.B)


class LinearWithLoRA(nn.Module):
    """As in the book's appendix E."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.lora = LoRALayer(linear.in_features, linear.out_features, rank, alpha)

    def forward(self, x):
        return self.linear(x) + self.lora(x)


def replace_linear_with_lora(model, rank, alpha):
    """As in the book's appendix E."""
    for name, module in model.named_children():
        if isinstance(module, nn.Linear):
            setattr(model, name, LinearWithLoRA(module, rank, alpha))
        else:
            replace_linear_with_lora(module, rank, alpha)


def plain_model():
    torch.manual_seed(0)
    return GPTModel(makers.OUR_SIZES | {"drop_rate": 0.0})


def lora_model():
    model = plain_model()
    replace_linear_with_lora(model, rank=2, alpha=3)
    return model.eval()


def lora(folder):
    return saved(folder, "spam_lora.pth", lora_model().state_dict())


def classifier(folder):
    state = makers.book_state(makers.hf_model(10))
    state |= {"out_head.weight": torch.randn(2, 16), "out_head.bias": torch.zeros(2)}
    return saved(folder, "review_classifier.pth", state)


def configured(folder, **changes):
    makers.save_hf(makers.hf_model(11), folder / "model")
    path = folder / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder / "model"


def other_head(folder):
    return configured(folder, architectures=["GPT2ForSequenceClassification"])


def quantised(folder):
    return configured(
        folder, quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}
    )


def quantised_names(folder):
    state = makers.hf_model().state_dict()
    state["transformer.h.0.attn.c_attn.SCB"] = torch.ones(48)
    return saved(folder, "model.pt", state)


def quantised_dynamically(folder):
    model = torch.ao.quantization.quantize_dynamic(plain_model(), {nn.Linear}, torch.qint8)
    return saved(folder, "int8.pth", model.state_dict())


def mistral(folder):
    return configured(folder, architectures=["MistralForCausalLM"], model_type="mistral")


def pythia_names(folder):
    names = (
        "gpt_neox.embed_in.weight",
        "gpt_neox.layers.0.attention.query_key_value.weight",
        "embed_out.weight",
    )
    save_file({name: torch.ones(4, 4) for name in names}, folder / "model.safetensors")
    return folder / "model.safetensors"


def optimizer(folder):
    model = nn.Linear(2, 2)
    return saved(folder, "adam.pt", torch.optim.AdamW(model.parameters()).state_dict())


def settings_of_a_trainer(folder):
    return written(folder, "training_args.bin", b"PK\x03\x04")


def shard(folder):
    hugging_face(folder)
    (folder / "gpt2" / "model.safetensors.index.json").unlink()
    return sorted((folder / "gpt2").glob("model-*.safetensors"))[0]


def whole_model(folder):
    """What torch.save(model) makes of a model of the book."""
    return saved(folder, "whole.pth", plain_model())


def torchscript(folder):
    torch.jit.script(nn.Linear(2, 2)).save(folder / "model.pt")
    return folder / "model.pt"


def distributed(folder):
    from torch.distributed import checkpoint

    state = makers.book_state(makers.hf_model(12))
    checkpoint.save(state, checkpoint_id=folder / "step-100", no_dist=True)
    return folder / "step-100"


def deepspeed(folder):
    (folder / "global").mkdir()
    written(folder / "global", "zero_to_fp32.py", b"# DeepSpeed's")
    return folder / "global"


def archive(folder):
    with zipfile.ZipFile(folder / "model.zip", "w") as made:
        made.writestr("model/config.json", "{}")
    return folder / "model.zip"


def archive_with_another_name(folder):
    archive(folder).rename(folder / "model.pth")
    return folder / "model.pth"


def tar(folder):
    with tarfile.open(folder / "gpt2.tar.gz", "w:gz") as made:
        made.add(written(folder, "config.json", b"{}"))
    (folder / "config.json").unlink()
    return folder / "gpt2.tar.gz"


def saved_model(folder):
    (folder / "1").mkdir()
    written(folder / "1", "saved_model.pb")
    return folder / "1"


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n"
PAGE = b"<!DOCTYPE html>\n<html class=''><head><title>gpt2</title></head></html>"

# kind -> its makers
REFUSED = {
    "a checkpoint of TensorFlow, and not all of OpenAI's GPT-2": [
        tensorflow,
        lambda folder: tensorflow(folder) / "model.ckpt.index",
        lambda folder: tensorflow(folder, "model.ckpt.index") / "hparams.json",
        lambda folder: written(folder, "model-500.data-00000-of-00001"),
    ],
    "a PEFT adapter, which changes a model and is none": [
        peft,
        lambda folder: peft(folder) / "adapter_model.safetensors",
        peft_unmerged,
    ],
    "a model of the book with LoRA layers": [lora],
    "a classifier of the book": [classifier],
    "a GPT-2 that gives classes or spans, not next tokens": [other_head],
    "a quantised model, whose weights are rounded to a few bits": [
        quantised,
        quantised_names,
        quantised_dynamically,
    ],
    "a model of another architecture than GPT-2's or Llama's": [mistral, pythia_names],
    "an optimizer's or a Trainer's state, without the model": [optimizer, settings_of_a_trainer],
    "an HDF5 file, as Keras and TensorFlow write them": [
        lambda folder: written(folder, "tf_model.h5", b"\x89HDF\r\n\x1a\n"),
        lambda folder: written(folder, "weights.pt", b"\x89HDF\r\n\x1a\n"),
    ],
    "Flax's weights": [lambda folder: written(folder, "flax_model.msgpack")],
    "a SavedModel of TensorFlow": [
        saved_model,
        lambda folder: saved_model(folder) / "saved_model.pb",
    ],
    "a program of layers for another runtime": [
        lambda folder: written(folder, "decoder_model.onnx"),
        lambda folder: written(folder, "64.tflite"),
        lambda folder: written(folder, "rust_model.ot"),
    ],
    "a GGUF file, as llama.cpp reads them": [
        lambda folder: written(folder, "gpt2.Q4_K_M.gguf", b"GGUF\x03"),
        lambda folder: written(folder, "gpt2.bin", b"GGUF\x03"),
    ],
    "a file of NumPy's arrays": [lambda folder: written(folder, "weights.npz")],
    "a folder of torch.distributed's checkpoints": [distributed],
    "a DeepSpeed checkpoint, with weights split over its files": [deepspeed],
    "a pickle that would run code": [whole_model],
    "a program of TorchScript": [torchscript],
    "an archive with files in it": [archive, archive_with_another_name, tar],
    "a Git LFS pointer, which only says where the file is": [
        lambda folder: written(folder, "model.safetensors", LFS),
        lambda folder: written(folder, "pytorch_model.bin", LFS),
    ],
    "a web page that was saved in the file's place": [
        lambda folder: written(folder, "model.safetensors", PAGE),
        lambda folder: written(folder, "model.pth", PAGE),
    ],
    "one of several files of a model's weights": [shard],
    "settings or a tokenizer, without weights": [
        lambda folder: makers.save_hf(makers.hf_model(), folder / "hf") / "config.json",
        lambda folder: written(folder, "merges.txt", b"#version: 0.2"),
    ],
}
