"""tiktoken's own encodings, fetched within a time limit that tiktoken itself does not have."""

import threading
from concurrent.futures import Future, wait

import tiktoken

WAIT_SECONDS = 15.0


_downloads: dict[str, Future[tiktoken.Encoding]] = {}
_lock = threading.Lock()


def download_encoding(name: str, wait_seconds: float = WAIT_SECONDS) -> tiktoken.Encoding:
    """Return tiktoken's encoding `name`, from its cache or its server.

    Raises ConnectionError, with one sentence that says why, when the download fails, or when the file has not
    arrived after `wait_seconds`. In the latter case the download goes on, and a later call waits for the same
    one. A download that failed is not kept, whether or not a call was waiting: the next call starts a new one.
    """
    with _lock:
        future = _downloads.get(name)
        if future is None or (future.done() and future.exception() is not None):
            future = _downloads[name] = Future()
            # A daemon, since tiktoken's download may never end: Python waits for an executor's threads before
            # it exits, and not for this one.
            threading.Thread(target=_fetch, args=(name, future), daemon=True).start()
    if not wait([future], wait_seconds).done:
        # "in a minute": for so long the Tokens page keeps this sentence, and does not ask again (its `ttl`)
        raise ConnectionError(
            f"The tokenizer {name!r} has not arrived after {wait_seconds:g} seconds. "
            "The download goes on: try again in a minute."
        )
    if (error := future.exception()) is not None:
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and {_what_failed(error)}."
        ) from error
    return future.result()


def _fetch(name: str, future: Future[tiktoken.Encoding]) -> None:
    try:
        future.set_result(tiktoken.get_encoding(name))
    except Exception as error:  # the call that waits for the future reports it
        future.set_exception(error)


def _what_failed(error: BaseException) -> str:
    """Say in half a sentence what ended a download: no server, its answer, or anything else by its name.

    tiktoken downloads with requests, whose errors are OSErrors without an errno. They have a `response` where the
    server did answer. An OSError with an errno is of this machine's disk, where tiktoken's cache is.
    """
    response = getattr(error, "response", None)
    if response is not None:
        return f"its server answered with the status {response.status_code}"
    if isinstance(error, OSError) and error.errno is None:
        return "its server could not be reached"
    return f"that failed ({type(error).__name__})"
