"""The folders that a killed server leaves: ours go, and nothing else that lies beside them is touched."""

import os
import threading

import pytest

from gptviz.files import owned_folder as root
from gptviz.files.owned_folder import LOCK, UPLOADS, OwnedFolder, sweep


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def left(folder):
    folder.mkdir()
    (folder / LOCK).touch()
    return folder


def swept(seconds=20):
    """Sweep, as a server does before it answers anybody; whether it came to an end."""
    sweeping = threading.Thread(target=sweep, args=(UPLOADS,), daemon=True)
    sweeping.start()
    sweeping.join(seconds)
    return not sweeping.is_alive()


def test_what_a_killed_server_left_goes_and_what_one_holds_stays(temporary):
    gone = left(temporary / f"{UPLOADS}gone")
    holds = OwnedFolder(UPLOADS)
    held = holds.path
    without_a_lock = temporary / f"{UPLOADS}new"
    without_a_lock.mkdir()
    assert swept() and not gone.exists()
    assert held.exists() and without_a_lock.exists()
    holds.clear()


def lock_is_a_fifo(folder):
    folder.mkdir()
    os.mkfifo(folder / LOCK)


def folder_is_a_fifo(folder):
    os.mkfifo(folder)


def folder_is_a_file(folder):
    folder.write_bytes(b"")


def folder_is_a_link(folder):
    folder.symlink_to(left(folder.parent / "elsewhere"))


def lock_is_a_link(folder):
    folder.mkdir()
    (folder.parent / "other").touch()
    (folder / LOCK).symlink_to(folder.parent / "other")


def lock_is_a_link_to_a_fifo(folder):
    folder.mkdir()
    os.mkfifo(folder.parent / "fifo")
    (folder / LOCK).symlink_to(folder.parent / "fifo")


def lock_is_a_folder(folder):
    (folder / LOCK).mkdir(parents=True)


@pytest.mark.parametrize(
    "made",
    [
        lock_is_a_fifo,
        folder_is_a_fifo,
        folder_is_a_file,
        folder_is_a_link,
        lock_is_a_link,
        lock_is_a_link_to_a_fifo,
        lock_is_a_folder,
    ],
)
def test_nothing_is_waited_for_followed_or_removed(temporary, made):
    made(temporary / f"{UPLOADS}strange")
    before = sorted(temporary.rglob("*"))
    locked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root.fcntl, "flock", lambda *args: locked.append(args))
        assert swept()
    assert sorted(temporary.rglob("*")) == before and not locked


def test_a_folder_of_another_user_is_left_alone_and_its_lock_never_opened(temporary, monkeypatch):
    theirs = left(temporary / f"{UPLOADS}theirs")
    opened = []
    real = os.open
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(theirs).st_uid + 1)
    monkeypatch.setattr(
        os, "open", lambda path, *args, **at: (opened.append(path), real(path, *args, **at))[1]
    )
    assert swept() and theirs.exists()
    assert opened == [theirs]
