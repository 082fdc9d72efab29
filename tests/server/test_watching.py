"""What is seen of a server from outside: is it ready, its numbers, a log without its visitors' texts."""

import asyncio
import io
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.error_util import _log_uncaught_app_exception
from streamlit.logger import get_logger

from gptviz.server import log, watching
from gptviz.ui.teach.classroom import classes

SECRET = "grandmother"


@pytest.fixture
def lines(monkeypatch):
    """What is logged, as a server logs it: a function that gives the lines so far."""
    written = io.StringIO()
    make = logging.getLogRecordFactory()
    hook = threading.excepthook
    monkeypatch.setenv(log.SETTING, "1")
    log.watch()
    log.watch()
    names = ("streamlit.error_util", log.NAME, "uvicorn.access")
    handlers = [(get_logger(name), logging.StreamHandler(written)) for name in names]
    for logger, handler in handlers:
        logger.addHandler(handler)
    yield lambda: written.getvalue().splitlines()
    for logger, handler in handlers:
        logger.removeHandler(handler)
    logging.setLogRecordFactory(make)
    threading.excepthook = hook


def refuse():
    try:
        int(SECRET)
    except ValueError as error:
        raise KeyError(f"{SECRET}\nand {SECRET}") from error


def test_every_line_is_one_event_without_a_visitors_text(lines, capsys):
    before = log.errors
    try:
        refuse()
    except KeyError as error:
        _log_uncaught_app_exception(error)
        logging.getLogger(log.NAME).warning("it was %s", error)
        logging.getLogger(log.NAME).warning(error)
    thread = threading.Thread(target=refuse)
    thread.start()
    thread.join()
    access = '%s - "%s %s HTTP/%s" %d'
    logging.getLogger("uvicorn.access").info(
        access, "1.2.3.4:5", "GET", f"/why?text={SECRET}", "1.1", 200
    )
    log.log("run", page="why", seconds=0.12345)
    found = lines()
    assert len(found) == 6 and SECRET not in " ".join([*found, *capsys.readouterr()])
    for line in found[:4]:
        assert (
            line.count("KeyError <") == line.count("after ValueError <") == 1 and "refuse" in line
        )
    assert found[4] == '1.2.3.4:5 - "GET /why?… HTTP/1.1" 200'
    assert found[5] == "event=run page=why seconds=0.123"
    assert log.errors - before == 2


def test_a_server_is_ready_when_its_model_and_its_database_are(monkeypatch):
    def asked():
        with ThreadPoolExecutor(1) as pool:  # here Playwright's loop may run, of an earlier test
            answer = pool.submit(asyncio.run, watching._readyz(None)).result()
        return answer.status_code, answer.body.decode()

    monkeypatch.setattr(watching, "PATIENCE", 60.0)
    assert asked() == (200, "The server is ready.")
    classes.clear()
    monkeypatch.setenv(watching.DATABASE, f"postgresql+psycopg://{SECRET}@127.0.0.1:1/x")
    status, said = asked()
    assert status == 503 and said.startswith("The database of classes cannot be opened")
    assert SECRET not in said
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    assert asked()[0] == 503


def test_runs_are_counted_by_their_seconds():
    numbers = watching.Numbers()
    for seconds in (0.1, 0.2, 40.0):
        numbers.ran("why", seconds)
    (run,) = numbers.get_stats()["gptviz_run_seconds"]
    assert [count for _, count in run.buckets] == [1, 2, 2, 2, 2, 2, 2, 2, 3]
    assert (run.labels, run.observation_count) == ({"page": "why"}, 3)
    assert run.observation_sum == pytest.approx(40.3)
    assert set(numbers.stats_families) == set(numbers.get_stats())
