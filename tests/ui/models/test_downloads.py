"""Downloads in the background: joined, stopped, resumed, and their errors as sentences."""

import threading
from pathlib import Path

import pytest
from huggingface_hub import constants

from gptviz.checkpoints import CheckpointError
from gptviz.checkpoints.download import Progress
from gptviz.ui.models.downloads import Downloads


class Hub:
    """A hub that sends a byte whenever it is allowed to."""

    def __init__(self):
        self.started, self.sent, self.go, self.end = 0, 0, threading.Event(), threading.Event()

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
    first, second = downloads.start("gpt2"), downloads.start("gpt2")
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


def test_what_goes_wrong_is_a_sentence():
    def refuse(name, report):
        raise CheckpointError("the disk is full")

    download = Downloads(refuse).start("gpt2")
    download.wait(10)
    assert download.error == "the disk is full" and not download.cancelled


def test_where_the_server_keeps_its_downloads_is_not_said():
    def refuse(name, report):
        raise CheckpointError(f"the disk is full: no room in {constants.HF_HUB_CACHE}/models--gpt2")

    download = Downloads(refuse).start("gpt2")
    download.wait(10)
    assert "disk is full" in download.error and str(constants.HF_HUB_CACHE) not in download.error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_even_what_nobody_expected():
    def break_(name, report):
        raise RuntimeError("what is this?")

    download = Downloads(break_).start("gpt2")
    download.wait(10)
    assert download.error == "gpt2 cannot be downloaded: RuntimeError what is this?"
