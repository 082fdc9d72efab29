"""Downloads that go on while visitors look at other pages: one thread a model, shared by all sessions."""

import threading
from collections.abc import Callable
from pathlib import Path

from gptviz.models.checkpoints.download import Progress, Report
from gptviz.models.loading import hub_folder

Fetch = Callable[[str, Report], Path]


class _Cancelled(Exception):
    """Raised inside a download, by its own report."""


class Download:
    """One model on its way. `error` says why it ended without one; None after a success or a cancellation."""

    def __init__(self, name: str, fetch: Fetch):
        self.name = name
        self.progress: Progress | None = None
        self.error: str | None = None
        self.cancelled = False
        self._fetch = fetch
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"download {name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop soon. What has arrived is kept, and the next download goes on from there."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._fetch(self.name, self._report)
        except _Cancelled:
            self.cancelled = True
        except ValueError as error:  # CheckpointError: a sentence for people
            self.error = without_cache(str(error))
        except Exception as error:
            self.error = without_cache(
                f"{self.name} cannot be downloaded: {type(error).__name__} {error}"
            )
            raise  # to the server's log, with all that happened

    def _report(self, progress: Progress) -> None:
        self.progress = progress
        if self._stop.is_set():
            raise _Cancelled


def without_cache(said: str) -> str:
    """A sentence that does not say where the server keeps its downloads."""
    from huggingface_hub import constants

    return said.replace(str(constants.HF_HUB_CACHE), "the server's cache")


class Downloads:
    """The downloads of this process, by the model's name: the last one of each."""

    def __init__(self, fetch: Fetch = hub_folder):
        self._fetch = fetch
        self._all: dict[str, Download] = {}
        self._lock = threading.Lock()

    def start(self, name: str) -> Download:
        """A new download, or the one that is running."""
        with self._lock:
            download = self._all.get(name)
            if download is None or not download.running:
                download = self._all[name] = Download(name, self._fetch)
            return download

    def last(self, name: str) -> Download | None:
        """The download that was started last, running or over."""
        return self._all.get(name)
