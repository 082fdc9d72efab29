"""OpenAI's own files of GPT-2, which chapter 5 of the book downloads: read without TensorFlow, as data.

A folder has hparams.json, `model.ckpt.data-00000-of-00001`, which is nothing but numbers, and
`model.ckpt.index`, a small table of names, shapes and places in it. The table has LevelDB's format: blocks of
entries whose keys leave out what they share with the key before, an index of blocks, and a footer. An entry
is a few fields of a protocol buffer. The names are GPT-2's with slashes, and become Hugging Face's here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from gptviz.engine.config import GPTConfig
from gptviz.models.checkpoints import hugging_face
from gptviz.models.checkpoints.errors import CheckpointError, errors_of
from gptviz.models.checkpoints.looks import LONGEST_TEXT, read_json
from gptviz.models.checkpoints.tensors import Tensors

HPARAMS = "hparams.json"
# of each key of ours, theirs
SIZES = {"vocab_size": "n_vocab", "context_length": "n_ctx", "emb_dim": "n_embd"}
SIZES |= {"n_heads": "n_head", "n_layers": "n_layer"}

DATA = ".data-00000-of-00001"
# how the names of a checkpoint's files end
FILES = (".index", ".meta", DATA, "checkpoint", HPARAMS)
FOOTER = 48
MAGIC = bytes.fromhex("57fb808b247547db")
MOST_ENTRIES = 100_000  # GPT-2 XL has 580
FLOAT32 = 1  # TensorFlow's number for the type

NAME = re.compile(r"model/(?:h(\d+)/)?(?:(wte|wpe)|((?:attn/|mlp/)?\w+)/([wgb]))")
KINDS = {"w": "weight", "g": "weight", "b": "bias"}


DIALECT = replace(hugging_face.DIALECT, name="OpenAI's GPT-2 as TensorFlow keeps it")


@dataclass(frozen=True)
class Entry:
    """Where a tensor is in the file of numbers, and what it is."""

    type: int
    shape: tuple[int, ...]
    offset: int
    size: int


def index_in(folder: Path) -> Path | None:
    """The index of the folder's checkpoint, of several the one that its file `checkpoint` names, or None."""
    paths = sorted(path for path in folder.glob("*.index") if path.with_suffix(DATA).is_file())
    last = folder / "checkpoint"
    if last.is_file() and last.stat().st_size <= LONGEST_TEXT:
        match = re.search(r'^model_checkpoint_path: "([^"]*)"', last.read_text("utf-8", "replace"))
        for path in paths:
            if match is not None and path.name == f"{Path(match[1]).name}.index":
                return path
    if paths:
        return paths[-1]
    return None


def is_openais(folder: Path) -> bool:
    """Whether the folder has a checkpoint of TensorFlow and OpenAI's hparams.json."""
    return (folder / HPARAMS).is_file() and index_in(folder) is not None


def read_config(folder: Path) -> GPTConfig:
    """Our config from hparams.json. Raises CheckpointError."""
    values = read_json(folder / HPARAMS)
    missing = [name for name in SIZES.values() if name not in values]
    if missing:
        raise CheckpointError(
            f"{folder / HPARAMS} lacks {missing[0]}: it is not OpenAI's of a GPT-2"
        )
    with errors_of(folder / HPARAMS):
        sizes = {ours: values[theirs] for ours, theirs in SIZES.items()}
        return GPTConfig(**sizes, qkv_bias=True, tie_embeddings=True)


class TensorFlowTensors(Tensors):
    """The tensors of a checkpoint of TensorFlow that are a GPT-2's, under Hugging Face's names."""

    def __init__(self, index: Path):
        self._data = index.with_suffix(DATA)
        self._entries: dict[str, Entry] = {}
        for theirs, entry in _entries_of(index).items():
            name = plain_name(theirs)
            if name is not None:  # others are an optimizer's
                self._entries[name] = entry
        size = self._data.stat().st_size
        for name, entry in self._entries.items():
            _check(self._data, name, entry, size)
        # their weights have a first dimension of 1, for a convolution as wide as one token
        super().__init__(
            index, {name: _without_ones(entry.shape) for name, entry in self._entries.items()}
        )

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        with self._data.open("rb") as file:
            for name in names:
                entry = self._entries[name]
                file.seek(entry.offset)
                content = bytearray(file.read(entry.size))
                if len(content) != entry.size:
                    raise CheckpointError(
                        f"{self._data} changed while it was being read; try again"
                    )
                # (n,) -> the tensor's own shape
                yield (
                    name,
                    torch.frombuffer(content, dtype=torch.float32).reshape(self.shapes[name]),
                )
                del content


def plain_name(theirs: str) -> str | None:
    """Hugging Face's name for one of OpenAI's, such as "model/h0/attn/c_attn/w"; None if it is none."""
    match = NAME.fullmatch(theirs)
    if match is None:
        return None
    block, embedding, part, kind = match.groups()
    start = "" if block is None else f"h.{block}."
    if embedding is not None:
        return f"{start}{embedding}.weight"
    return f"{start}{part.replace('/', '.')}.{KINDS[kind]}"


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 3 and shape[0] == 1:
        return shape[1:]
    return shape


def _check(data: Path, name: str, entry: Entry, size: int) -> None:
    """Raise CheckpointError unless the numbers are float32, as many as the shape says, and in the file."""
    if entry.type != FLOAT32:
        raise CheckpointError(
            f"{data}: {name} has TensorFlow's type {entry.type}; expected float32, which is 1"
        )
    count = 1
    for length in entry.shape:
        count *= length
    if entry.size == 0 or 4 * count != entry.size or entry.offset + entry.size > size:
        raise CheckpointError(
            f"{data} has {size:,} bytes; {name} of the shape {entry.shape} should be {entry.size:,} of them "
            f"from byte {entry.offset:,} on: copy or download both files again"
        )


# ---- the index ----


def _entries_of(index: Path) -> dict[str, Entry]:
    """Every tensor that an index names. Raises CheckpointError for what is no whole index."""
    try:
        if index.stat().st_size > LONGEST_TEXT:
            raise ValueError(
                f"it has {index.stat().st_size:,} bytes; at most {LONGEST_TEXT:,} are read"
            )
        table = index.read_bytes()
        footer = table[-FOOTER:]
        if len(footer) < FOOTER or not footer.endswith(MAGIC):
            raise ValueError("its last bytes are not those of an index")
        _, end = _handle(footer, 0)
        blocks, _ = _handle(footer, end)
        entries: dict[str, Entry] = {}
        read = 0
        for _, handle in _block(table, *blocks):
            for key, value in _block(table, *_handle(handle, 0)[0]):
                read += 1
                # its blocks can be made to be the same ones again and again
                if read > MOST_ENTRIES:
                    raise ValueError(f"it has more than {MOST_ENTRIES:,} entries")
                if key:  # the first entry is about the whole checkpoint
                    entries[key.decode("utf-8")] = _entry(value)
                elif _fields(value).get(1, 1) != 1:
                    raise ValueError("its numbers are in several files; only one can be read")
        return entries
    except (ValueError, IndexError, OSError) as error:
        raise CheckpointError(f"{index} is not a whole index of TensorFlow's: {error}") from None


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number in it has no end")


def _handle(content: bytes, position: int) -> tuple[tuple[int, int], int]:
    """A block's place and size, and where that ends."""
    offset, position = _varint(content, position)
    size, position = _varint(content, position)
    return (offset, size), position


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    block = table[offset : offset + size]
    if len(block) < size or size < 4 or table[offset + size] != 0:
        raise ValueError("a block of it is cut off, or packed")
    restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 - 4 * restarts
    key = b""
    position = 0
    while position < end:
        shared, position = _varint(block, position)
        own_length, position = _varint(block, position)
        length, position = _varint(block, position)
        if shared > len(key) or position + own_length + length > end:
            raise ValueError("an entry of it is longer than its block")
        key = key[:shared] + block[position : position + own_length]
        position += own_length
        yield key, block[position : position + length]
        position += length


def _entry(value: bytes) -> Entry:
    fields = _fields(value)
    shape = []
    for number, part in _all_fields(_bytes(fields.get(2, b""))):
        if number == 2:
            shape.append(_number(_fields(_bytes(part)).get(1, 0)))
    if _number(fields.get(3, 0)) != 0 or 7 in fields:
        raise ValueError("a tensor is in another file, or in slices")
    type, offset, size = (_number(fields.get(number, 0)) for number in (1, 4, 5))
    return Entry(type=type, shape=tuple(shape), offset=offset, size=size)


def _fields(message: bytes) -> dict[int, int | bytes]:
    return dict(_all_fields(message))


def _all_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer, by their numbers: whole numbers, and bytes for all else."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number = tag >> 3
        wire = tag & 7
        if wire == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(message, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field in it is of the unknown kind {wire}")
        if position + length > len(message):
            raise ValueError("a field of it is cut off")
        yield number, message[position : position + length]
        position += length


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("a field of it is no number")
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field of it is a number")
    return value
