"""Our own layout: a folder with config.json, model.safetensors and tokenizer.tiktoken or vocabulary.json.

`python -m gptviz.training export` and `gptviz.models.convert` write it; the names are the model's own.
The model that somebody trained on the Build it pages comes as the book's model.pth and a table of
characters instead.
"""

from dataclasses import replace
from pathlib import Path

from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.engine.llama_config import LlamaConfig
from gptviz.models.checkpoints import book
from gptviz.models.checkpoints.assemble import Dialect
from gptviz.models.checkpoints.book import table
from gptviz.models.checkpoints.errors import CheckpointError, errors_of
from gptviz.models.checkpoints.llama import largest_possible, shortened
from gptviz.models.checkpoints.looks import read_json
from gptviz.models.checkpoints.nanogpt import read_meta
from gptviz.models.checkpoints.tensors import Tensors, TorchTensors, open_tensors, read_pickle
from gptviz.tokenizer import encoding_from_ranks
from gptviz.tokenizer.vocabulary import Vocabulary, of_encoding, read_vocabulary

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
RANKS = "tokenizer.tiktoken"
VOCABULARY = "vocabulary.json"
BOOK_WEIGHTS = "model.pth"
META = "meta.pkl"

DIALECT = Dialect("gptviz's own folder", table, head="out_head.weight")
LLAMA_DIALECT = replace(DIALECT, bound=largest_possible)

LLAMA_KEY = "n_kv_groups"  # which no GPTModel's config has
NOT_READ = "dtype"  # of the book's dicts, which is said when a model is loaded


def read_config(folder: Path) -> Config:
    """The folder's config, a GPTModel's or a LlamaModel's. Raises CheckpointError."""
    values = read_json(folder / CONFIG)
    with errors_of(folder / CONFIG):
        if LLAMA_KEY not in values:
            return GPTConfig.from_dict(values)
        values.pop(NOT_READ, None)
        return shortened(LlamaConfig.from_dict(values))


def dialect_of(folder: Path, config: Config) -> Dialect:
    """How the folder's weights are named: as ours, or as the book's model.pth has them."""
    if isinstance(config, LlamaConfig):
        ours = LLAMA_DIALECT
        books = book.LLAMA_DIALECT
    else:
        ours = DIALECT
        books = book.DIALECT
    if has_book_weights(folder):
        return books
    return ours


def has_weights(folder: Path) -> bool:
    """Whether the folder has weights under a name of ours."""
    return any((folder / name).is_file() for name in (WEIGHTS, BOOK_WEIGHTS))


def has_book_weights(folder: Path) -> bool:
    """Whether the folder's weights are the book's model.pth."""
    return (folder / BOOK_WEIGHTS).is_file() and not (folder / WEIGHTS).is_file()


def weights_of(folder: Path) -> Tensors:
    if has_book_weights(folder):
        path = folder / BOOK_WEIGHTS
        return TorchTensors(path, read_pickle(path))
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS}: it is not a model folder")
    return open_tensors(folder / WEIGHTS)


def vocabulary_of(folder: Path) -> Vocabulary | None:
    """The folder's tokenizer, or None where it has none. Raises ValueError for a damaged one."""
    if (folder / RANKS).is_file():
        return of_encoding(encoding_from_ranks(folder / RANKS, folder.name))
    if (folder / VOCABULARY).is_file():
        return read_vocabulary(folder / VOCABULARY)
    return meta_of(folder)


def meta_of(folder: Path) -> Vocabulary | None:
    """The characters of the folder's meta.pkl, or None where it has none. Raises CheckpointError."""
    if (folder / META).is_file():
        return read_meta(folder / META)
    return None
