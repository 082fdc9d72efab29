"""What a file or a folder is: the one place that recognises checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from gptviz.checkpoints import book, folder, hugging_face, nanogpt
from gptviz.checkpoints.assemble import Dialect, assemble
from gptviz.checkpoints.errors import CheckpointError
from gptviz.checkpoints.looks import bytes_of, read_json
from gptviz.checkpoints.tensors import SafeTensors, Tensors, TorchTensors, read_pickle
from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel
from gptviz.tokenizer import files as tokenizer_files
from gptviz.tokenizer.vocabulary import Vocabulary

NANOGPT = "ckpt.pt"
SPARE = 2**18  # parameters, for which nobody asks
TORCH_SUFFIXES = (".pth", ".pt", ".bin", ".ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was recognised: its config is known and can be built, its weights are not read yet.

    `vocabulary` reads the tokenizer that came with it, None where none did.
    """

    path: Path
    dialect: Dialect
    config: GPTConfig
    tensors: Tensors
    vocabulary: Callable[[], Vocabulary | None]

    def check_bytes(self) -> None:
        """Raise CheckpointError where the files have less than a byte for each parameter."""
        found, parameters = bytes_of(self.path), self.config.parameters
        if parameters > found + SPARE:  # one number, shown as a million
            raise CheckpointError(
                f"{self.path} has {found:,} bytes, too few for a model of {parameters:,} parameters"
            )

    def model(self, dtype: torch.dtype = torch.float32) -> GPTModel:
        """The whole model, in eval mode, or a CheckpointError. To be called once."""
        return assemble(self.config, self.dialect, self.tensors, dtype)


def recognise(path: Path, n_heads: int | None = None) -> Checkpoint:
    """Return what is at `path`. `n_heads` is for the book's files, which do not say it.

    Raises CheckpointError for what is none of the formats, and where `n_heads` is not the checkpoint's own.
    """
    if not path.exists():
        raise CheckpointError(f"there is no file or folder {path}")
    found = _in_folder(path, n_heads) if path.is_dir() else _file(path, n_heads)
    if n_heads is not None and n_heads != found.config.n_heads:
        raise CheckpointError(f"{path} has {found.config.n_heads} heads, not {n_heads}: leave n_heads out")
    return found


def _in_folder(path: Path, n_heads: int | None) -> Checkpoint:
    if (path / folder.CONFIG).is_file():
        keys = read_json(path / folder.CONFIG).keys()
        return _ours(path) if "emb_dim" in keys else _hugging_face(path)
    if (path / NANOGPT).is_file():
        return _file(path / NANOGPT, n_heads)
    files = [file for file in sorted(path.iterdir()) if file.suffix in (*TORCH_SUFFIXES, ".safetensors")]
    if len(files) == 1:
        found = _file(files[0], n_heads)
        return replace(found, vocabulary=lambda: found.vocabulary() or tokenizer_files.read_folder(path))
    several = f"several files of weights: name one of {', '.join(file.name for file in files)}"
    what = several if files else "no weights"
    raise CheckpointError(f"{path} has no {folder.CONFIG} and {what}")


def _file(path: Path, n_heads: int | None) -> Checkpoint:
    if not path.is_file():  # a pipe would be waited for
        raise CheckpointError(f"{path} is no file that could be read as a checkpoint")
    if path.name.endswith(".index.json") and path.name in hugging_face.WEIGHTS:
        return _in_folder(path.parent, n_heads)
    if path.suffix == ".safetensors":
        return _state_dict(path, SafeTensors(path), n_heads)
    if path.suffix not in TORCH_SUFFIXES:
        raise CheckpointError(f"{path} is no checkpoint: known are .safetensors, {', '.join(TORCH_SUFFIXES)}")
    saved = read_pickle(path)
    if nanogpt.is_nanogpt(saved):
        config, tensors = nanogpt.read_config(path, saved), TorchTensors(path, saved, "model")
        return Checkpoint(path, nanogpt.DIALECT, config, tensors, lambda: folder.meta_of(path.parent))
    key = "model_state_dict" if isinstance(saved, dict) and "model_state_dict" in saved else None
    return _state_dict(path, TorchTensors(path, saved, key), n_heads)


def _state_dict(path: Path, tensors: Tensors, n_heads: int | None) -> Checkpoint:
    names = set(tensors.shapes)
    config_beside = path.parent / folder.CONFIG
    if book.is_book(names):
        if path.name == folder.WEIGHTS and config_beside.is_file():
            return _in_folder(path.parent, n_heads)
        return Checkpoint(path, book.DIALECT, book.config_of(tensors, n_heads), tensors, lambda: None)
    if any(hugging_face.DIALECT.plain(name) == "wte.weight" for name in names):
        if not config_beside.is_file():
            raise CheckpointError(
                f"{path} has the tensors of a Hugging Face model, but no {folder.CONFIG} is beside it; "
                "put the one that belongs to it there"
            )
        return _hugging_face(path.parent, tensors)
    some = ", ".join(sorted(names)[:3])
    raise CheckpointError(
        f"{path} has {len(names)} tensors that belong to no model known here (such as {some}); known are the "
        "book's GPTModel, Hugging Face's GPT2LMHeadModel and GPTNeoForCausalLM, and nanoGPT"
    )


def _ours(path: Path) -> Checkpoint:
    dialect = book.DIALECT if folder.has_book_weights(path) else folder.DIALECT
    config, tensors = folder.read_config(path), folder.weights_of(path)
    return Checkpoint(path, dialect, config, tensors, lambda: folder.vocabulary_of(path))


def _hugging_face(path: Path, tensors: Tensors | None = None) -> Checkpoint:
    config = hugging_face.read_config(path / folder.CONFIG)
    tensors = tensors or hugging_face.weights_of(path)
    dialect = hugging_face.dialect_of(config)
    return Checkpoint(path, dialect, config, tensors, lambda: tokenizer_files.read_folder(path))
