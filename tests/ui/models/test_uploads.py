"""Uploads: written where only their browser finds them, bounded, and gone with it."""

import gc
import io
import tempfile
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.uploaded_file_manager import DeletedFile

from gptviz.models.checkpoints import CheckpointError
from gptviz.ui.models.budget import Budget, still_here
from gptviz.ui.models.uploads import Uploads


def sent(name, content=b"1234"):
    file = io.BytesIO(content)
    file.name = name
    file.size = len(content)
    return file


def test_a_file_that_is_no_longer_here_is_none(monkeypatch):
    """A browser may name it still: it let go of it late, or another server had it."""
    here = sent("mine.pth")
    gone = DeletedFile("1")
    held = {"several": [gone, here], "one": here, "gone": gone, "none": None, "empty": []}
    monkeypatch.setattr(st, "session_state", held)
    assert [still_here(key) for key in (*held, "never")] == [[here], [here], [], [], [], []]


@pytest.fixture
def gone():
    return []


@pytest.fixture
def uploads(gone):
    return Uploads(10_000_000, gone.append)


@pytest.mark.parametrize(
    ("names", "tokenizer"),
    [
        (["my model.pth"], None),
        (["my model.pth", "tokenizer.json"], "tokenizer.json"),
        # config.json says what it is
        (["config.json", "my model.safetensors", "tokenizer.json"], None),
        (["merges.txt", "my model.pth", "vocab.json"], "its folder"),
        (["my model.pth", "vocab.json"], "its folder"),  # which is refused, and not passed over
        (["my model.pth", "vocab.txt"], "its folder"),
    ],
)
def test_what_was_sent_lies_together(uploads, names, tokenizer):
    upload = uploads.keep([sent(name, name.encode()) for name in names])
    assert {name: (upload.folder / name).read_text() for name in upload.files} == {
        one: one for one in names
    }
    assert upload.path == (upload.folder if len(names) > 1 else upload.folder / names[0])
    found = (
        "its folder"
        if upload.tokenizer == upload.folder
        else upload.tokenizer and upload.tokenizer.name
    )
    assert found == tokenizer and upload.label == "my model"
    assert list(uploads) == [uploads.find(upload.number)] == [upload] and uploads.find("0") is None


@pytest.mark.parametrize("name", ["../../x.pth", "/etc/x.pth", "C:\\windows\\x.pth", "a/../x.pth"])
def test_a_name_is_never_a_path(uploads, name):
    upload = uploads.keep([sent(name)])
    assert (
        upload.path == upload.folder / "x.pth" and upload.folder.parent == uploads.budget.root.path
    )
    assert upload.folder.parent.parent == Path(tempfile.gettempdir())


@pytest.mark.parametrize(
    "names, says",
    [
        (["virus.exe", "model.pth"], "virus.exe is not a checkpoint file"),
        (["config.json"], "you uploaded config.json without weights"),
        ([], "no file was chosen"),
        (["a/model.pth", "b/model.pth"], "model.pth was uploaded twice"),
        (["x" * 296 + ".pth"], "has 300 bytes. At most 200 are allowed"),
        (["漢" * 90 + ".pth"], "has 274 bytes"),
        (["a\0b.pth"], r"'a\\x00b.pth' cannot be the name of a file here"),
        (["model.pth", "a\nb.json"], "cannot be the name of a file here"),
    ],
)
def test_what_is_no_checkpoint_is_refused_and_not_kept(uploads, names, says, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CheckpointError, match=says):
        uploads.keep([sent(name) for name in names])
    assert not list(uploads) and not list(tmp_path.iterdir())


def test_a_full_disk_is_a_sentence_and_leaves_nothing(uploads, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(
        CheckpointError, match="written to the server's disk: No space left on device"
    ):
        uploads.keep([sent("a.pth")])
    monkeypatch.undo()
    assert [path.name for path in uploads.budget.root.path.iterdir()] == [
        "server.lock"
    ] and not list(uploads)
    assert uploads.keep([sent("a.pth", b"1" * 10_000_000)])  # all of the room is there again


def test_all_browsers_together_are_limited_on_the_disk_and_in_memory(gone):
    waits = {}
    room = Budget(10, 8, lambda: waits)
    first, second = (Uploads(10, gone.append, room) for _ in range(2))
    kept = first.keep([sent("a.pth", b"123456")])
    with pytest.raises(CheckpointError, match=r"from all visitors together.* GPTVIZ_UPLOADS_MB"):
        second.keep([sent("b.pth", b"12345")])
    assert room.receive("session", "file", 4) is None
    assert "from all visitors" in room.receive("other", "file 2", 1) == room.refused("other")
    room.give("file")
    waits["session"] = 4  # now Streamlit has it
    with pytest.raises(CheckpointError):
        second.keep([sent("b.pth", b"1")])
    first.remove(kept.number)
    assert room.receive("other", "file 2", 6) is None and room.refused("other") is None
    room.give("file 2")
    assert "from one visitor" in room.receive("session", "file 3", 5)
    assert "from one visitor" in room.refused("session")


@pytest.mark.parametrize("cleared", [False, True])
def test_all_of_a_browser_together_are_limited_and_when_it_is_over_nothing_is_left(gone, cleared):
    uploads = Uploads(10, gone.append)
    first = uploads.keep([sent("a.pth", b"123456")])
    with pytest.raises(CheckpointError, match=r"at most .* server\.maxUploadSize"):
        uploads.keep([sent("b.pth", b"12345")])
    second = uploads.keep([sent("b.pth", b"1234")])
    assert first.folder.is_dir() and first.folder != second.folder
    for _ in range(2 * cleared):
        uploads.clear()
        assert not list(uploads)
    del uploads
    gc.collect()
    assert not first.folder.exists() and not second.folder.exists()
    assert sorted(gone) == sorted([first.number, second.number])


def test_two_of_the_same_name_are_told_apart_and_each_can_be_removed(uploads, gone):
    first, second, third = (uploads.keep([sent("ckpt.pt")]) for _ in range(3))
    assert len({upload.label for upload in uploads}) == 3 and first.label == "ckpt"
    assert second.files == ["ckpt.pt"] and second.nbytes == 4
    uploads.remove(second.number)
    uploads.remove(second.number)
    assert gone == [second.number] and not second.folder.exists() and first.folder.exists()
    assert list(uploads) == [first, third]
    assert uploads.keep([sent("ckpt.pt")]).label == second.label  # the name is free again
