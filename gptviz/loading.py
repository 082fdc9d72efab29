"""`load()`: a LanguageModel from a name, a folder or a file."""

from pathlib import Path

import tiktoken
import torch

from gptviz.checkpoints import Checkpoint, CheckpointError, recognise
from gptviz.checkpoints.download import Report, download
from gptviz.checkpoints.hub import HUB_MODELS, cached_folder, is_hub_id
from gptviz.checkpoints.meta_pickle import read_meta
from gptviz.config import GPTConfig
from gptviz.language_model import LanguageModel
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.tokenizer import encoding_from_ranks, encoding_names, get_encoding
from gptviz.tokenizer_files import read_folder, read_tokenizer_json
from gptviz.vocabulary import Vocabulary, fitted, of_encoding

ASSETS = Path(__file__).parent / "assets"

KNOWN_MODELS = {
    "mini": "trained for gptviz on 262 English books; small, and always here",
    "gpt2-untrained": "GPT-2 124M as the book's torch.manual_seed(123) makes it, before any training",
}

GPT2_SIZES = (50257, 50304)  # GPT-2's vocabulary, and as nanoGPT pads it

Tokenizer = str | Path | tiktoken.Encoding | None


def load(
    name: str | Path = "mini",
    *,
    n_heads: int | None = None,
    tokenizer: Tokenizer = None,
    report: Report | None = None,
) -> LanguageModel:
    """A model by its name (`KNOWN_MODELS`, `HUB_MODELS`), a folder or a file, or a repository on the hub.

    Folders and files: ours, Hugging Face's GPT-2, the book's `torch.save`, nanoGPT's ckpt.pt. A
    repository, "owner/name", must hold a GPT-2; it is downloaded unless it is in Hugging Face's cache
    already, and then no network is touched. `report` is called with the download's Progress.
    `n_heads`: for the book's files, which do not say it. `tokenizer`: an encoding, an encoding's name, or a
    tokenizer file, where the model brings none; GPT-2's if not given and the vocabulary has its size.

    Raises CheckpointError, which is a ValueError, for what cannot be loaded: never half a model.
    """
    if name == "mini":
        return load_path(ASSETS / "mini", "mini", tokenizer=get_encoding("mini"))
    if name == "gpt2-untrained":
        return _untrained()
    known = name in HUB_MODELS
    path = Path(name)
    if path.exists() and not known:
        return load_path(path, path.stem if path.is_file() else path.resolve().name, n_heads, tokenizer)
    if known or is_hub_id(str(name)):
        return load_path(hub_folder(str(name), report), str(name), n_heads, tokenizer)
    raise CheckpointError(
        f"there is no model {str(name)!r}: it is no file, no folder, no repository (owner/name) and none "
        f"of {', '.join([*KNOWN_MODELS, *HUB_MODELS])}"
    )


def hub_folder(name: str, report: Report | None = None) -> Path:
    """The cache folder of a name of `HUB_MODELS` or of a repository; downloaded if it is not there."""
    repositories = HUB_MODELS[name].repositories if name in HUB_MODELS else (name,)
    return cached_folder(repositories) or download(repositories[0], report)


def load_path(
    path: Path, name: str, n_heads: int | None = None, tokenizer: Tokenizer = None
) -> LanguageModel:
    """A model from a folder or a file, called `name`."""
    checkpoint = recognise(path, n_heads)
    encoding = tokenizer_for(checkpoint, name, tokenizer)  # first: it is small, and may be what is wrong
    return LanguageModel(checkpoint.model(), encoding, checkpoint.config, name)


def tokenizer_for(checkpoint: Checkpoint, name: str, tokenizer: Tokenizer = None) -> tiktoken.Encoding:
    """The encoding that a checkpoint's ids belong to. Raises CheckpointError."""
    size = checkpoint.config.vocab_size
    try:
        if isinstance(tokenizer, tiktoken.Encoding):
            return tokenizer if tokenizer.n_vocab == size else fitted(of_encoding(tokenizer), name, size)
        if tokenizer is not None:
            return fitted(read_tokenizer(tokenizer), name, size)
        own = checkpoint.vocabulary()
        if own is not None:
            return fitted(own, name, size)
        if size in GPT2_SIZES:
            return fitted(of_encoding(get_encoding("gpt2")), name, size)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from None
    raise CheckpointError(
        f"{checkpoint.path} brings no tokenizer, and its vocabulary of {size:,} is not GPT-2's: "
        "say which it is, gptviz.load(..., tokenizer=...): an encoding's name, tokenizer.json, a file of "
        "tiktoken ranks, or nanoGPT's meta.pkl"
    )


def read_tokenizer(tokenizer: str | Path) -> Vocabulary:
    """A vocabulary by an encoding's name, or from a file or folder. Raises ValueError."""
    path = Path(tokenizer)
    if path.is_dir():
        found = read_folder(path)
        if found is None:
            raise ValueError(f"{path} has neither tokenizer.json nor vocab.json and merges.txt")
        return found
    readers = {
        ".json": read_tokenizer_json,
        ".pkl": read_meta,
        ".tiktoken": lambda file: of_encoding(encoding_from_ranks(file)),
    }
    if path.is_file():
        if path.suffix not in readers:
            raise ValueError(f"{path} is no tokenizer file; those end in {', '.join(readers)}")
        return readers[path.suffix](path)
    if str(tokenizer) not in encoding_names():
        raise ValueError(
            f"there is no tokenizer {str(tokenizer)!r}: "
            f"it is no file and none of {', '.join(encoding_names())}"
        )
    return of_encoding(get_encoding(str(tokenizer)))


def _untrained() -> LanguageModel:
    with torch.random.fork_rng(devices=[]):  # the book's weights, without touching the caller's seed
        torch.manual_seed(123)
        model = GPTModel(GPT_CONFIG_124M)
    config = GPTConfig.from_dict(GPT_CONFIG_124M)
    return LanguageModel(model.eval(), get_encoding("gpt2"), config, "gpt2-untrained")
