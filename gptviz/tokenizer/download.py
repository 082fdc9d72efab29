"""tiktoken's own encodings, fetched within a time limit that tiktoken itself does not have."""

import threading

import tiktoken

WAIT_SECONDS = 15.0


class _Download(threading.Thread):
    """One call of tiktoken's `get_encoding`, on a thread that can be left behind."""

    def __init__(self, encoding_name: str) -> None:
        super().__init__(name=f"tokenizer {encoding_name}", daemon=True)
        self.encoding_name = encoding_name
        self.encoding: tiktoken.Encoding | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.encoding = tiktoken.get_encoding(self.encoding_name)
        except Exception as error:  # whatever it was, the thread that waits reports it
            self.error = error


_downloads: dict[str, _Download] = {}
_lock = threading.Lock()


def download_encoding(name: str, wait_seconds: float = WAIT_SECONDS) -> tiktoken.Encoding:
    """tiktoken's encoding `name`, from its cache or its server.

    Raises ConnectionError, one sentence, when the server cannot be reached, or the file has not
    arrived after `wait_seconds`: the download then goes on, and a later call waits for the same one.
    """
    with _lock:
        download = _downloads.get(name)
        if download is None or download.error is not None:
            download = _downloads[name] = _Download(name)
            download.start()
    download.join(wait_seconds)
    if download.encoding is not None:
        return download.encoding
    if download.error is not None:
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and its server could not be reached."
        ) from download.error
    raise ConnectionError(
        f"The tokenizer {name!r} has not arrived after {wait_seconds:g} seconds. "
        "The download goes on: try again in a minute."
    )
