"""The server's log: one line an event, and no visitor's text in it.

Addresses lose what stands behind the "?", exceptions their words, whoever logs them: Streamlit, uvicorn, a
library. What an exception is and where it was raised stays.
"""

import logging
import os
import re
import threading
import traceback
from typing import Any

from streamlit.logger import get_logger

# "1": a line for every visit, run and upload, too; else only for what went wrong
SETTING = "GPTVIZ_LOG"
NAME = "gptviz"
_QUERY = re.compile(r"\?[^\s\"']+")

errors = 0  # lines that were errors


def log(event: str, **facts: object) -> None:
    """Write a line about something that happened; no fact may be what a visitor has typed."""
    fields = [
        f"{key}={fact:.3f}" if isinstance(fact, float) else f"{key}={fact}"
        for key, fact in facts.items()
    ]
    logging.getLogger(NAME).info(" ".join([f"event={event}", *fields]))


def watch() -> None:
    """Make every log record one line without a visitor's text; a second call changes nothing."""
    make = logging.getLogRecordFactory()
    if make is _record:
        return
    _record.make = make  # type: ignore[attr-defined]
    logging.setLogRecordFactory(_record)
    threading.excepthook = _in_a_thread
    get_logger(NAME).setLevel(logging.INFO if os.environ.get(SETTING) == "1" else logging.WARNING)


def _record(*args: Any, **options: Any) -> logging.LogRecord:
    global errors
    record: logging.LogRecord = _record.make(*args, **options)  # type: ignore[attr-defined]
    errors += record.levelno >= logging.ERROR
    if record.args and isinstance(record.args, tuple):  # uvicorn's own format wants them apart
        record.args = tuple(map(_without_text, record.args))
    else:
        record.msg = _without_text(record.msg)
    error = None
    if record.exc_info:
        error = record.exc_info[1]
    if error is not None:
        record.msg = f"{record.getMessage().strip()}: {_where(error)}"
        record.args = ()
    record.exc_info = None
    return record


def _in_a_thread(args: threading.ExceptHookArgs) -> None:
    logging.getLogger(NAME).error("event=error", exc_info=args.exc_value)


def _without_text(value: object) -> object:
    if isinstance(value, BaseException):
        return _where(value)
    if isinstance(value, str):
        return " ".join(_QUERY.sub("?…", value).split("\n"))
    return value


def _where(error: BaseException) -> str:
    """An exception's type, its places in the code, innermost first, and the exceptions before it.

    One line, without the exception's own text.
    """
    frames = reversed(traceback.extract_tb(error.__traceback__))
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    raised = " < ".join([type(error).__name__, *places])
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is None:
        return raised
    return f"{raised}, after {_where(before)}"
