"""The checkpoints that visitors bring: files in a folder of one browser, deleted with it."""

import shutil
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Protocol

from gptviz.digits import gigabytes
from gptviz.models.checkpoints import CheckpointError
from gptviz.models.checkpoints.kinds import ENDINGS as NOT_READ, Seen, refuse
from gptviz.tokenizer.added_files import BESIDE as BESIDE_A_TOKENIZER
from gptviz.tokenizer.files import MERGES_TXT, OTHERS, VOCAB_JSON
from gptviz.ui.models.budget import Budget

WEIGHTS = (".pth", ".pt", ".bin", ".ckpt", ".safetensors", ".data-00000-of-00001")
# configs and tokenizers, and what TensorFlow writes beside its weights
BESIDE = (".json", ".txt", ".pkl", ".tiktoken", ".index", ".meta", ".bpe", ".model", ".jinja")
TOKENIZERS = ("tokenizer.json", "tokenizer.tiktoken", "meta.pkl")
OF_A_FOLDER = (
    VOCAB_JSON,
    MERGES_TXT,
    *OTHERS,
    *BESIDE_A_TOKENIZER,
)  # read together, or refused by their names
ENDINGS = (*WEIGHTS, *BESIDE)
FIRST_BYTES = 1024  # that tell a kind of file
LONGEST_NAME = 200  # bytes of a file's name; most disks take 255


class Sent(Protocol):
    """A file of st.file_uploader: its name, its size, and a stream to read from."""

    name: str
    size: int

    def seek(self, offset: int) -> int: ...
    def read(self, size: int = -1) -> bytes: ...


@dataclass(frozen=True)
class Upload:
    """One checkpoint: `path` is its only file, or `folder`, which holds all that was sent.

    `label` tells it from the browser's others, `nbytes` is its size, `at` when it came (seconds since 1970).
    """

    number: str
    label: str
    path: Path
    folder: Path
    nbytes: int
    at: float

    @property
    def files(self) -> list[str]:
        """The names of its files."""
        return sorted(file.name for file in self.folder.iterdir())

    @property
    def tokenizer(self) -> Path | None:
        """A tokenizer file that was sent with a checkpoint which does not say that it has one."""
        if self.path.is_file() or (self.path / "config.json").is_file():
            return None
        for name in TOKENIZERS:
            if (self.path / name).is_file():
                return self.path / name
        if any((self.path / name).is_file() for name in OF_A_FOLDER):
            return self.path
        return None


class Uploads:
    """A browser's uploads. Their files are deleted when it is cleared, or when this object goes.

    `gone(number)` is then called for each of them. `budget` is that of all browsers.
    """

    def __init__(self, max_bytes: int, gone: Callable[[str], None], budget: Budget | None = None):
        self.max_bytes = max_bytes
        self.budget = budget or Budget(max_bytes, max_bytes)
        self._all: dict[str, Upload] = {}
        self._gone = gone
        weakref.finalize(self, _remove, self._all, gone, self.budget)

    def clear(self) -> None:
        """Remove all of them."""
        _remove(self._all, self._gone, self.budget)

    def __iter__(self) -> Iterator[Upload]:
        return iter(list(self._all.values()))

    def find(self, number: str) -> Upload | None:
        return self._all.get(number)

    def keep(self, files: Sequence[Sent], label: str | None = None) -> Upload:
        """Write the files of one checkpoint down. Raises CheckpointError, and then nothing is kept."""
        names = {file: _plain_name(file.name) for file in files}
        weights = [name for name in names.values() if name.endswith(WEIGHTS)]
        if weights:  # other formats of the same model are left out, as in a folder
            left_out = (*NOT_READ, "checkpoint")  # which TensorFlow writes for its own use
            names = {file: name for file, name in names.items() if not name.endswith(left_out)}
            files = list(names)
        self._check(files, list(names.values()), weights)
        number = uuid.uuid4().hex
        self.budget.take(number, sum(file.size for file in files))
        folder = None
        try:
            folder = self.budget.root.path / number
            folder.mkdir()
            for file, name in names.items():
                file.seek(0)
                with (folder / name).open("wb") as copy:
                    shutil.copyfileobj(file, copy, 2**20)
        except BaseException as problem:
            self.budget.give(number)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(problem, OSError):
                why = f"your files could not be written to the server's disk: {problem.strerror}"
                raise CheckpointError(
                    f"{why}. Try again later, or tell whoever runs the server"
                ) from None
            raise
        if len(files) == 1:
            path = folder / weights[0]
        else:
            path = folder
        label = self._label(label or Path(weights[0]).stem)
        self._all[number] = Upload(number, label, path, folder, _size(folder), time.time())
        return self._all[number]

    def remove(self, number: str) -> None:
        """Remove one, if it is here."""
        upload = self._all.pop(number, None)
        if upload is not None:
            _remove({number: upload}, self._gone, self.budget)

    def _label(self, stem: str) -> str:
        labels = {upload.label for upload in self._all.values()}
        return next(
            label for n in count(1) if (label := stem if n == 1 else f"{stem} {n}") not in labels
        )

    def _check(self, files: Sequence[Sent], names: list[str], weights: list[str]) -> None:
        if not names:
            raise CheckpointError("no file was chosen: click Upload, choose a file, then load it")
        for name in names:
            if len(name.encode()) > LONGEST_NAME or not name.isprintable():
                raise CheckpointError(
                    f"{name[:60]!r} cannot be the name of a file here: it has {len(name.encode()):,} bytes. At "
                    f"most {LONGEST_NAME} are allowed, and no control characters. Rename the file"
                )
            if not weights:
                _refuse(files, names)
            if not name.endswith(ENDINGS):
                raise CheckpointError(
                    f"{name} is not a checkpoint file; those end in {', '.join(ENDINGS)}"
                )
            if names.count(name) > 1:
                raise CheckpointError(
                    f"{name} was uploaded twice; upload the files of one checkpoint at a time"
                )
        if not weights:
            raise CheckpointError(
                f"you uploaded {', '.join(names)} without weights: add the file with the weights, which "
                f"ends in {', '.join(WEIGHTS)}"
            )
        size = sum(file.size for file in files) + sum(
            upload.nbytes for upload in self._all.values()
        )
        if size > self.max_bytes:
            raise CheckpointError(
                f"your files take {gigabytes(size)} together; this server takes at most "
                f"{gigabytes(self.max_bytes)} from one visitor: remove one of them. "
                "Whoever runs the server can raise server.maxUploadSize"
            )


def _refuse(files: Sequence[Sent], names: list[str]) -> None:
    """Raise the CheckpointError of files without weights that are of a known kind."""
    inside = frozenset(names)
    for file, name in zip(files, names, strict=True):
        file.seek(0)
        if not name.endswith(BESIDE):
            refuse(Path(name), Seen(name=name, first=file.read(FIRST_BYTES)))
    refuse(Path(names[0]), Seen(inside=inside))


def _plain_name(name: str) -> str:
    """The last part of a name that a browser sent, which may be a path of any system."""
    plain = PureWindowsPath(PurePosixPath(name).name).name
    return plain.encode("utf-8", "replace").decode()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _remove(uploads: dict[str, Upload], gone: Callable[[str], None], budget: Budget) -> None:
    while uploads:
        _, upload = uploads.popitem()
        gone(upload.number)
        shutil.rmtree(upload.folder, ignore_errors=True)
        budget.give(upload.number)
