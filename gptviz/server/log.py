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

SETTING = "GPTVIZ_LOG"  # "1": a line for every visit, run and upload, too; else only for what went wrong
NAME = "gptviz"
_QUERY = re.compile(r"\?[^\s\"']+")

errors = 0  # lines that were errors


def log(event: str, **facts: object) -> None:
    """Write a line about something that happened; no fact may be what a visitor has typed."""
    said = [
        f"{key}={fact:.3f}" if isinstance(fact, float) else f"{key}={fact}" for key, fact in facts.items()
    ]
    logging.getLogger(NAME).info(" ".join([f"event={event}", *said]))


def watch() -> None:
    """Make whatever is logged from now on one line without a visitor's text; again, nothing happens."""
    make = logging.getLogRecordFactory()
    if make is _record:
        return
    _record.make = make  # type: ignore[attr-defined]
    logging.setLogRecordFactory(_record)
    threading.excepthook = _in_a_thread
    get_logger(NAME).setLevel(logging.INFO if os.environ.get(SETTING) == "1" else logging.WARNING)


def _record(*given: Any, **named: Any) -> logging.LogRecord:
    global errors
    made: logging.LogRecord = _record.make(*given, **named)  # type: ignore[attr-defined]
    errors += made.levelno >= logging.ERROR
    if made.args and isinstance(made.args, tuple):  # uvicorn's own format wants them apart
        made.args = tuple(map(_without_text, made.args))
    else:
        made.msg = _without_text(made.msg)
    error = None
    if made.exc_info:
        error = made.exc_info[1]
    if error is not None:
        made.msg = f"{made.getMessage().strip()}: {_where(error)}"
        made.args = ()
    made.exc_info = None
    return made


def _in_a_thread(given: threading.ExceptHookArgs) -> None:
    logging.getLogger(NAME).error("event=error", exc_info=given.exc_value)


def _without_text(said: object) -> object:
    if isinstance(said, BaseException):
        return _where(said)
    if isinstance(said, str):
        return " ".join(_QUERY.sub("?…", said).split("\n"))
    return said


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
