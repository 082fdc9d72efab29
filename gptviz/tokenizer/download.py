"""tiktoken's own encodings, fetched within a time limit that tiktoken itself does not have."""

import threading
from concurrent.futures import Future, wait

import tiktoken

WAIT_SECONDS = 15.0


_downloads: dict[str, Future[tiktoken.Encoding]] = {}
_lock = threading.Lock()


def download_encoding(name: str, wait_seconds: float = WAIT_SECONDS) -> tiktoken.Encoding:
    """tiktoken's encoding `name`, from its cache or its server.

    Raises ConnectionError, one sentence, when the server cannot be reached, or the file has not
    arrived after `wait_seconds`: the download then goes on, and a later call waits for the same one.
    """
    with _lock:
        future = _downloads.get(name)
        if future is None or (future.done() and future.exception() is not None):
            future = _downloads[name] = Future()
            # a thread that can be left behind, which an executor's cannot
            threading.Thread(target=_fetch, args=(name, future), daemon=True).start()
    if not wait([future], wait_seconds).done:
        raise ConnectionError(
            f"The tokenizer {name!r} has not arrived after {wait_seconds:g} seconds. "
            "The download goes on: try again in a minute."
        )
    if (error := future.exception()) is not None:
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and its server could not be reached."
        ) from error
    return future.result()


def _fetch(name: str, future: Future[tiktoken.Encoding]) -> None:
    try:
        future.set_result(tiktoken.get_encoding(name))
    except Exception as error:  # the call that waits for the future reports it
        future.set_exception(error)
