"""Downloads in the background: joined, stopped, resumed, and their errors as sentences."""

import threading
from pathlib import Path

import pytest
from huggingface_hub import constants

from gptviz.models.checkpoints import CheckpointError
from gptviz.models.checkpoints.download import Progress
from gptviz.ui.models.downloads import Downloads


class Hub:
    """A hub that sends a byte whenever it is allowed to."""

    def __init__(self):
        self.started = 0
        self.sent = 0
        self.go = threading.Event()
        self.end = threading.Event()

    def fetch(self, name, report):
        self.started += 1
        while not self.end.is_set():
            self.go.wait(10)
            self.sent += 1
            report(Progress("model.safetensors", self.sent, 100, 0, 1.0))
        return Path(name)


def test_two_sessions_that_ask_share_one_download():
    hub = Hub()
    downloads = Downloads(hub.fetch)
    assert downloads.last("gpt2") is None
    first = downloads.start("gpt2")
    second = downloads.start("gpt2")
    assert first is second and first is downloads.last("gpt2") and first.running
    hub.end.set()
    hub.go.set()
    first.wait(10)
    assert not first.running and not first.cancelled and first.error is None and hub.started <= 1


def test_a_download_can_be_stopped_and_started_again():
    hub = Hub()
    downloads = Downloads(hub.fetch)
    download = downloads.start("gpt2")
    hub.go.set()
    download.cancel()
    download.wait(10)
    assert download.cancelled and download.error is None and not download.running
    assert download.progress.done == hub.sent >= 1
    again = downloads.start("gpt2")
    assert again is not download
    hub.end.set()
    again.wait(10)
    assert not again.cancelled and downloads.last("gpt2") is again


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (CheckpointError("the disk is full"), "the disk is full"),
        (
            CheckpointError(f"no room in {constants.HF_HUB_CACHE}/gpt2"),
            "no room in the server's cache/gpt2",
        ),
        (RuntimeError("what is this?"), "gpt2 cannot be downloaded: RuntimeError what is this?"),
    ],
)
def test_what_goes_wrong_is_a_sentence_that_does_not_say_where_downloads_are_kept(error, said):
    def refuse(name, report):
        raise error

    download = Downloads(refuse).start("gpt2")
    download.wait(10)
    assert download.error == said and not download.cancelled
