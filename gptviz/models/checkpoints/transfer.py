"""One file from the hub: asked for, received, resumed, checked, and only then given its name."""

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gptviz.models.checkpoints.errors import CheckpointError

WAIT_SECONDS = 5.0  # for a connection, and for the next bytes
RETRY_SECONDS = 1.0
RETRIES = 3  # in a row, without a single new byte
CHUNK = 2**20

Received = Callable[[int], None]  # called with the number of bytes of the file that are there


@dataclass(frozen=True)
class Remote:
    """A file on the hub as its server describes it; `etag` is its SHA-256, or git's SHA-1 of a small one."""

    repository: str
    name: str
    url: str
    commit: str
    etag: str
    size: int | None


def ask(repository: str, name: str, revision: str) -> Remote | None:
    """Ask the server about a file; None if the repository has no such file.

    Raises CheckpointError.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    url = hf_hub_url(repository, name, revision=revision)
    try:
        found = get_hf_file_metadata(url, timeout=WAIT_SECONDS)
    except EntryNotFoundError:
        return None
    except Exception as error:
        raise _in_words(error, repository) from error
    # both become parts of paths in the cache
    commit = found.commit_hash or ""
    etag = found.etag or ""
    if not re.fullmatch(r"[0-9a-f]{40}", commit) or not re.fullmatch(r"[\w-][\w.-]*", etag):
        raise CheckpointError(f"{url} is not served by a hub: it came without a commit and an ETag")
    return Remote(repository, name, url, commit, etag, found.size)


def fetch(remote: Remote, blob: Path, lock_path: Path, received: Received) -> None:
    """The file at `blob`, whole and checked. What arrived before an interruption is not asked for again.

    An exception that `received` raises stops the download, which can be resumed. When another session
    downloads the same file, this waits for it. Raises CheckpointError.
    """
    import filelock

    blob.parent.mkdir(parents=True, exist_ok=True)
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    partial = blob.with_name(blob.name + ".gptviz.incomplete")
    lock = filelock.FileLock(lock_path)
    while True:
        try:
            lock.acquire(timeout=0.2)
            break
        except filelock.Timeout:
            received(_size(partial))
    try:
        if not blob.exists():
            _receive_all(remote, partial, received)
            _check(remote, partial)
            os.replace(partial, blob)
        received(_size(blob))
    except OSError as error:
        full = f"the disk is full: {remote.name} does not fit into {blob.parent}"
        other = f"{remote.name} cannot be written: {error}"
        raise CheckpointError(full if error.errno == errno.ENOSPC else other) from error
    finally:
        lock.release()


def _receive_all(remote: Remote, partial: Path, received: Received) -> None:
    from httpx2 import TransportError

    if remote.size is not None and _size(partial) > remote.size:
        partial.unlink()
    failures = 0
    while remote.size is None or _size(partial) < remote.size:
        before = _size(partial)
        try:
            _receive(remote, partial, before, received)
            if remote.size is None:
                return
            cause: Exception | None = None
        except TransportError as error:
            cause = error
        if _size(partial) > before:
            failures = 0
        else:
            failures = failures + 1
        if failures > RETRIES:
            raise _in_words(cause or ConnectionError("no bytes came"), remote.repository) from cause
        if cause is not None or failures:
            time.sleep(RETRY_SECONDS)


def _receive(remote: Remote, partial: Path, have: int, received: Received) -> None:
    """One request, from byte `have` on, until the server has no more or the connection breaks."""
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    # the hub's own address every time: those that it redirects to expire, and get no password of ours
    request = get_session().stream(
        "GET", remote.url, headers=headers, timeout=WAIT_SECONDS, follow_redirects=True
    )
    with request as response:
        if response.is_error:
            response.read()
            if have and response.status_code == 416:  # there is nothing from there on
                if response.headers.get("Content-Range") != f"bytes */{have}":
                    partial.unlink()
                    _receive(remote, partial, 0, received)
                return
            try:
                hf_raise_for_status(response)
            except Exception as error:
                raise _in_words(error, remote.repository) from error
        continued = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        resumes = response.status_code == 206 and continued
        done = have if resumes else 0
        with partial.open("ab" if resumes else "wb") as file:
            for chunk in response.iter_bytes(CHUNK):
                file.write(chunk)
                done += len(chunk)
                if remote.size is not None and done > remote.size:
                    return  # more than was said: the check says so
                received(done)


def _check(remote: Remote, partial: Path) -> None:
    """The size and the hash that the server named. Wrong bytes are thrown away, so that none stay."""
    found = _hash(partial, remote.etag)
    expected = remote.etag
    if remote.size not in (None, _size(partial)):
        found = f"{_size(partial):,} bytes"
        expected = f"{remote.size:,}"
    if found not in (None, expected):
        partial.unlink()
        raise CheckpointError(
            f"{remote.name} of {remote.repository} arrived damaged and was thrown away: "
            f"found {found}, expected {expected}; download it again"
        )


def _hash(path: Path, etag: str) -> str | None:
    """The file's hash of the kind that the ETag is; None for an ETag that is no hash."""
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", etag):
        return None
    digest: Any = hashlib.sha256()
    if len(etag) == 40:  # git's name for a file
        digest = hashlib.sha1(f"blob {_size(path)}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def _size(path: Path) -> int:
    if path.exists():
        return path.stat().st_size
    return 0


def _in_words(error: Exception, repository: str) -> CheckpointError:
    """Turn a download's error into a sentence, with what to do about it."""
    from httpx2 import TransportError
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

    if isinstance(error, CheckpointError):
        return error
    absent = f"{repository} is not on this machine"
    prepare = f"With a network, this prepares the machine: python -m gptviz download {repository}"
    if isinstance(error, OfflineModeIsEnabled):
        return CheckpointError(f"{absent}, and HF_HUB_OFFLINE forbids a download. {prepare}")
    hub = constants.ENDPOINT
    kind = type(error).__name__
    status = None
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
    if isinstance(error, RepositoryNotFoundError) or status in (401, 403):
        return CheckpointError(
            f"{hub} has no repository {repository}, or not for everybody (HTTP {status}); "
            "check its spelling, or sign in with: hf auth login"
        )
    if status is not None:
        return CheckpointError(f"{hub} answered HTTP {status} for {repository}; try again later")
    if isinstance(error, TransportError | OSError):
        return CheckpointError(f"{absent}, and {hub} cannot be reached ({kind}). {prepare}")
    return CheckpointError(f"{repository} cannot be downloaded: {kind} {error}")
