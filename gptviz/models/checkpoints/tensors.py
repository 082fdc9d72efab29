"""Files of named tensors, read as data and a few tensors at a time.

safetensors files hold nothing but numbers. What `torch.save` writes is a pickle: torch reads it with
`weights_only=True`, which builds tensors, dicts, lists and numbers and refuses everything else. Files
are mapped rather than read, so that a tensor that is not used (an optimizer's, say) costs nothing.
"""

import re
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from gptviz.models.checkpoints.errors import CheckpointError
from gptviz.models.checkpoints.kinds import PICKLED_CODE, refuse, refuse_named, refuse_saved
from gptviz.models.checkpoints.looks import (
    ZIP,
    is_of_safetensors,
    is_of_torch,
    look,
    read_json,
    seen,
)
from gptviz.models.checkpoints.wrappers import bare_names, keys_to_state

# A mapped file's pages count as memory while any tensor of it is alive: the file is opened anew for
# every group of about this many bytes, and so is never in memory as a whole beside the model.
GROUP_BYTES = 32 * 2**20

Shapes = Mapping[str, tuple[int, ...]]  # by name


class Tensors(ABC):
    """The tensors of one file, or of several: shapes at once, contents when asked for.

    `bare` has the name of each without what was put before or around it, see `wrappers`.
    """

    in_memory = False  # a model's own, of which there is no file

    def __init__(self, path: Path, shapes: Shapes):
        self.path = path
        self.shapes = shapes
        self.bare = bare_names(shapes)
        refuse_named(path, {bare: shapes[name] for name, bare in self.bare.items()}, self.in_memory)

    @abstractmethod
    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """The named tensors, in any order. Copy each before the next: it may be a view of the file.

        Raises CheckpointError.
        """

    def release(self, name: str) -> None:  # noqa: B027
        """Free the memory of a tensor that is not needed again, if it has its own."""

    def where(self, name: str) -> Path:
        """The file that holds the tensor."""
        return self.path

    def shares(self, name: str, other: str) -> bool:
        """Whether the two names are one and the same tensor in the file, as tied embeddings are."""
        return False


class SafeTensors(Tensors):
    """A file in the safetensors format: a header in JSON, then nothing but numbers."""

    def __init__(self, path: Path):
        refuse(path, seen(path))
        if path.is_file() and not is_of_safetensors(path):
            raise CheckpointError(f"{path} is not a whole safetensors file: it is {look(path)}")
        try:
            with safe_open(path, "pt") as file:
                names = list(file.keys())
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
        except (SafetensorError, OSError, ValueError, OverflowError) as error:
            again = "copy or download it again"
            raise CheckpointError(
                f"{path} is not a whole safetensors file ({error}); {again}"
            ) from None
        super().__init__(path, shapes)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        for name in names:
            try:
                # the header is small: each tensor is a group
                with safe_open(self.path, "pt") as file:
                    tensor = file.get_tensor(name)
            except (SafetensorError, OSError, RuntimeError, AttributeError) as error:
                raise CheckpointError(f"{self.path}: {name} cannot be read ({error})") from None
            yield name, tensor
            del tensor


class TorchTensors(Tensors):
    """A state dict in a file of `torch.save`: all of what was saved, or in the dicts that hold it."""

    def __init__(self, path: Path, saved: object):
        refuse_saved(path, saved)
        self.keys = keys_to_state(saved)
        # a file of torch before 1.6 cannot be mapped: it is in memory already, and given up bit by bit
        if _is_zip(path):
            self._whole = None
        else:
            self._whole = self._state_of(path, saved)
        state = self._state_of(path, saved)
        super().__init__(path, {name: tuple(tensor.shape) for name, tensor in state.items()})
        self._bytes = {name: tensor.nbytes for name, tensor in state.items()}
        self._start = {name: _start(tensor) for name, tensor in state.items()}

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        for group in self._groups(names):
            if self._whole is not None:
                state = self._whole
            else:
                state = self._open_again()
            for name in group:
                yield name, state[name]
            del state

    def release(self, name: str) -> None:
        if self._whole is not None:
            self._whole.pop(name, None)

    def shares(self, name: str, other: str) -> bool:
        starts = (self._start.get(name), self._start.get(other))
        return (
            None not in starts
            and starts[0] == starts[1]
            and self.shapes[name] == self.shapes[other]
        )

    def _open_again(self) -> dict[str, torch.Tensor]:
        state = self._state_of(self.path, read_pickle(self.path))
        if {name: tuple(tensor.shape) for name, tensor in state.items()} != self.shapes:
            raise CheckpointError(f"{self.path} changed while it was being read; try again")
        return state

    def _state_of(self, path: Path, saved: Any) -> dict[str, torch.Tensor]:
        state = saved
        what = "the file"
        for key in self.keys:
            if isinstance(state, dict):
                state = state.get(key)
            else:
                state = None
            what = f'"{key}"'
        if not isinstance(state, dict) or not state:
            raise CheckpointError(f"{path}: {what} holds {type(state).__name__}, not a state dict")
        # some of it is no tensor
        refuse_named(path, {name: () for name in state if isinstance(name, str)})
        for name, tensor in state.items():
            if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
                holds = f"{name!r} holds {type(tensor).__name__}, not a tensor"
                raise CheckpointError(f"{path}: {what} is no state dict: {holds}")
            if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
                raise CheckpointError(
                    f"{path}: {name} is a {tensor.layout} tensor of {tensor.dtype} on {tensor.device}; "
                    "expected plain numbers, saved from a usual tensor"
                )
        return dict(state)

    def _groups(self, names: Iterable[str]) -> Iterator[list[str]]:
        group: list[str] = []
        for name in names:
            if (
                group
                and sum(self._bytes[member] for member in group) + self._bytes[name] > GROUP_BYTES
            ):
                yield group
                group = []
            group.append(name)
        if group:
            yield group


class ShardedTensors(Tensors):
    """Several files, and an index in JSON that says which tensor is in which."""

    def __init__(self, index: Path):
        homes = weight_map(index)
        self._shards = {
            file: open_tensors(index.parent / file) for file in sorted(set(homes.values()))
        }
        self._homes = homes
        file_of = {name: file for file, shard in self._shards.items() for name in shard.shapes}
        for name, file in homes.items():
            if name not in self._shards[file].shapes:
                raise CheckpointError(
                    f"{index.parent / file} lacks {name}, which {index.name} says is in it"
                )
        surplus = sorted(file_of.keys() - homes.keys())
        if surplus:
            raise CheckpointError(
                f"{index.parent / file_of[surplus[0]]} has {surplus[0]}, which {index.name} does not list"
            )
        super().__init__(
            index, {name: self._shards[file].shapes[name] for name, file in homes.items()}
        )

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        wanted = list(names)
        for file, shard in self._shards.items():
            yield from shard.read(name for name in wanted if self._homes[name] == file)

    def release(self, name: str) -> None:
        self._shards[self._homes[name]].release(name)

    def where(self, name: str) -> Path:
        return self._shards[self._homes[name]].path


def open_tensors(path: Path) -> Tensors:
    """The tensors of a safetensors file, a state dict saved by torch, or an index of such files."""
    if not path.is_file():
        raise CheckpointError(f"{path} is not there")
    if path.suffix == ".json":
        return ShardedTensors(path)
    if path.suffix == ".safetensors":
        return SafeTensors(path)
    return TorchTensors(path, read_pickle(path))


def read_pickle(path: Path) -> Any:
    """Read what `torch.save` wrote, as data.

    Raises CheckpointError for damage, and for code in the file.
    """
    refuse(path, seen(path))
    if not is_of_torch(path):
        raise CheckpointError(
            f"{path} is no checkpoint: it is {look(path)}. A checkpoint is what "
            "torch.save(model.state_dict(), ...) writes, or a file of safetensors"
        )
    try:
        if mapped := _is_zip(path):
            _check_unpacked(path)
        return _load(path, mapped)
    except CheckpointError:
        raise
    except (
        Exception
    ) as error:  # a damaged pickle may raise nearly anything, from KeyError to TypeError
        name = _refused_name(error)
        if name is not None:
            raise PICKLED_CODE.error(path, f" ({name})") from None
        first = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0][:200]
        raise CheckpointError(
            f"{path} is not a whole file of torch.save ({first}); save it again"
        ) from None


class Record:
    """A stand-in for an object beside the weights, such as build-nanogpt's GPTConfig.

    Its class is never looked up, and nothing of it runs: its fields are kept as data.
    """

    def __init__(self, *given: object):
        self.fields: dict[Any, Any] = {}

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.fields = state
        else:
            self.fields = {}


# names in a pickle that a Record stands in for: settings, and how a path or a number of NumPy is written
SETTINGS = re.compile(
    r"(\w+\.)*(\w*Config|\w*Args|\w*Arguments|CfgNode|Namespace|SimpleNamespace|AttributeDict|\w+Path)"
    r"|numpy\.(_?core\.multiarray\.scalar|dtype)|numpy\.dtypes\.\w+"
)
MOST_RECORDS = 20  # kinds of them in a file


def _load(path: Path, mapped: bool) -> Any:
    """What `torch.load` reads as data, with Records for what else it names, if that is in SETTINGS."""
    stand_ins: list[Any] = []
    while True:
        try:
            with warnings.catch_warnings(), torch.serialization.safe_globals(stand_ins):
                # torch's remarks on old pickles are not for the screen
                warnings.simplefilter("ignore")
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:
            name = _refused_name(error)
            if name is None or not SETTINGS.fullmatch(name) or len(stand_ins) == MOST_RECORDS:
                raise
            # torch fills nothing but its own dicts: Lightning's is one with another name
            kind = OrderedDict if name.endswith(".AttributeDict") else Record
            stand_ins.append((kind, name))


def _refused_name(error: Exception) -> str | None:
    """The name of a class or function that torch would have had to look up, if that is what it refused."""
    match = re.search(r"GLOBAL `?([\w.]+)`? (was not an allowed global|whose module)", str(error))
    if match is None:
        return None
    return match[1]


def _is_zip(path: Path) -> bool:
    """torch writes zip files since version 1.6; these can be mapped."""
    with path.open("rb") as file:
        return file.read(4) == ZIP


def _check_unpacked(path: Path) -> None:
    """torch never packs its archives: one that is larger inside than outside was made to fill a memory."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    size = path.stat().st_size
    inside = sum(entry.file_size for entry in entries)
    if inside > size or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise CheckpointError(
            f"{path} is a packed zip archive ({inside:,} bytes in {size:,}); torch.save packs nothing: "
            "save the weights again with it"
        )


def _start(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]] | None:
    if tensor.numel():
        return (tensor.data_ptr(), tensor.stride())
    return None


def weight_map(index: Path) -> dict[str, str]:
    """The file of each tensor, as an index of shards says it. Raises CheckpointError."""
    homes = read_json(index).get("weight_map")
    if not isinstance(homes, dict) or not homes:
        raise CheckpointError(f'{index}: "weight_map" must name a file for every tensor')
    for name, file in homes.items():
        # a plain name: an index must not lead out of its folder, nor to another index
        if (
            not isinstance(file, str)
            or Path(file).name != file
            or file.endswith(".json")
            or "\\" in file
        ):
            raise CheckpointError(
                f"{index}: {name} is to be in {file!r}; expected a file beside the index"
            )
    return homes
