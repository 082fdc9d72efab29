"""What a file or a folder is: the one place that recognises checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from gptviz.engine.config import ACTIVATIONS, GPTConfig
from gptviz.engine.index import one_of
from gptviz.engine.kinds import Config, Model
from gptviz.models.checkpoints import book, families, folder, hugging_face, nanogpt, tensorflow
from gptviz.models.checkpoints.assemble import Dialect, assemble
from gptviz.models.checkpoints.errors import CheckpointError, errors_of
from gptviz.models.checkpoints.kinds import (
    OPTIMIZERS,
    SETTINGS,
    SHARD,
    is_book_llama,
    is_llama,
    refuse,
)
from gptviz.models.checkpoints.looks import bytes_of, meant, read_json, seen
from gptviz.models.checkpoints.sizes import heads_beside
from gptviz.models.checkpoints.tensors import SafeTensors, Tensors, TorchTensors, read_pickle
from gptviz.tokenizer import files as tokenizer_files
from gptviz.tokenizer.vocabulary import Vocabulary

NANOGPT = "ckpt.pt"
SPARE = 2**18  # parameters: a file may have that many too few
TORCH_SUFFIXES = (".pth", ".pt", ".bin", ".ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was recognised: its config is known and can be built, its weights are not read yet.

    `vocabulary` reads the tokenizer that came with it, None where none did. `activation_is_assumed`: which
    GELU it has stands in no file, and no caller said it; where that is often wrong, `doubt` says so.
    """

    path: Path
    dialect: Dialect
    config: Config
    tensors: Tensors
    vocabulary: Callable[[], Vocabulary | None]
    activation_is_assumed: bool = False
    doubt: str = ""

    def check_bytes(self) -> None:
        """Raise CheckpointError where the files have less than a byte for each parameter."""
        n_bytes = bytes_of(self.path)
        parameters = self.config.parameters
        if parameters > n_bytes + SPARE:  # one number, shown as a million
            raise CheckpointError(
                f"{self.path} has {n_bytes:,} bytes, too few for a model of {parameters:,} parameters"
            )

    def model(self, dtype: torch.dtype = torch.float32) -> Model:
        """The whole model, in eval mode, or a CheckpointError. To be called once."""
        return assemble(self.config, self.dialect, self.tensors, dtype)


def recognise(path: Path, n_heads: int | None = None, activation: str | None = None) -> Checkpoint:
    """Recognise the checkpoint at `path`.

    `n_heads` is for the book's files and bare state dicts, which do not say it; `activation`, "gelu_tanh" or
    "gelu", for the book's and nanoGPT's. Raises CheckpointError for what is none of the formats, and where
    `n_heads` or `activation` is not the checkpoint's own.
    """
    if not path.exists():
        raise CheckpointError(f"there is no file or folder {path}")
    path = meant(path)
    if path.is_dir():
        checkpoint = _in_folder(path, n_heads)
    else:
        checkpoint = _file(path, n_heads)
    if n_heads is not None and n_heads != checkpoint.config.n_heads:
        raise CheckpointError(
            f"{path} has {checkpoint.config.n_heads} heads, not {n_heads}: leave n_heads out"
        )
    if activation is None:
        return checkpoint
    return _with_activation(checkpoint, activation)


def _with_activation(checkpoint: Checkpoint, activation: str) -> Checkpoint:
    """The checkpoint with this activation. Raises CheckpointError if its files say another."""
    with errors_of(checkpoint.path):
        one_of("activation", activation, ACTIVATIONS)
    if not isinstance(checkpoint.config, GPTConfig):
        raise CheckpointError(
            f"{checkpoint.path} has SwiGLU, and activation says which GELU a GPT-2 has: leave activation out"
        )
    if checkpoint.activation_is_assumed:
        config = replace(checkpoint.config, activation=activation)
        return replace(checkpoint, config=config, activation_is_assumed=False, doubt="")
    if activation != checkpoint.config.activation:
        raise CheckpointError(
            f"{checkpoint.path} says that its activation is {checkpoint.config.activation}, not "
            f"{activation}: leave activation out"
        )
    return checkpoint


def _in_folder(path: Path, n_heads: int | None) -> Checkpoint:
    if tensorflow.is_openais(path):
        return _openais(path)
    refuse(path, seen(path))
    files = _weights_in(path)
    if len(files) != 1 and not hugging_face.has_weights(path):
        for file in sorted(path.iterdir()):
            if file.is_file() and not file.name.endswith(SETTINGS):
                refuse(file, seen(file))
    has_config = (path / folder.CONFIG).is_file()
    of_ours = has_config and "emb_dim" in read_json(path / folder.CONFIG)
    if of_ours and (len(files) != 1 or folder.has_weights(path)):
        return _ours(path)
    if has_config and not of_ours and (len(files) != 1 or hugging_face.has_weights(path)):
        return _hugging_face(path)
    if (path / NANOGPT).is_file():
        return _file(path / NANOGPT, n_heads)
    if len(files) == 1:
        checkpoint = _file(files[0], n_heads)
        return replace(
            checkpoint,
            vocabulary=lambda: checkpoint.vocabulary() or tokenizer_files.read_folder(path),
        )
    several = f"several files of weights: name one of {', '.join(file.name for file in files)}"
    what = several if files else "no weights"
    raise CheckpointError(f"{path} has no {folder.CONFIG} and {what}")


def _weights_in(folder: Path) -> list[Path]:
    """The folder's files of weights, without those of an optimizer, if there are others."""
    files = [
        file
        for file in sorted(folder.iterdir())
        if file.suffix in (*TORCH_SUFFIXES, ".safetensors")
    ]
    return [file for file in files if not OPTIMIZERS.search(file.name)] or files


def _file(path: Path, n_heads: int | None) -> Checkpoint:
    if not path.is_file():  # a pipe would be waited for
        raise CheckpointError(f"{path} is no file that could be read as a checkpoint")
    if path.name.endswith(tensorflow.FILES) and tensorflow.is_openais(path.parent):
        return _openais(path.parent)
    refuse(path, seen(path))
    if path.name.endswith(".index.json") and path.name in hugging_face.WEIGHTS:
        return _in_folder(path.parent, n_heads)
    if SHARD.search(path.name):
        return _in_folder(path.parent, n_heads)
    if path.suffix == ".safetensors":
        return _state_dict(path, SafeTensors(path), n_heads)
    if path.suffix not in TORCH_SUFFIXES:
        raise CheckpointError(
            f"{path} is no checkpoint: known are .safetensors, {', '.join(TORCH_SUFFIXES)}"
        )
    saved = read_pickle(path)
    if nanogpt.is_nanogpt(saved):
        return _nanogpt(path, nanogpt.read_config(path, saved), TorchTensors(path, saved))
    return _state_dict(path, TorchTensors(path, saved), heads_beside(saved) or n_heads)


def _state_dict(path: Path, tensors: Tensors, n_heads: int | None) -> Checkpoint:
    names = set(tensors.bare.values())
    config_beside = path.parent / folder.CONFIG
    if is_book_llama(names):
        return _books_llama(path, tensors)
    if is_llama(names):
        _check_config_beside(path)
        return _hugging_face(path.parent, tensors)
    if book.is_book(names):
        if path.name == folder.WEIGHTS and config_beside.is_file():
            return _in_folder(path.parent, n_heads)
        return Checkpoint(
            path, book.DIALECT, book.config_of(tensors, n_heads), tensors, lambda: None, True
        )
    if names & {"wte.weight", "transformer.wte.weight"}:
        if config_beside.is_file():
            config = read_json(config_beside)
        else:
            config = {}
        if nanogpt.has_linears(tensors) and not config.keys() & {"architectures", "model_type"}:
            n_heads = heads_beside(config) or n_heads  # minGPT writes its settings there
            return _nanogpt(path, nanogpt.config_of(tensors, n_heads), tensors)
        _check_config_beside(path)
        return _hugging_face(path.parent, tensors)
    examples = ", ".join(sorted(names)[:3])
    raise CheckpointError(
        f"{path} has {len(names)} tensors that belong to no model known here (such as {examples}); known are "
        "the book's GPTModel, Hugging Face's GPT-2, GPT-Neo, Llama, Qwen2 and Qwen3, and nanoGPT"
    )


def _check_config_beside(path: Path) -> None:
    """Raise CheckpointError for a file of Hugging Face's without the config that belongs to it."""
    if not (path.parent / folder.CONFIG).is_file():
        raise CheckpointError(
            f"{path} has the tensors of a Hugging Face model, but no {folder.CONFIG} is beside it; "
            "put the one that belongs to it there"
        )


def _books_llama(path: Path, tensors: Tensors) -> Checkpoint:
    """The book's Llama or Qwen3, or ours, with the settings that are beside it."""
    if not (path.parent / folder.CONFIG).is_file():
        raise CheckpointError(
            f"{path} is a state dict of the book's Llama or Qwen3, which does not say how many heads and groups "
            "of them it has, nor how it turns them. Write the dict of settings that it was built with "
            f'(LLAMA32_CONFIG, QWEN3_CONFIG) beside it, as JSON: json.dump(config, open("{folder.CONFIG}", "w")), '
            "without its dtype"
        )
    config = folder.read_config(path.parent)
    if isinstance(config, GPTConfig):
        raise CheckpointError(
            f"{path} has the layers of a Llama, and {folder.CONFIG} beside it the settings of a GPT-2: put the "
            "one that belongs to it there"
        )
    vocabulary = partial(tokenizer_files.read_folder, path.parent)
    return Checkpoint(path, book.LLAMA_DIALECT, config, tensors, vocabulary)


def _nanogpt(path: Path, config: GPTConfig, tensors: Tensors) -> Checkpoint:
    meta = partial(folder.meta_of, path.parent)
    return Checkpoint(
        path, nanogpt.DIALECT, config, tensors, meta, True, nanogpt.doubt(path, config)
    )


def _openais(path: Path) -> Checkpoint:
    index = tensorflow.index_in(path)
    if index is None:
        raise CheckpointError(f"{path} changed while it was being read; try again")
    config = tensorflow.read_config(path)
    tensors = tensorflow.TensorFlowTensors(index)
    return Checkpoint(
        path, tensorflow.DIALECT, config, tensors, lambda: tokenizer_files.read_folder(path)
    )


def _ours(path: Path) -> Checkpoint:
    config = folder.read_config(path)
    dialect = folder.dialect_of(path, config)
    tensors = folder.weights_of(path)
    return Checkpoint(
        path,
        dialect,
        config,
        tensors,
        lambda: folder.vocabulary_of(path) or tokenizer_files.read_folder(path),
    )


def _hugging_face(path: Path, tensors: Tensors | None = None) -> Checkpoint:
    values = read_json(path / folder.CONFIG)
    config = families.config_of(values, path / folder.CONFIG)
    tensors = tensors or hugging_face.weights_of(path)
    dialect = families.dialect_of(config, values)
    if dialect is hugging_face.DIALECT and nanogpt.has_linears(tensors):
        dialect = nanogpt.DIALECT  # its weights, with a config.json of theirs beside them
    return Checkpoint(path, dialect, config, tensors, lambda: tokenizer_files.read_folder(path))
