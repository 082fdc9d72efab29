"""`load()`: a LanguageModel from a name, a folder or a file."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tiktoken import Encoding

from gptviz.engine.blank import init_weights
from gptviz.engine.config import GPTConfig
from gptviz.engine.index import one_of, whole
from gptviz.engine.kinds import Config, Model, gpt2s
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed
from gptviz.files.disk_cache import ASSETS
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.models.checkpoints import (
    Checkpoint,
    CheckpointError,
    SurplusTokens,
    TokenizerMissing,
    recognise,
)
from gptviz.models.checkpoints.download import Report, download
from gptviz.models.checkpoints.errors import errors_of
from gptviz.models.checkpoints.hub import HUB_MODELS, cached_folder, is_hub_id
from gptviz.models.checkpoints.looks import meant
from gptviz.models.checkpoints.nanogpt import read_meta
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import encoding_from_ranks, encoding_names, get_encoding
from gptviz.tokenizer.chat import NO_CHAT, Chat
from gptviz.tokenizer.files import read_folder, read_llama3, read_tokenizer_json
from gptviz.tokenizer.objects import read_object
from gptviz.tokenizer.vocabulary import Surplus, Vocabulary, fitted, of_encoding, without_surplus

# whose weights are in the package, each in its folder of ASSETS; its tokenizer is called as it is
BUNDLED = ("mini", "mini-world")
DEFAULT_MODEL = "mini-world"
# of a link that names no model: the only bundled one when such links were made
UNSAID_MODEL = "mini"

KNOWN_MODELS = {
    "mini": "trained for gptviz on 262 English books; small, and always here",
    "mini-world": "mini, trained on with plain English about facts, people and numbers; always here",
    "mini-untrained": "mini before its first step of training: the weights that it began with",
    "gpt2-untrained": "GPT-2 124M as the book's torch.manual_seed(123) makes it, before any training",
}

SEED = 123  # the book's, and that of `training.recipe.Recipe`

GPT2_SIZES = (50257, 50304)  # GPT-2's vocabulary, and as nanoGPT pads it

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

# an encoding's name, a file, a tiktoken.Encoding, one of transformers or tokenizers; None
Tokenizer = Any

WITHOUT_THEM = (
    ". drop_surplus=True (--drop-surplus) goes on without them: typed, they are plain text then"
)


@dataclass(frozen=True)
class Plan:
    """A model that was found and recognised: its size and tokenizer are known, no weights are read yet.

    `activation_is_assumed` and `doubt` are a Checkpoint's.
    """

    name: str
    config: Config
    tokenizer: Encoding
    make: Callable[[torch.dtype], Model]
    dtype: torch.dtype
    device: str
    activation_is_assumed: bool = False
    doubt: str = ""
    chat: Chat = NO_CHAT

    @property
    def nbytes(self) -> int:
        """The bytes of the model's weights. Nothing else of it is kept: a mask is made for each text."""
        return self.config.parameters * self.dtype.itemsize

    @undisturbed
    def load(self) -> LanguageModel:
        """Read the weights. To be called once. Raises CheckpointError."""
        model = self.make(self.dtype)
        if self.device != "cpu":
            model = model.to(self.device)
        return LanguageModel(
            model,
            self.tokenizer,
            self.config,
            self.name,
            activation_is_assumed=self.activation_is_assumed,
            chat=self.chat,
        )


@undisturbed
def load(
    name: str | Path = DEFAULT_MODEL,
    *,
    n_heads: int | None = None,
    activation: str | None = None,
    tokenizer: Tokenizer = None,
    drop_surplus: bool = False,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "cpu",
    report: Report | None = None,
) -> LanguageModel:
    """A model by its name (`KNOWN_MODELS`, `HUB_MODELS`), a folder or a file, or a repository on the hub.

    Folders and files: ours, Hugging Face's GPT-2, GPT-Neo, Llama, Qwen2, Qwen3 and SmolLM2, the book's
    `torch.save`, nanoGPT's ckpt.pt and its relatives', OpenAI's folder that the book downloads; what was put
    around one of them comes off. A repository, "owner/name", must hold one of Hugging Face's; it is downloaded
    unless it is in Hugging Face's cache already, and then no network is touched. `report` is called with the
    download's Progress.
    `n_heads`: for the book's files and bare state dicts, which do not say it. `activation`: "gelu_tanh" or
    "gelu", for the book's files and nanoGPT's, which do not say it either. The book's have the first; a
    nanoGPT's is taken to have the second, and a warning says so, since those before June 2023 and bare
    weights of build-nanogpt have the first.
    `tokenizer`: an encoding, an encoding's name, a tokenizer file, or a tokenizer of transformers or
    tokenizers, where the model brings none; GPT-2's if not given and the vocabulary has its size.
    `drop_surplus` leaves out added tokens that the model has no row for, as a pad token where the embedding
    was not resized; typed, they are plain text then.
    `dtype` "bfloat16" takes half the memory and rounds to three digits at every step, which adds up: an
    attention weight of the bundled model was .165 off (`benchmarks/rounding.py`). `device`: `devices()`.

    Raises CheckpointError, which is a ValueError, for what cannot be loaded: never half a model.
    """
    planned = plan(
        name,
        n_heads=n_heads,
        activation=activation,
        tokenizer=tokenizer,
        drop_surplus=drop_surplus,
        dtype=dtype,
        device=device,
        report=report,
    )
    if planned.doubt:
        warnings.warn(planned.doubt, stacklevel=3)  # at the caller of `load`, past its decorator
    return planned.load()


@undisturbed
def plan(
    name: str | Path = DEFAULT_MODEL,
    *,
    n_heads: int | None = None,
    activation: str | None = None,
    tokenizer: Tokenizer = None,
    drop_surplus: bool = False,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "cpu",
    report: Report | None = None,
    called: str | None = None,
) -> Plan:
    """Do what `load` does before the weights. `called` is another name for the model than its file's."""
    if not isinstance(name, str | Path):
        raise CheckpointError(
            f"a {type(name).__name__} is no name, folder or file of a model; a model that is in memory "
            "already is wrapped: gptviz.wrap(model, tokenizer)"
        )
    if n_heads is not None:
        n_heads = whole("n_heads", n_heads, 1)
    dtype = str(dtype).removeprefix("torch.")
    device = str(device)
    one_of("dtype", dtype, DTYPES)
    if device not in devices():
        raise ValueError(f"device is {device!r}; this machine has {', '.join(devices())}")
    if name in KNOWN_MODELS and any(
        option is not None for option in (n_heads, activation, tokenizer)
    ):
        raise CheckpointError(
            f"{name} has its own heads, activation and tokenizer: leave n_heads, activation and tokenizer out"
        )
    if name in BUNDLED:
        checkpoint = recognise(ASSETS / name)
        return Plan(
            name,
            checkpoint.config,
            get_encoding(str(name)),
            checkpoint.model,
            DTYPES[dtype],
            device,
        )
    if name == "mini-untrained":
        checkpoint = recognise(ASSETS / "mini")
        make = partial(_untrained, gpt2s(checkpoint.config), True)
        return Plan(name, checkpoint.config, get_encoding("mini"), make, DTYPES[dtype], device)
    if name == "gpt2-untrained":
        config = GPTConfig.from_dict(GPT_CONFIG_124M)
        make = partial(_untrained, config, False)
        return Plan(name, config, get_encoding("gpt2"), make, DTYPES[dtype], device)
    path = _path_of(str(name), report)
    checkpoint = recognise(path, n_heads, activation)
    if called is None:
        if is_hub_name(str(name)):
            called = str(name)
        else:
            called = _called(path)
    # first: it is small, and may be what is wrong
    encoding, chat = tokenizer_for(checkpoint, called, tokenizer, drop_surplus)
    checkpoint.check_bytes()
    return Plan(
        called,
        checkpoint.config,
        encoding,
        checkpoint.model,
        DTYPES[dtype],
        device,
        checkpoint.activation_is_assumed,
        checkpoint.doubt,
        chat,
    )


def _called(path: Path) -> str:
    """The name of the model at a path: its file's or its folder's, with a Trainer's checkpoint behind it."""
    if path.is_file():
        return path.stem
    inner = meant(path).relative_to(path)
    step = ""
    if inner.name.startswith("checkpoint-"):
        step = f"/{inner}"
    return path.resolve().name + step


def devices() -> list[str]:
    """The devices of this machine: "cpu", and "cuda" or Apple's "mps" where they are."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return ["cpu", *(name for name, is_there in available.items() if is_there)]


def is_hub_name(name: str) -> bool:
    """Whether `load` takes this from the hub: a name of `HUB_MODELS`, or owner/name and no path."""
    return name in HUB_MODELS or (not os.path.exists(name) and is_hub_id(name))


def on_disk(name: str) -> Path | None:
    """The folder in Hugging Face's cache of a model that `is_hub_name`, None if it must be downloaded."""
    return cached_folder(HUB_MODELS[name].repositories if name in HUB_MODELS else (name,))


def _path_of(name: str, report: Report | None) -> Path:
    if is_hub_name(name):
        return hub_folder(name, report)
    if name and os.path.exists(name):  # which says no to a name that is too long for a file's
        return Path(name)
    raise no_such_model(name)


def no_such_model(name: str) -> CheckpointError:
    """The error for a name that is no model, no repository and no file."""
    known = [*KNOWN_MODELS, *HUB_MODELS]
    return CheckpointError(
        f"there is no model {name!r}{did_you_mean(name, known)}: it is no file, no folder, no repository "
        f"(owner/name) and none of {', '.join(known)}"
    )


def hub_folder(name: str, report: Report | None = None, most_bytes: int | None = None) -> Path:
    """The cache folder of a model that `is_hub_name`; downloaded if it is not there, see `download`."""
    if name in HUB_MODELS:
        repository = HUB_MODELS[name].repositories[0]
    else:
        repository = name
    return on_disk(name) or download(repository, report, most_bytes)


def tokenizer_for(
    checkpoint: Checkpoint,
    name: str,
    tokenizer: Tokenizer | Vocabulary = None,
    drop_surplus: bool = False,
) -> tuple[Encoding, Chat]:
    """The encoding that a checkpoint's ids belong to, and what came with it for chats.

    Raises CheckpointError.
    """
    size = checkpoint.config.vocab_size
    if isinstance(tokenizer, Encoding) and tokenizer.n_vocab == size:
        return tokenizer, NO_CHAT
    with errors_of(checkpoint.path):
        vocabulary = vocabulary_for(checkpoint, tokenizer, drop_surplus)
        return fitted(vocabulary, name, size), vocabulary.chat


def vocabulary_for(
    checkpoint: Checkpoint, tokenizer: Tokenizer | Vocabulary = None, drop_surplus: bool = False
) -> Vocabulary:
    """The vocabulary that is given, or the checkpoint's own, or GPT-2's for its size.

    Raises ValueError, SurplusTokens for added tokens that the model has no row for.
    """
    vocabulary = _vocabulary_for(checkpoint, tokenizer)
    try:
        return without_surplus(vocabulary, checkpoint.config.vocab_size, drop_surplus)
    except Surplus as error:
        raise SurplusTokens(f"{checkpoint.path}: {error}{WITHOUT_THEM}") from None


def _vocabulary_for(checkpoint: Checkpoint, tokenizer: Tokenizer | Vocabulary) -> Vocabulary:
    size = checkpoint.config.vocab_size
    if isinstance(tokenizer, Encoding):
        return of_encoding(tokenizer)
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    if isinstance(tokenizer, str | Path):
        return read_tokenizer(tokenizer)
    if tokenizer is not None:
        return read_object(tokenizer)
    own_vocabulary = checkpoint.vocabulary()
    if own_vocabulary is not None:
        return own_vocabulary
    if size in GPT2_SIZES:
        return of_encoding(get_encoding("gpt2"))
    raise TokenizerMissing(
        f"{checkpoint.path} brings no tokenizer, and its vocabulary of {size:,} is not GPT-2's: "
        "say which it is, tokenizer=...: an encoding's name, tokenizer.json, a file of "
        "tiktoken ranks, or nanoGPT's meta.pkl"
    )


def read_tokenizer(tokenizer: str | Path) -> Vocabulary:
    """A vocabulary by an encoding's name, or from a file or folder. Raises ValueError."""
    path = Path(tokenizer)
    if str(tokenizer) in encoding_names():
        return of_encoding(get_encoding(str(tokenizer)))
    if path.is_dir():
        vocabulary = read_folder(path)
        if vocabulary is None:
            raise ValueError(
                f"{path} has neither tokenizer.json nor vocab.json and merges.txt: put them there"
            )
        return vocabulary
    readers = {
        ".json": read_tokenizer_json,
        ".pkl": read_meta,
        ".tiktoken": lambda file: of_encoding(encoding_from_ranks(file)),
        ".model": read_llama3,
    }
    if path.is_file():
        if path.suffix not in readers:
            raise ValueError(f"{path} is no tokenizer file; those end in {', '.join(readers)}")
        return readers[path.suffix](path)
    raise ValueError(
        f"{str(tokenizer)!r} is no tokenizer: no file and none of {', '.join(encoding_names())}"
    )


def _untrained(config: GPTConfig, trains: bool, dtype: torch.dtype) -> GPTModel:
    """The book's weights, or those with which `gptviz.training` begins; the caller's seed is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = GPTModel(config)
    if trains:
        init_weights(model, SEED)
    return model.eval().to(dtype)
