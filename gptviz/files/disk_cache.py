"""What is worked out once for a model and kept on disk: small JSON files in the user's folder for caches.

A file is named after what it is of (`fingerprint`: the weights' hash, and all else that its numbers depend
on), is written whole or not at all, and holds the hash of its content: what was cut short, or changed,
counts as not there. All of them together are bounded; the least recently used go first.

What was measured of a bundled model ships with it, under the same names, in its folder's `SHIPPED`: since a
name has the weights' hash, no other model gets it.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gptviz.files.atomic_file import write_text

SETTING = "GPTVIZ_CACHE_DIR"
ASSETS = Path(__file__).parents[1] / "assets"
# in a bundled model's folder, by `python -m gptviz.training heads`
SHIPPED = "heads.json"
MOST_BYTES = 64 * 2**20


def folder() -> Path:
    """GPTVIZ_CACHE_DIR, or `gptviz` in the folder that the user's system has for caches."""
    named = os.environ.get(SETTING)
    if named:
        return Path(named).expanduser()  # it may be set without a shell, which would expand ~
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gptviz"


def weights_hash(model: nn.Module) -> str:
    """A hash of every weight, by name, type, shape and bytes: one changed number gives another one."""
    digest = hashlib.blake2b(digest_size=20)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(
            memoryview(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        )
    return digest.hexdigest()


def fingerprint(parts: Iterable[object]) -> str:
    """A file's name for what depends on all of these: anything whose `repr` tells it apart."""
    return hashlib.blake2b("\n".join(map(repr, parts)).encode(), digest_size=20).hexdigest()


def read(name: str) -> Any | None:
    """The value that ships under this name, or that `write` put there; None if there is none, or damaged."""
    if name in shipped():
        return shipped()[name]
    path = folder() / f"{name}.json"
    try:
        digest, _, content = path.read_text(encoding="utf-8").partition("\n")
        if digest != _digest(content):
            return None
        os.utime(path)  # asked for just now
        return json.loads(content)
    except (
        OSError,
        ValueError,
    ):  # not there, not ours to read, or not text: it is worked out again
        return None


@cache
def shipped() -> dict[str, Any]:
    """The measurements of the bundled models, by their names."""
    measured: dict[str, Any] = {}
    for path in ASSETS.glob(f"*/{SHIPPED}"):
        measured |= json.loads(path.read_text(encoding="utf-8"))
    return measured


def write(name: str, value: Any) -> bool:
    """Keep a value that JSON can hold. Returns False if the folder cannot be written."""
    content = json.dumps(value)
    text = f"{_digest(content)}\n{content}"
    path = folder() / f"{name}.json"
    try:
        write_text(path, text)
        _make_room(path.parent)
    except OSError:  # a full disk, a folder that is not ours
        return False
    return True


def _digest(content: str) -> str:
    return hashlib.blake2b(content.encode(), digest_size=20).hexdigest()


def _make_room(place: Path) -> None:
    """Remove the least recently used files until the others fit into MOST_BYTES."""
    files = []
    for path in place.glob("*.json"):
        try:
            info = path.stat()
        except FileNotFoundError:  # another process made room, too
            continue
        files.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size
