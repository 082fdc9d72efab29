"""What a file is, by its first bytes, in plain words."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from gptviz.models.checkpoints.errors import CheckpointError
from gptviz.models.checkpoints.kinds import Seen

ZIP = b"PK\x03\x04"
# torch.save before 1.6: a pickle of this number comes first
LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"

CONFIG = "config.json"
STEP = re.compile(r"checkpoint-(\d{1,18})")
LONGEST_COMMIT = 100  # bytes; its name has 40

LONGEST_TEXT = 8 * 2**20  # bytes of a config or an index of shards; theirs are some thousand

KNOWN = {
    ZIP: "a zip archive",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF",
    b"\x80": "a Python pickle that torch.save did not write, or begins like one; nothing of it was run",
}


def is_of_torch(path: Path) -> bool:
    """Whether a file begins as those of torch.save do, since torch 1.6 or before it."""
    first = _first(path)
    return first.startswith(ZIP) or (first.startswith(b"\x80") and LEGACY in first[:32])


def is_of_safetensors(path: Path) -> bool:
    """Whether a file begins as safetensors do: the header's length, then its JSON."""
    first = _first(path)
    return first[8:9] == b"{" and 0 < int.from_bytes(first[:8], "little") <= path.stat().st_size - 8


def look(path: Path) -> str:
    """Describe a file by its first bytes, such as "a PNG picture"."""
    first = _first(path)
    if not first:
        return "an empty file"
    if is_of_safetensors(path):
        return "a safetensors file, whose name must end in .safetensors"
    for start, what in KNOWN.items():
        if first.startswith(start):
            return what
    if len(first) > 4:
        text = first[:-4].decode("utf-8", errors="replace")
    else:
        text = first.decode("latin-1")
    if "\ufffd" not in text and all(c.isprintable() or c in "\r\n\t" for c in text):
        return "a text file"
    return f"of no kind known here: its first bytes are {first[:8].hex(' ')}"


def seen(path: Path) -> Seen:
    """What a file or a folder shows before any of its weights are read. Raises CheckpointError."""
    if path.is_dir():
        inside = frozenset(file.name for file in path.iterdir())
        if (path / CONFIG).is_file():
            config = read_json(path / CONFIG)
        else:
            config = {}
        return Seen(inside=inside, config=config)
    beside = frozenset(file.name for file in path.parent.glob("*.index.json"))
    first = _first(path)
    return Seen(name=path.name, first=first, inside=beside, entries=_entries(path, first))


def _entries(path: Path, first: bytes) -> frozenset[str]:
    if not first.startswith(ZIP):
        return frozenset()
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(archive.namelist())
    # zipfile has a RuntimeError for a version of the format that it does not know; the file's reader says so
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError):
        return frozenset()


def meant(path: Path) -> Path:
    """The folder with the model in it, where `path` is one around it: a Trainer's newest checkpoint, or the
    commit that Hugging Face's cache has of a model. Else `path` itself.
    """
    if not path.is_dir() or (path / CONFIG).is_file():
        return path
    steps = {
        int(match[1]): folder for folder in path.iterdir() if (match := STEP.fullmatch(folder.name))
    }
    if steps:
        return steps[max(steps)]
    commit = path / "refs" / "main"
    if commit.is_file() and commit.stat().st_size <= LONGEST_COMMIT:
        folder = path / "snapshots" / Path(commit.read_text("utf-8", "replace").strip()).name
        if folder.is_dir():
            return folder
        return path
    return path


def bytes_of(path: Path) -> int:
    """The bytes of a file, or of the files of a folder (which an index of shards stands for)."""
    path = meant(path)
    if path.is_dir():
        files = [file for file in path.iterdir() if file.is_file()]
    elif path.suffix == ".json":
        files = [file for file in path.parent.iterdir() if file.is_file()]
    else:
        files = [path]
    return sum(file.stat().st_size for file in files)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a small file. Raises CheckpointError."""
    try:
        if path.stat().st_size > LONGEST_TEXT:
            raise ValueError(
                f"it has {path.stat().st_size:,} bytes; at most {LONGEST_TEXT:,} are read"
            )
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{path.parent} has no {path.name}: it is not a model folder"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a {type(values).__name__}; expected a JSON object")
    return values


def _first(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1024)
