"""A model from the hub into Hugging Face's own cache, where every other program finds it, too.

The library's own `hf_hub_download` throws away what arrived when a download is interrupted, does not
compare what arrived with its hash, and only warns of a full disk. `transfer` does better; the server's
protocol, addresses, passwords and the cache's layout remain the library's, and so HF_HOME, HF_ENDPOINT
and HF_HUB_OFFLINE mean what they always mean.
"""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gptviz.digits import gigabytes
from gptviz.files.atomic_file import write_atomically, write_text
from gptviz.models.checkpoints.errors import CheckpointError
from gptviz.models.checkpoints.families import read_config
from gptviz.models.checkpoints.hub import CONFIG, TOKENIZERS, shards_of
from gptviz.models.checkpoints.hugging_face import WEIGHTS
from gptviz.models.checkpoints.kinds import ADAPTER_CONFIG, Seen, refuse
from gptviz.models.checkpoints.looks import read_json
from gptviz.models.checkpoints.transfer import Remote, ask, fetch
from gptviz.tokenizer.added_files import BESIDE
from gptviz.tokenizer.chat import FILE as CHAT_TEMPLATE
from gptviz.tokenizer.files import OTHERS

SPARE_BYTES = 64 * 2**20  # left free on the disk
# of GPT-2's config, tokenizer and index of shards these are a hundred times the size
MOST_OF_CONFIG = 2**20
MOST_OF_TOKENIZER = 2**27
MOST_OF_INDEX = 2**25


@dataclass(frozen=True)
class Progress:
    """How far a download is: bytes of all its files, and since when; `resumed` bytes were there before."""

    file: str
    done: int
    total: int
    resumed: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        if self.seconds > 0:
            return (self.done - self.resumed) / self.seconds
        return 0.0

    @property
    def seconds_left(self) -> float | None:
        """None until a speed is known."""
        if self.bytes_per_second > 0:
            return (self.total - self.done) / self.bytes_per_second
        return None


Report = Callable[[Progress], None]


def download(repository: str, report: Report | None = None, most_bytes: int | None = None) -> Path:
    """The folder in the cache with a repository's config, tokenizer and weights, all of one commit.

    The weights may have `most_bytes`, if that is given. `report` is called as bytes arrive; an exception that
    it raises stops the download, and the next call resumes it. Raises CheckpointError, before anything large
    is fetched if the model is none that can be read, is too large, or does not fit on the disk.
    """
    cache = _Cache(repository)
    config = ask(repository, CONFIG, "main")
    if config is None:
        if ask(repository, ADAPTER_CONFIG, "main") is not None:
            refuse(Path(repository), Seen(inside=frozenset({ADAPTER_CONFIG})))
        raise CheckpointError(f"{repository} has no {CONFIG}: it is not a model that can be read")
    _bounded([config], MOST_OF_CONFIG)
    cache.fetch([config], None)
    refuse(Path(repository), Seen(config=read_json(cache.folder(config) / CONFIG)))
    read_config(cache.folder(config) / CONFIG)
    tokenizer = _tokenizer(repository, config.commit)
    _bounded(tokenizer, MOST_OF_TOKENIZER)
    weights = _weights(cache, repository, config.commit)
    if most_bytes is not None:
        _bounded(weights, most_bytes)
    cache.fetch(tokenizer + weights, report)
    # last: until `main` is this commit, nothing of it passes for a model
    write_text(cache.home / "refs" / "main", config.commit)
    return cache.folder(config)


def _bounded(remotes: list[Remote], most_bytes: int) -> None:
    """Raise CheckpointError, before they are fetched, for files that are larger together than allowed."""
    for remote in remotes:
        if remote.size is None:
            raise CheckpointError(
                f"the hub does not say how large {remote.name} of {remote.repository} is, so it is not "
                "fetched; choose another repository"
            )
    total = sum(remote.size or 0 for remote in remotes)
    if total > most_bytes:
        if len(remotes) == 1:
            names = remotes[0].name
        else:
            names = f"{remotes[0].name} and {len(remotes) - 1} more"
        raise CheckpointError(
            f"{names} of {remotes[0].repository}: {gigabytes(total)}, and at most {gigabytes(most_bytes)} "
            "are downloaded; choose a smaller model"
        )


def _tokenizer(repository: str, commit: str) -> list[Remote]:
    """The tokenizer's files, with those beside it that may change ids.

    If none can be read, whatever files there are of one, so that the folder's reader can name them.
    """
    files = (*BESIDE, CHAT_TEMPLATE)
    beside = [remote for name in files if (remote := ask(repository, name, commit))]
    incomplete: dict[str, Remote] = {}
    for names in TOKENIZERS:
        on_hub = [remote for name in names if (remote := ask(repository, name, commit))]
        if len(on_hub) == len(names):
            return on_hub + beside
        incomplete |= {remote.name: remote for remote in on_hub}
    incomplete |= {name: remote for name in OTHERS if (remote := ask(repository, name, commit))}
    return [*incomplete.values(), *beside]


def _weights(cache: "_Cache", repository: str, commit: str) -> list[Remote]:
    for name in WEIGHTS:
        remote = ask(repository, name, commit)
        if remote is None:
            continue
        if not name.endswith(".json"):
            return [remote]
        _bounded([remote], MOST_OF_INDEX)
        cache.fetch([remote], None)
        shards = {
            name: ask(repository, name, commit) for name in shards_of(cache.folder(remote) / name)
        }
        missing = [shard for shard, file in shards.items() if file is None]
        if missing:
            raise CheckpointError(f"{repository} lacks {missing[0]}, which its {name} names")
        return [file for file in shards.values() if file is not None]
    raise CheckpointError(f"{repository} has no weights: none of {', '.join(WEIGHTS)}")


class _Cache:
    """A repository's part of Hugging Face's cache: blobs by their ETag, and snapshots that link to them."""

    def __init__(self, repository: str):
        from huggingface_hub import constants
        from huggingface_hub.file_download import repo_folder_name

        name = repo_folder_name(repo_id=repository, repo_type="model")
        self.root = Path(constants.HF_HUB_CACHE)
        self.home = self.root / name
        self.locks = self.root / ".locks" / name

    def folder(self, remote: Remote) -> Path:
        return self.home / "snapshots" / remote.commit

    def blob(self, remote: Remote) -> Path:
        return self.home / "blobs" / remote.etag

    def fetch(self, remotes: list[Remote], report: Report | None) -> None:
        """Fetch every file, or raise a CheckpointError."""
        arrived = {remote: self._bytes_here(remote) for remote in remotes}
        total = sum(remote.size or 0 for remote in remotes)
        self._check_space(total - sum(arrived.values()))
        started = time.monotonic()
        resumed = sum(arrived.values())

        def received(remote: Remote, bytes_here: int) -> None:
            arrived[remote] = bytes_here
            if report is not None:
                report(
                    Progress(
                        remote.name,
                        sum(arrived.values()),
                        total,
                        resumed,
                        time.monotonic() - started,
                    )
                )

        for remote in remotes:
            fetch(
                remote,
                self.blob(remote),
                self.locks / f"{remote.etag}.lock",
                partial(received, remote),
            )
            _link(self.blob(remote), self.folder(remote) / remote.name)

    def _bytes_here(self, remote: Remote) -> int:
        blob = self.blob(remote)
        for path in (blob, blob.with_name(blob.name + ".gptviz.incomplete")):
            if path.exists():
                return path.stat().st_size
        return 0

    def _check_space(self, needed: int) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.home).free
        if needed > 0 and needed + SPARE_BYTES > free:
            raise CheckpointError(
                f"{needed / 1e9:.2f} GB are to be downloaded to {self.root}, and {free / 1e9:.2f} GB are "
                "free there: make room, or set HF_HOME to a folder on another disk"
            )


def _link(blob: Path, pointer: Path) -> None:
    """The file's name in the snapshot: a relative link, or a copy where there are no links."""
    if pointer.exists():
        return
    pointer.parent.mkdir(parents=True, exist_ok=True)
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except FileExistsError:  # another session was faster
        return
    except OSError:
        write_atomically(pointer, lambda path: shutil.copyfile(blob, path))
