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
        found = _downloads.get(name)
        if found is None or (found.done() and found.exception() is not None):
            found = _downloads[name] = Future()
            # a thread that can be left behind, which an executor's cannot
            threading.Thread(target=_fetch, args=(name, found), daemon=True).start()
    if not wait([found], wait_seconds).done:
        raise ConnectionError(
            f"The tokenizer {name!r} has not arrived after {wait_seconds:g} seconds. "
            "The download goes on: try again in a minute."
        )
    if (error := found.exception()) is not None:
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and its server could not be reached."
        ) from error
    return found.result()


def _fetch(name: str, found: Future[tiktoken.Encoding]) -> None:
    try:
        found.set_result(tiktoken.get_encoding(name))
    except Exception as error:  # whatever it was, who waits reports it
        found.set_exception(error)
