"""What a file, a folder or a model in memory is, and what to do with it: one table for all readers.

A row that loads names what its reader recognises. Every other row says what the thing is, and what to do
instead, with lines of Python where some work. `load`, `wrap`, the command line and the app's upload box look
here before they ask for anything, such as a number of heads. docs/models.md has the same table; a test holds
them together.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gptviz.models.checkpoints.errors import CheckpointError, with_code
from gptviz.models.checkpoints.wrappers import keys_to_state

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Seen:
    """What is known without reading weights: a file's name and first bytes, and the names in a zip archive
    (`entries`); the names in a folder, or in the one that a file is in (`inside`); what config.json says.
    """

    name: str = ""
    first: bytes = b""
    inside: frozenset[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict)
    entries: frozenset[str] = frozenset()

    def ends(self, *endings: str) -> bool:
        """Whether the file's name ends so, in whatever case."""
        return self.name.lower().endswith(endings)


def _never(_: Any) -> bool:
    return False


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    `name` is what it is, after "is". `recognised` says by what. `says` is what to do, in sentences, and
    `code` the lines of Python for it, in which FILE stands for the file's name. `loads`: it is read, and
    `says` how. `looks_so` decides by what is seen at once, `saved_so` by what torch.save wrote, `named_so` by
    the shapes of the tensors under their bare names.
    """

    name: str
    recognised: str
    says: str
    code: str = ""
    loads: bool = False
    looks_so: Callable[[Seen], bool] = _never
    saved_so: Callable[[Any], bool] = _never
    named_so: Callable[[Shapes], bool] = _never

    def error(self, path: Path, detail: str = "", in_memory: bool = False) -> CheckpointError:
        """The sentence about the file or folder at `path`, or about a model in memory of that name.

        `detail` stands behind what it is.
        """
        lines = self.lines(path.name)
        if in_memory:
            lines = lines.replace(
                f'torch.load("{path.name}", map_location="cpu")', "model.state_dict()"
            )
        return CheckpointError(with_code(f"{path} is {self.name}{detail}. {self.says}", lines))

    def lines(self, file: str) -> str:
        """The lines of Python for a file of this name."""
        return self.code.replace("FILE", file)


# ---- how rows are told ----

SHARD = re.compile(r"-\d{5}-of-\d{5}\.(safetensors|bin)$")
TENSORFLOW = re.compile(
    r"\.data-\d{5}-of-\d{5}$|\.ckpt(-\d+)?\.(index|meta)$|^model-\d+\.(index|meta)$|^hparams\.json$|^checkpoint$"
)
ADAPTER = re.compile(
    r"(^|\.)(lora_[AB]|lora_embedding_[AB]|lora_magnitude_vector|ia3_l|prompt_embeddings|base_layer)(\.|$)"
)
BOOK_LORA = re.compile(r"(^|\.)lora\.[AB]$")
QUANTISED = re.compile(
    r"\.(absmax|quant_state\.\w+|nested_absmax|SCB|weight_format|qweight|qzeros|g_idx|weight_packed|weight_scale"
    r"|weight_zero_point|zero_point|_packed_params(\.\w+)?)$"
)
# Llama and its relatives in transformers, and in the book
LLAMA = re.compile(r"(^|\.)layers\.\d+\.self_attn\.[qkv]_proj\.weight$")
BOOK_LLAMA = re.compile(r"(^|\.)trf_blocks\.\d+\.ff\.fc[123]\.weight$")
OTHER = {
    "BERT, or one of its relatives": r"(^|\.)encoder\.layer\.\d+\.attention\.",
    "GPT-NeoX or Pythia": r"(^|\.)layers\.\d+\.attention\.query_key_value\.weight$",
    "BLOOM or Falcon": r"(^|\.)h\.\d+\.self_attention\.query_key_value\.weight$",
    "GPT-J": r"(^|\.)h\.\d+\.attn\.q_proj\.weight$",
    "T5": r"(^|\.)(encoder|decoder)\.block\.\d+\.layer\.\d+\.",
}
# whole names: the book's model_and_optimizer.pth has a model
OPTIMIZERS = re.compile(
    r"^(optimizer|scheduler|scaler|training_args)\.(pt|bin|pth)$|^rng_state.*\.pth$"
)
OURS = ("gpt2", "gpt_neo")
# mixtures of experts are refused by name where their config is read
LLAMAS = ("llama", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe")
ADAPTER_CONFIG = "adapter_config.json"
INDEX = ".index.json"  # of shards
# endings of what lies beside weights
SETTINGS = (".json", ".txt", ".tiktoken", ".pkl", ".model", ".md")


def _has_name(pattern: re.Pattern[str]) -> Callable[[Shapes], bool]:
    return lambda shapes: any(pattern.search(name) for name in shapes)


def _is_classifier(shapes: Shapes) -> bool:
    head = shapes.get("out_head.weight", ())
    embedding = shapes.get("tok_emb.weight", ())
    return len(head) == 2 and len(embedding) == 2 and head[0] < embedding[0]


def _is_theirs_with_other_head(seen: Seen) -> bool:
    architectures = seen.config.get("architectures")
    if seen.config.get("model_type") not in OURS or not isinstance(architectures, list):
        return False
    return any(
        str(name).endswith(("Classification", "QuestionAnswering")) for name in architectures
    )


def _is_other_architecture(seen: Seen) -> bool:
    kind = seen.config.get("model_type")
    return isinstance(kind, str) and kind not in (*OURS, *LLAMAS) and "emb_dim" not in seen.config


def _is_optimizer(saved: Any) -> bool:
    if not isinstance(saved, dict):
        return False
    keys = saved.keys()
    if {"state", "param_groups"} <= keys or {"last_epoch", "_step_count"} <= keys:
        return True
    return "optimizer_state_dict" in keys and not keys_to_state(saved)


def _is_zip_of_files(seen: Seen) -> bool:
    of_torch = ("/data.pkl", "/constants.pkl")
    return bool(seen.entries) and not any(name.endswith(of_torch) for name in seen.entries)


def _is_program_of_torch(seen: Seen) -> bool:
    return any(name.endswith("/constants.pkl") for name in seen.entries) and not seen.ends(".pt2")


def _is_of_tensorflow(seen: Seen) -> bool:
    names = (seen.name, *seen.inside - {"checkpoint"})  # a folder may be called so
    return any(TENSORFLOW.search(name) for name in names)


def _is_of_deepspeed(seen: Seen) -> bool:
    if seen.ends("_optim_states.pt", "_model_states.pt"):
        return True
    return "zero_to_fp32.py" in seen.inside and not seen.inside & {
        "model.safetensors",
        "pytorch_model.bin",
    }


def _is_a_lone_shard(seen: Seen) -> bool:
    return bool(SHARD.search(seen.name)) and not any(name.endswith(INDEX) for name in seen.inside)


FROM_TENSORFLOW = """
# with transformers 4 and TensorFlow
from transformers import GPT2LMHeadModel

model = GPT2LMHeadModel.from_pretrained("FOLDER", from_tf=True)
model.save_pretrained("converted")
"""
FROM_FLAX = FROM_TENSORFLOW.replace("TensorFlow", "Flax").replace("from_tf", "from_flax")

BOOKS_DOWNLOAD = """
# with the book's own functions, section 5.5
settings, params = download_and_load_gpt2(model_size="124M", models_dir="gpt2")
load_weights_into_gpt(gpt, params)
torch.save(gpt.state_dict(), "gpt2.pth")
"""

MERGE_PEFT = """
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("FOLDER")
model.merge_and_unload().save_pretrained("merged")
"""

MERGE_LORA = """
for layer in model.modules():
    if hasattr(layer, "lora"):
        lora = layer.lora
        layer.linear.weight.data += lora.alpha * (lora.A @ lora.B).T.detach()
state = {n.replace(".linear.", "."): w for n, w in model.state_dict().items() if ".lora." not in n}
torch.save(state, "merged.pth")
"""

CLASSIFIERS_BODY = """
state = torch.load("FILE", map_location="cpu")
del state["out_head.weight"]
state.pop("out_head.bias", None)
torch.save(state, "body.pth")
"""

FROM_GGUF = """
from transformers import AutoModelForCausalLM, GPT2LMHeadModel

read = AutoModelForCausalLM.from_pretrained("FOLDER", gguf_file="FILE")
del read.config.quantization_config
model = GPT2LMHeadModel(read.config)
model.load_state_dict(read.state_dict())
model.save_pretrained("converted")
"""

SAVE_WEIGHTS = """
# this runs the code in the file: only with one that you made yourself
model = torch.load("FILE", map_location="cpu", weights_only=False)
torch.save(model.state_dict(), "weights.pth")
"""

FROM_TORCHSCRIPT = """
state = torch.jit.load("FILE", map_location="cpu").state_dict()
torch.save(dict(state), "weights.pth")
"""

FROM_DISTRIBUTED = """
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

dcp_to_torch_save("FILE", "weights.pth")
"""

WITH_ITS_BODY = """
from transformers import GPT2LMHeadModel

model = GPT2LMHeadModel.from_pretrained("FOLDER")
model.save_pretrained("body")
"""

PICKLED_CODE = Kind(
    "a pickle that would run code",
    "the name of a class or function in it, as of a whole model; settings beside weights are read as data",
    "It contains a whole model or another object, and only data is read here. Save just the weights.",
    SAVE_WEIGHTS,
)

OTHER_ARCHITECTURE = Kind(
    "a model of another architecture than GPT-2's or Llama's",
    "a `model_type` in config.json, or names, of Mistral, BERT, GPT-NeoX, T5, ...",
    'It has other layers than those that gptviz draws. Try gptviz.load("gpt2").',
    looks_so=_is_other_architecture,
    named_so=lambda shapes: any(re.search(p, name) for p in OTHER.values() for name in shapes),
)

KINDS = (
    # ---- read ----
    Kind(
        "the book's state dict",
        "names such as `tok_emb.weight` and `trf_blocks.0.att.W_query.weight`",
        "It loads with `n_heads=`, unless settings beside the weights say it. So do instruction-tuned files.",
        loads=True,
    ),
    Kind(
        "a nanoGPT checkpoint",
        "`model` beside `model_args`",
        "It loads. If there is a `meta.pkl` beside it, that gives its characters.",
        loads=True,
    ),
    Kind(
        "a checkpoint of build-nanogpt",
        "`model` beside a `config` that has `block_size`",
        "It loads. The object in `config` is read as data: its class is never looked up.",
        loads=True,
    ),
    Kind(
        "a bare state dict of nanoGPT, minGPT or build-nanogpt",
        "GPT-2's names, with `c_attn.weight` of three times as many rows as columns",
        "It loads with `n_heads=`, or with a config.json beside it. Hugging Face transposes its weights; these "
        "are not transposed.",
        loads=True,
    ),
    Kind(
        "a folder of Hugging Face's GPT-2 or GPT-Neo",
        "a `config.json` with `model_type` gpt2 or gpt_neo, and weights in one file or in shards",
        "It loads.",
        loads=True,
    ),
    Kind(
        "a folder of Hugging Face's Llama, Qwen2, Qwen3 or SmolLM2",
        "a `config.json` with `model_type` llama, qwen2 or qwen3, and weights in one file or in shards",
        "It loads; weights of 16 bits are read as float32.",
        loads=True,
    ),
    Kind(
        "a state dict of the book's Llama or Qwen3",
        "names such as `trf_blocks.0.ff.fc1.weight`",
        "It loads with a config.json beside it, which has the book's dict of settings, as JSON.",
        loads=True,
    ),
    Kind(
        "a model inside of a wrapper",
        "a word before all names (`module.`, `_orig_mod.`, `model.`, ...), or a dict around them "
        "(`state_dict`, `model`, `model_state_dict`, ...)",
        "It loads: gptviz takes the wrapper off, also from a model in memory.",
        loads=True,
    ),
    Kind(
        "the folder of a Trainer's checkpoints",
        "folders named `checkpoint-500`, and no weights beside them",
        "Its newest checkpoint loads, and the model is named after it.",
        loads=True,
    ),
    Kind(
        "a model's folder in Hugging Face's cache",
        "`snapshots` and `refs`",
        "Its commit of `refs/main` loads.",
        loads=True,
    ),
    Kind(
        "OpenAI's GPT-2 as TensorFlow keeps it",
        "`hparams.json`, `model.ckpt.index` and `model.ckpt.data-00000-of-00001` together",
        "It loads. Chapter 5 of the book downloads it.",
        loads=True,
    ),
    # ---- not read ----
    Kind(
        "a checkpoint of TensorFlow, and not all of OpenAI's GPT-2",
        "some of these files, or a file `.ckpt.meta`, without the others",
        "Give the folder with hparams.json, the index and the data, as chapter 5 of the book downloads them. "
        "Or save the weights from the book's model.",
        BOOKS_DOWNLOAD,
        looks_so=_is_of_tensorflow,
    ),
    Kind(
        "a PEFT adapter, which changes a model and is none",
        "`adapter_config.json`, `adapter_model.safetensors`, or names with `lora_A`",
        "Merge it into its model with model.merge_and_unload(), and give that.",
        MERGE_PEFT,
        looks_so=lambda seen: (
            seen.name.startswith(("adapter_model.", ADAPTER_CONFIG))
            or bool(
                seen.inside & {ADAPTER_CONFIG, "adapter_model.safetensors", "adapter_model.bin"}
            )
        ),
        named_so=_has_name(ADAPTER),
    ),
    Kind(
        "a model of the book with LoRA layers",
        "names that end in `lora.A` and `lora.B`, as in appendix E",
        "Merge the layers into the weights of the model in memory, where alpha is known, and save those.",
        MERGE_LORA,
        named_so=_has_name(BOOK_LORA),
    ),
    Kind(
        "a classifier of the book",
        "an `out_head` with fewer rows than `tok_emb`, as in `review_classifier.pth`",
        "Its outputs are classes, not tokens. Its body loads without them. Its head is then the token "
        "embedding: look at its blocks, not at its next tokens.",
        CLASSIFIERS_BODY,
        named_so=_is_classifier,
    ),
    Kind(
        "a GPT-2 that gives classes or spans, not next tokens",
        "`architectures` with ForSequenceClassification, ForTokenClassification or ForQuestionAnswering",
        "Its body loads without its head. Its head is then the token embedding: look at its blocks, not at "
        "its next tokens.",
        WITH_ITS_BODY,
        looks_so=_is_theirs_with_other_head,
    ),
    Kind(
        "a quantised model, whose weights are rounded to a few bits",
        "`quantization_config` in config.json, or names such as `absmax`, `SCB` and `qweight`",
        "Give the model that it was made from, before it was quantised.",
        looks_so=lambda seen: bool(seen.config.get("quantization_config")),
        named_so=_has_name(QUANTISED),
    ),
    OTHER_ARCHITECTURE,
    Kind(
        "an optimizer's or a Trainer's state, without the model",
        "`optimizer.pt`, `training_args.bin` and so on, or `state` beside `param_groups`",
        "The weights are in another file of the same training, such as model.safetensors.",
        looks_so=lambda seen: bool(OPTIMIZERS.search(seen.name)),
        saved_so=_is_optimizer,
    ),
    Kind(
        "an HDF5 file, as Keras and TensorFlow write them",
        "the ending `.h5`, or its first bytes",
        "GPT-2's repository has model.safetensors beside it: take that. Convert a model of your own.",
        FROM_TENSORFLOW,
        looks_so=lambda seen: (
            seen.ends(".h5", ".hdf5", ".keras") or seen.first.startswith(b"\x89HDF")
        ),
    ),
    Kind(
        "Flax's weights",
        "the ending `.msgpack`",
        "GPT-2's repository has model.safetensors beside it: take that. Convert a model of your own.",
        FROM_FLAX,
        looks_so=lambda seen: seen.ends(".msgpack"),
    ),
    Kind(
        "a SavedModel of TensorFlow",
        "`saved_model.pb`",
        "It is a program of layers. Take the weights from the folder that it was made from.",
        FROM_TENSORFLOW,
        looks_so=lambda seen: seen.ends(".pb") or "saved_model.pb" in seen.inside,
    ),
    Kind(
        "a program of layers for another runtime",
        "the endings `.onnx`, `.tflite`, `.ot`, `.mlmodel`, `.pt2`, `.engine`",
        "It does not have the model's tensors by their names. Take the model that it was exported from.",
        looks_so=lambda seen: seen.ends(".onnx", ".tflite", ".ot", ".mlmodel", ".pt2", ".engine"),
    ),
    Kind(
        "a GGUF file, as llama.cpp reads them",
        "the ending `.gguf`, or its first bytes",
        "If it contains a GPT-2, transformers can convert it with the package gguf; gptviz cannot show other models.",
        FROM_GGUF,
        looks_so=lambda seen: (
            seen.ends(".gguf", ".ggml") or seen.first.startswith((b"GGUF", b"lmgg", b"tjgg"))
        ),
    ),
    Kind(
        "a file of NumPy's arrays",
        "the endings `.npy` and `.npz`, or their first bytes",
        'Save the model\'s weights from PyTorch: torch.save(model.state_dict(), "weights.pth").',
        looks_so=lambda seen: seen.ends(".npy", ".npz") or seen.first.startswith(b"\x93NUMPY"),
    ),
    Kind(
        "a folder of torch.distributed's checkpoints",
        "`.metadata` and files that end in `.distcp`",
        "Make one file of it.",
        FROM_DISTRIBUTED,
        looks_so=lambda seen: (
            any(name.endswith(".distcp") for name in seen.inside) or seen.ends(".distcp")
        ),
    ),
    Kind(
        "a DeepSpeed checkpoint, with weights split over its files",
        "`zero_to_fp32.py`, or files that end in `_optim_states.pt`",
        "Make one file of it, in its folder: python zero_to_fp32.py . pytorch_model.bin",
        looks_so=_is_of_deepspeed,
    ),
    PICKLED_CODE,
    Kind(
        "a program of TorchScript",
        "a zip archive with `constants.pkl` in it",
        "Take the weights out of it.",
        FROM_TORCHSCRIPT,
        looks_so=_is_program_of_torch,
    ),
    Kind(
        "an archive with files in it",
        "the first bytes of zip, gzip, 7z, xz or zstd, or a tar's ending",
        "Unpack it, and give the folder or the file of weights that was in it.",
        looks_so=lambda seen: (
            _is_zip_of_files(seen)
            or seen.ends(".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
            or seen.first.startswith(
                (b"\x1f\x8b", b"7z\xbc\xaf", b"\xfd7zXZ", b"(\xb5/\xfd", b"Rar!")
            )
        ),
    ),
    Kind(
        "a Git LFS pointer, which only says where the file is",
        "the first line `version https://git-lfs...`",
        "Get the file itself: run git lfs pull in its folder, or download it from the repository's page.",
        looks_so=lambda seen: seen.first.startswith(b"version https://git-lfs"),
    ),
    Kind(
        "a web page that was saved in the file's place",
        "a first line of HTML",
        "Download the file again: its own address has resolve/ where its page's address has blob/.",
        looks_so=lambda seen: seen.first.lstrip().lower().startswith((b"<!doctype html", b"<html")),
    ),
    Kind(
        "one of several files of a model's weights",
        "a name such as `model-00001-of-00002.safetensors`, and no index beside it",
        "Give the folder with all of them and with their index, model.safetensors.index.json.",
        looks_so=_is_a_lone_shard,
    ),
    Kind(
        "settings or a tokenizer, without weights",
        "`config.json`, `tokenizer.json`, `vocab.json`, `merges.txt`, `meta.pkl`, by themselves",
        "Give the folder that it is in, or the file of weights beside it.",
        looks_so=lambda seen: (
            seen.ends(".json", ".txt", ".tiktoken", "meta.pkl", ".model", ".md")
            and not seen.ends(INDEX)
        ),
    ),
)

# endings of what is recognised by them, and never read
ENDINGS = (
    *(
        ".h5",
        ".hdf5",
        ".keras",
        ".msgpack",
        ".pb",
        ".onnx",
        ".tflite",
        ".ot",
        ".mlmodel",
        ".pt2",
        ".engine",
    ),
    *(".gguf", ".ggml", ".npy", ".npz", ".distcp"),
    *(".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"),
)


def is_llama(names: Iterable[str]) -> bool:
    """Whether these are the names of a Llama's tensors, or of a relative's, in transformers."""
    return any(LLAMA.search(name) for name in names)


def is_book_llama(names: Iterable[str]) -> bool:
    """Whether these are the names of the book's Llama or Qwen3, and so of ours."""
    return any(BOOK_LLAMA.search(name) for name in names)


def refuse(path: Path, seen: Seen) -> None:
    """Raise the CheckpointError of what is seen at `path`, if it is of a kind that is not read."""
    for kind in KINDS:
        if kind.looks_so(seen):
            raise kind.error(path)


def refuse_saved(path: Path, saved: object) -> None:
    """Raise the CheckpointError of what torch.save wrote, if it is of a kind that is not read."""
    for kind in KINDS:
        if kind.saved_so(saved):
            raise kind.error(path)


def refuse_named(path: Path, shapes: Shapes, in_memory: bool = False) -> None:
    """Raise the CheckpointError of tensors with these bare names and shapes, if they are of such a kind."""
    for kind in KINDS:
        if kind.named_so(shapes):
            raise kind.error(path, in_memory=in_memory)
