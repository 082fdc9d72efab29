"""What a session may see of the models, apart from what AppTest and the browser try."""

import io
import time

import pytest

from gptviz.loading import HUB_MODELS
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.uploads import Uploads


@pytest.fixture
def kept():
    uploads = Uploads(1000, lambda number: None)
    file = io.BytesIO(b"weights")
    file.name, file.size = "model.pth", 7
    return uploads, uploads.keep([file])


def test_when_a_visitor_has_gone_for_good_the_files_go(kept, monkeypatch):
    uploads, upload = kept
    monkeypatch.setattr(models, "LEFT_SECONDS", 0.05)
    models._left(("a session that is over", uploads))
    deadline = time.monotonic() + 10
    while upload.folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not upload.folder.exists() and not list(uploads)


def test_when_the_connection_only_broke_they_stay(kept, monkeypatch):
    class Back:
        def is_active_session(self, session):
            return session == "back"

    uploads, upload = kept
    monkeypatch.setattr(models.runtime, "exists", lambda: True)
    monkeypatch.setattr(models.runtime, "get_instance", Back)
    models._clear_unless_back("back", uploads)
    assert upload.folder.exists()
    models._clear_unless_back("gone", uploads)
    assert not upload.folder.exists()


def test_what_is_computed_differently_is_another_model(tmp_path):
    choice = Choice(f"path:{tmp_path}")
    keys = {
        models.key_of(choice)
        for choice in (
            Choice(),
            Choice("gpt2"),
            Choice(dtype="bfloat16"),
            Choice("gpt2", n_heads=3),
            Choice("gpt2", tokenizer="gpt2"),
            choice,
        )
    }
    assert len(keys) == 6
    before = models.key_of(choice)
    (tmp_path / "model.safetensors").write_bytes(b"1")
    assert models.key_of(choice) != before  # a file that is written anew is another model


def test_the_device_of_the_server(monkeypatch):
    monkeypatch.delenv(models.DEVICE, raising=False)
    assert models.default_device() == "cpu"
    monkeypatch.setenv(models.DEVICE, "abacus")
    with pytest.raises(ValueError, match="GPTVIZ_DEVICE is 'abacus'; this machine has cpu"):
        models.default_device()


@pytest.mark.parametrize("name", HUB_MODELS)
def test_names_of_the_hub(name):
    assert models.is_from_hub(name) and models.is_from_hub("owner/name")
    assert not models.is_from_hub("mini") and not models.is_from_hub("path:/a/b")
